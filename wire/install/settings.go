package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"
)

// Settings is a file of a host's whose switches decide whether hooks run.
type Settings struct {
	Path    string
	Scope   Scope
	Content []byte // as the caller read it; nil: there is none

	values map[string]any
}

// Settings are the files to look at, the weakest first, without their content.
func (h Host) Settings(p Places) []Settings {
	user, project, system := h.userFolder(p), p.Project, func(path string) string { return filepath.Join(p.System, filepath.FromSlash(path)) }
	at := func(scope Scope, elements ...string) Settings {
		return Settings{Path: filepath.Join(elements...), Scope: scope}
	}
	switch h.Name {
	case "claude-code":
		return []Settings{at(User, user, "settings.json"), at(Project, project, ".claude", "settings.json"), at(Project, project, ".claude", "settings.local.json"),
			at(Managed, system("etc/claude-code/managed-settings.json")), at(Managed, system("Library/Application Support/ClaudeCode/managed-settings.json"))}
	case "codex":
		return []Settings{at(User, user, "config.toml"), at(Project, project, ".codex", "config.toml"), at(Managed, system("etc/codex/requirements.toml"))}
	case "gemini-cli":
		return []Settings{at(Managed, system("etc/gemini-cli/system-defaults.json")), at(User, user, "settings.json"),
			at(Project, project, ".gemini", "settings.json"), at(Managed, system("etc/gemini-cli/settings.json")), at(User, user, "trustedFolders.json")}
	case "qwen-code":
		return []Settings{at(Managed, system("etc/qwen-code/system-defaults.json")), at(User, user, "settings.json"),
			at(Project, project, ".qwen", "settings.json"), at(Managed, system("etc/qwen-code/settings.json")), at(User, user, "trustedFolders.json")}
	case "copilot":
		return []Settings{at(User, user, "settings.json"), at(User, user, "hooks", "stopgate.json"), at(Project, project, ".github", "hooks", "stopgate.json"),
			at(Project, project, ".github", "copilot", "settings.json"), at(Project, project, ".github", "copilot", "settings.local.json"), at(User, user, "config.json")}
	}
	return nil
}

// read parses the content.
func (s *Settings) read() error {
	if s.Content == nil {
		return nil
	}
	if filepath.Ext(s.Path) == ".toml" {
		if len(s.Content) > maxFile {
			return errors.New("too large for a settings file")
		}
		return toml.Unmarshal(s.Content, &s.values)
	}
	d, err := parse(s.Content)
	if err != nil {
		return err
	}
	standard, err := hujson.Standardize(d.source)
	if err != nil {
		return syntaxError(err)
	}
	if err := json.Unmarshal(standard, &s.values); err != nil {
		return fmt.Errorf("1:1: %w", err)
	}
	return nil
}

// value is what the file says at a path of keys; nil: nothing.
func (s *Settings) value(path ...string) any {
	var at any = s.values
	for _, key := range path {
		object, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = object[key]
	}
	return at
}

// says reports whether the file has just that value at a path of keys.
func (s *Settings) says(want bool, path ...string) bool {
	is, ok := s.value(path...).(bool)
	return ok && is == want
}

// stringsAt is a list of strings at a path of keys, and whether there is one.
func (s *Settings) stringsAt(path ...string) ([]string, bool) {
	list, ok := s.value(path...).([]any)
	var texts []string
	for _, v := range list {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts, ok
}

// strongest is the last file that says anything at a path of keys.
func strongest(settings []Settings, path ...string) *Settings {
	for i := len(settings) - 1; i >= 0; i-- {
		if settings[i].value(path...) != nil {
			return &settings[i]
		}
	}
	return &Settings{}
}
