package install

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
)

// Off says what of a host's settings and of its environment keeps it from
// running the entries, or may: switches that turn hooks off, lists that leave
// ours out, folders that are not trusted. settings are those of
// [Host.Settings], with their content.
func (h Host) Off(p Places, settings []Settings, entries []Entry) []Problem {
	var problems []Problem
	for i := range settings {
		if err := settings[i].read(); err != nil {
			problems = append(problems, Problem{Severity: gate.SeverityWarning,
				Text: fmt.Sprintf("%s cannot be read: %s", settings[i].Path, err), Do: "mend it: " + h.Contract.Program + " may ignore it, or refuse to start"})
		}
	}
	return append(problems, h.off(switches{h.Contract.Program, p, settings, entries})...)
}

// switches is what the rules of one host look at.
type switches struct {
	program  string
	places   Places
	settings []Settings
	entries  []Entry
}

// ofUser is the user's file of that name, which is there for the host whose
// rules ask for it.
func (s switches) ofUser(name string) *Settings {
	for i := range s.settings {
		if f := &s.settings[i]; f.Scope == User && filepath.Base(f.Path) == name {
			return f
		}
	}
	return &Settings{Path: name}
}

func fails(do, format string, args ...any) Problem {
	return Problem{Severity: gate.SeverityError, Text: fmt.Sprintf(format, args...), Do: do}
}

// switchedOff is the problem where a switch, as the strongest file has it, turns
// all hooks off.
func (s switches) switchedOff(off bool, path ...string) []Problem {
	key := strings.Join(path, ".")
	if by := strongest(s.settings, path...); by.says(off, path...) {
		return []Problem{fails("take "+key+" out of it", "%s sets %s to %t, which turns all hooks of %s off", by.Path, key, off, s.program)}
	}
	return nil
}

func claudeCodeOff(s switches) []Problem {
	problems := s.switchedOff(true, "disableAllHooks")
	for i := range s.settings {
		f := &s.settings[i]
		if f.Scope == Managed && f.says(true, "allowManagedHooksOnly") {
			problems = append(problems, fails("ask the administrator to add the hooks to the managed settings",
				"%s sets allowManagedHooksOnly: the hooks of users and projects do not run", f.Path))
		}
		if allowed, ok := f.stringsAt("allowedHttpHookUrls"); ok {
			problems = append(problems, s.leftOut(f.Path, "allowedHttpHookUrls", allowed)...)
		}
	}
	return problems
}

// leftOut are the URLs of ours that a list of allowed ones does not have.
func (s switches) leftOut(file, key string, allowed []string) []Problem {
	var problems []Problem
	seen := map[string]bool{}
	for _, e := range s.entries {
		if e.HTTP() && !seen[e.URL] && !slices.ContainsFunc(allowed, func(pattern string) bool { return wildcard(pattern, e.URL) }) {
			seen[e.URL] = true
			problems = append(problems, fails("add "+e.URL+" to it", "%s allows in %s other URLs only, so the http hooks of stopgate do not run", file, key))
		}
	}
	return problems
}

// wildcard reports whether a pattern with * for anything is the whole text.
func wildcard(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	matched, err := regexp.MatchString(`\A(?s:`+strings.Join(parts, ".*")+`)\z`, text)
	return err == nil && matched
}

func codexOff(s switches) []Problem {
	problems := append(s.switchedOff(false, "features", "hooks"), s.switchedOff(false, "features", "codex_hooks")...)
	for i := range s.settings {
		if f := &s.settings[i]; f.Scope == Managed && f.says(true, "allow_managed_hooks_only") {
			problems = append(problems, fails("ask the administrator to add the hooks to the managed configuration",
				"%s sets allow_managed_hooks_only: the hooks of users and projects do not run", f.Path))
		}
	}
	user := s.ofUser("config.toml")
	if slices.ContainsFunc(s.entries, func(e Entry) bool { return e.Scope == Project }) && !codexTrusts(user, s.places.Project) {
		problems = append(problems, fails("start codex in the project and trust it",
			"Codex ignores the project's hooks: %s does not say that %s is trusted", user.Path, s.places.Project))
	}
	return append(problems, s.unreviewed(user)...)
}

// codexTrusts reports whether the user's configuration trusts the project's
// directory or one above it, as the root of its repository.
func codexTrusts(user *Settings, project string) bool {
	for _, dir := range upwards(project) {
		if user.value("projects", dir, "trust_level") == "trusted" {
			return true
		}
	}
	return false
}

// unreviewed are the files whose hooks codex was never told to trust: its
// record of reviewed hooks names the file of each, between colons.
func (s switches) unreviewed(user *Settings) []Problem {
	state, _ := user.value("hooks", "state").(map[string]any)
	var problems []Problem
	var files []string
	for _, e := range s.entries {
		if !slices.Contains(files, e.File) {
			files = append(files, e.File)
		}
	}
	for _, file := range files {
		reviewed := false
		for key := range state {
			reviewed = reviewed || strings.Contains(":"+key+":", ":"+file+":")
		}
		if !reviewed {
			problems = append(problems, fails("type /hooks in codex and trust those of stopgate",
				"Codex skips hooks, new or changed, until they were reviewed, and %s names none of %s as reviewed", user.Path, file))
		}
	}
	return problems
}

func geminiCLIOff(s switches) []Problem {
	problems := s.switchedOff(false, "hooksConfig", "enabled") // fault gx-091
	for i := range s.settings {
		f := &s.settings[i]
		disabled, _ := f.stringsAt("hooksConfig", "disabled")
		for _, e := range s.entries {
			if slices.Contains(disabled, e.Command) {
				problems = append(problems, fails("take it out of the list, or type /hooks enable in gemini", "%s lists the hook on %s in hooksConfig.disabled", f.Path, e.Event))
			}
		}
	}
	if s.places.Getenv("GEMINI_CLI_TRUST_WORKSPACE") == "true" {
		return problems
	}
	return append(problems, s.untrusted(true, "type /permissions in gemini and trust the folder, or set GEMINI_CLI_TRUST_WORKSPACE=true where nobody can")...)
}

func qwenCodeOff(s switches) []Problem {
	problems := s.switchedOff(true, "disableAllHooks")
	for _, variable := range []string{"QWEN_CODE_SAFE_MODE", "QWEN_CODE_SIMPLE"} {
		if v := s.places.Getenv(variable); v != "" && v != "0" && v != "false" {
			problems = append(problems, fails("unset it where qwen is started", "%s is set, which turns all hooks of Qwen Code off", variable))
		}
	}
	if by := strongest(s.settings, "security", "allowedHttpHookUrls"); by.Path != "" {
		if allowed, _ := by.stringsAt("security", "allowedHttpHookUrls"); len(allowed) > 0 { // an empty list allows all
			problems = append(problems, s.leftOut(by.Path, "security.allowedHttpHookUrls", allowed)...)
		}
	}
	return append(problems, s.untrusted(false, "type /permissions in qwen and trust the folder")...)
}

// untrusted looks at folder trust as gemini-cli, where it is on unless somebody
// turned it off, and qwen-code, where it is off unless turned on, have it.
func (s switches) untrusted(byDefault bool, do string) []Problem {
	if !slices.ContainsFunc(s.entries, func(e Entry) bool { return e.Scope == Project }) {
		return nil
	}
	path := []string{"security", "folderTrust", "enabled"}
	by := strongest(s.settings, path...)
	if by.says(false, path...) || by.Path == "" && !byDefault {
		return nil
	}
	trust := s.ofUser("trustedFolders.json")
	switch word, dir := trust.folderTrust(s.places.Project); word {
	case "DO_NOT_TRUST":
		return []Problem{fails(do, "%s does not trust %s, so %s ignores the project's hooks", trust.Path, dir, s.program)}
	case "TRUST_FOLDER", "TRUST_PARENT":
		return nil
	}
	return []Problem{fails(do, "%s ignores the project's hooks where folder trust is on, and %s does not name %s", s.program, trust.Path, s.places.Project)}
}

// folderTrust is the word of trustedFolders.json on a directory, and the entry
// that has it: of those that hold the directory, the deepest.
func (s *Settings) folderTrust(dir string) (word, by string) {
	above, deepest := upwards(dir), len(dir)+1
	for folder, v := range s.values {
		w, _ := v.(string)
		root := folder
		if w == "TRUST_PARENT" {
			root = filepath.Dir(folder)
		}
		if depth := slices.Index(above, root); depth >= 0 && depth < deepest {
			word, by, deepest = w, folder, depth
		}
	}
	return word, by
}

func copilotOff(s switches) []Problem {
	var problems []Problem
	for i := range s.settings {
		if f := &s.settings[i]; f.says(true, "disableAllHooks") {
			problems = append(problems, fails("take disableAllHooks out of it", "%s sets disableAllHooks, which turns hooks off", f.Path))
		}
	}
	trust := s.ofUser("config.json")
	folders, _ := trust.stringsAt("trusted_folders")
	newer, _ := trust.stringsAt("trustedFolders")
	for _, dir := range upwards(s.places.Project) {
		if slices.Contains(folders, dir) || slices.Contains(newer, dir) {
			return problems
		}
	}
	return append(problems, fails("start copilot in the project and trust it",
		"Copilot CLI runs hooks in folders that it trusts only, and %s does not name %s", trust.Path, s.places.Project))
}

// upwards are a directory and all above it.
func upwards(dir string) []string {
	dirs := []string{dir}
	for filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		dirs = append(dirs, dir)
	}
	return dirs
}
