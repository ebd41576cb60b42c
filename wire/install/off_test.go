package install

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What of a host's settings keeps hooks from running. The files are named by
// their place: user/…, project/…, system/….
func TestOff(t *testing.T) {
	type files map[string]string
	const trusted = `{"security":{"folderTrust":{"enabled":true}}}`
	for _, c := range []struct {
		name, host string
		files      files
		env        map[string]string
		want       string // of the findings, a line each; empty: none
	}{
		{"claude-code healthy", "claude-code", files{"project/.claude/settings.json": `{"disableAllHooks": false}`}, nil, ""},
		{"claude-code off", "claude-code", files{"user/.claude/settings.json": `{"disableAllHooks": true} // x`}, nil, "error: /user/.claude/settings.json sets disableAllHooks to true"},
		{"claude-code off locally", "claude-code", files{"project/.claude/settings.local.json": `{"disableAllHooks": true}`}, nil, "error: /project/.claude/settings.local.json sets disableAllHooks"},
		{"claude-code on again", "claude-code", files{"user/.claude/settings.json": `{"disableAllHooks": true}`, "project/.claude/settings.json": `{"disableAllHooks": false}`}, nil, ""},
		{"claude-code managed only", "claude-code", files{"system/etc/claude-code/managed-settings.json": `{"allowManagedHooksOnly": true}`}, nil, "error: /system/etc/claude-code/managed-settings.json sets allowManagedHooksOnly"},
		{"claude-code managed only, on macOS", "claude-code", files{"system/Library/Application Support/ClaudeCode/managed-settings.json": `{"allowManagedHooksOnly": true}`}, nil, "error: /system/Library/Application Support/ClaudeCode/managed-settings.json sets allowManagedHooksOnly"},
		{"claude-code managed word elsewhere", "claude-code", files{"user/.claude/settings.json": `{"allowManagedHooksOnly": true}`}, nil, ""},
		{"claude-code other URLs", "claude-code", files{"user/.claude/settings.json": `{"allowedHttpHookUrls": ["https://*"]}`}, nil, "error: /user/.claude/settings.json allows in allowedHttpHookUrls other URLs only"},
		{"claude-code our URLs", "claude-code", files{"user/.claude/settings.json": `{"allowedHttpHookUrls": ["http://127.0.0.1:8790/*"]}`}, nil, ""},
		{"claude-code broken", "claude-code", files{"user/.claude/settings.json": "{\n x"}, nil, "warning: /user/.claude/settings.json cannot be read: 2:2"},

		{"codex healthy", "codex", files{"user/.codex/config.toml": "[projects.\"/project\"]\ntrust_level = \"trusted\"\n[hooks.state.\"/project/.codex/hooks.json:stop:0:0\"]\ntrusted_hash = \"x\"\n"}, nil, ""},
		{"codex trusts the repository", "codex", files{"user/.codex/config.toml": "[projects.\"/\"]\ntrust_level = \"trusted\"\n[hooks.state.\"stop:0:/project/.codex/hooks.json\"]\n"}, nil, ""},
		{"codex untrusted", "codex", files{}, nil, "error: Codex ignores the project's hooks\nerror: Codex skips hooks, new or changed"},
		{"codex off", "codex", files{"user/.codex/config.toml": "[features]\nhooks = false\n[projects.\"/project\"]\ntrust_level = \"trusted\"\n[hooks.state.\"/project/.codex/hooks.json\"]\n"}, nil, "error: /user/.codex/config.toml sets features.hooks to false"},
		{"codex managed only", "codex", files{"user/.codex/config.toml": "[projects.\"/project\"]\ntrust_level = \"trusted\"\n[hooks.state.\"/project/.codex/hooks.json\"]\n", "system/etc/codex/requirements.toml": "allow_managed_hooks_only = true"}, nil, "error: /system/etc/codex/requirements.toml sets allow_managed_hooks_only"},

		{"codex reviewed another file", "codex", files{"user/.codex/config.toml": "[projects.\"/project\"]\ntrust_level = \"trusted\"\n[hooks.state.\"/another/project/.codex/hooks.json:stop:0:0\"]\n[hooks.state.\"/project/.codex/hooks.json.old:stop:0:0\"]\n"}, nil, "error: Codex skips hooks, new or changed"},

		{"gemini-cli healthy", "gemini-cli", files{"user/.gemini/settings.json": `{"security":{"folderTrust":{"enabled":false}}}`}, nil, ""},
		{"gemini-cli trusted", "gemini-cli", files{"user/.gemini/settings.json": trusted, "user/.gemini/trustedFolders.json": `{"/project":"TRUST_FOLDER"}`}, nil, ""},
		{"gemini-cli trusted by a neighbour", "gemini-cli", files{"user/.gemini/settings.json": trusted, "user/.gemini/trustedFolders.json": `{"/other":"TRUST_PARENT"}`}, nil, ""},
		{"gemini-cli trusted by the environment", "gemini-cli", files{"user/.gemini/settings.json": trusted}, map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true"}, ""},
		{"gemini-cli untrusted", "gemini-cli", files{"user/.gemini/settings.json": trusted}, nil, "error: Gemini CLI ignores the project's hooks where folder trust is on"},
		{"gemini-cli distrusted", "gemini-cli", files{"user/.gemini/trustedFolders.json": `{"/":"TRUST_FOLDER","/project":"DO_NOT_TRUST"}`}, nil, "error: /user/.gemini/trustedFolders.json does not trust /project"},
		{"gemini-cli unsaid", "gemini-cli", files{}, nil, "error: Gemini CLI ignores the project's hooks where folder trust is on"},
		{"gx-091: gemini-cli off", "gemini-cli", files{"user/.gemini/settings.json": `{"security":{"folderTrust":{"enabled":false}},"hooksConfig":{"enabled":false}}`}, nil, "error: /user/.gemini/settings.json sets hooksConfig.enabled to false, which turns all hooks of Gemini CLI off"},
		{"gemini-cli hook disabled", "gemini-cli", files{"user/.gemini/settings.json": `{"security":{"folderTrust":{"enabled":false}},"hooksConfig":{"disabled":["stopgate hook --protocol gemini-cli"]}}`}, nil, "error: /user/.gemini/settings.json lists the hook on AfterAgent in hooksConfig.disabled"},

		{"qwen-code healthy", "qwen-code", files{}, nil, ""},
		{"qwen-code off", "qwen-code", files{"project/.qwen/settings.json": `{"disableAllHooks": true}`}, nil, "error: /project/.qwen/settings.json sets disableAllHooks"},
		{"qwen-code off by the environment", "qwen-code", files{}, map[string]string{"QWEN_CODE_SAFE_MODE": "1"}, "error: QWEN_CODE_SAFE_MODE is set"},
		{"qwen-code untrusted", "qwen-code", files{"user/.qwen/settings.json": trusted}, nil, "error: Qwen Code ignores the project's hooks"},
		{"qwen-code other URLs", "qwen-code", files{"user/.qwen/settings.json": `{"security":{"allowedHttpHookUrls":["https://x"]}}`}, nil, "error: /user/.qwen/settings.json allows in security.allowedHttpHookUrls other URLs only"},
		{"qwen-code all URLs", "qwen-code", files{"user/.qwen/settings.json": `{"security":{"allowedHttpHookUrls":[]}}`}, nil, ""},

		{"copilot healthy", "copilot", files{"user/.copilot/config.json": `{"trusted_folders":["/project"]}`}, nil, ""},
		{"copilot's newer key", "copilot", files{"user/.copilot/config.json": `{"trustedFolders":["/project"]}`}, nil, ""},
		{"copilot trusts another", "copilot", files{"user/.copilot/config.json": `{"trustedFolders":["/project/x"]}`}, nil, "error: Copilot CLI runs hooks in folders that it trusts only"},
		{"copilot untrusted", "copilot", files{}, nil, "error: Copilot CLI runs hooks in folders that it trusts only, and /user/.copilot/config.json does not name /project"},
		{"copilot off in the file", "copilot", files{"project/.github/hooks/stopgate.json": `{"disableAllHooks":true}`, "user/.copilot/config.json": `{"trusted_folders":["/"]}`}, nil, "error: /project/.github/hooks/stopgate.json sets disableAllHooks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := Find(c.host)
			p := Places{Project: "/project", Home: "/user", System: "/system", Getenv: func(name string) string { return c.env[name] }}
			settings := h.Settings(p)
			used := 0
			for i := range settings {
				if content, ok := c.files[strings.TrimPrefix(filepath.ToSlash(settings[i].Path), "/")]; ok {
					settings[i].Content = []byte(content)
					used++
				}
			}
			if used != len(c.files) {
				t.Fatalf("%s does not look at every file of %v", c.host, c.files)
			}
			e := Entry{Event: "Stop", URL: "http://127.0.0.1:8790/v1/hooks/" + c.host, Scope: Project, File: h.File(p, Project)}
			if c.host == "gemini-cli" {
				e = Entry{Event: "AfterAgent", Command: "stopgate hook --protocol gemini-cli", Scope: Project, File: h.File(p, Project)}
			}
			got := h.Off(p, settings, []Entry{e})
			var want []string
			if c.want != "" {
				want = strings.Split(c.want, "\n")
			}
			if len(got) != len(want) {
				t.Fatalf("%+v\nwant %s", got, c.want)
			}
			for i, p := range got {
				if !strings.HasPrefix(string(p.Severity)+": "+p.Text, want[i]) || p.Do == "" {
					t.Errorf("%s: %s (%s)\nwant %s", p.Severity, p.Text, p.Do, want[i])
				}
			}
		})
	}
}

// What only the user's entries need is not asked of the project.
func TestUserEntriesNeedNoTrustedProject(t *testing.T) {
	for _, host := range []string{"gemini-cli", "qwen-code"} {
		h, _ := Find(host)
		p := Places{Project: "/project", Home: "/user", System: "/system", Getenv: func(string) string { return "" }}
		if got := h.Off(p, h.Settings(p), []Entry{{Event: "Stop", Scope: User}}); len(got) > 0 {
			t.Errorf("%s: %+v", host, got)
		}
	}
	h, _ := Find("codex") // that they are reviewed it asks of the user's, too
	p := Places{Project: "/project", Home: "/user", System: "/system", Getenv: func(string) string { return "" }}
	ours := []Entry{{Event: "Stop", Scope: User, File: h.File(p, User)}}
	if got := h.Off(p, h.Settings(p), ours); len(got) != 1 || !strings.Contains(got[0].Text, "names none of "+h.File(p, User)) {
		t.Errorf("codex, not reviewed: %+v", got)
	}
	settings := h.Settings(p)
	settings[0].Content = []byte("[hooks.state.\"" + h.File(p, User) + ":stop:0:0\"]\n")
	if got := h.Off(p, settings, ours); len(got) > 0 {
		t.Errorf("codex, reviewed: %+v", got)
	}
}

// Of the folders that trustedFolders.json names, the deepest that holds the
// project has the say, in whatever order they stand.
func TestDeepestTrustedFolderWins(t *testing.T) {
	for _, c := range []struct {
		folders  map[string]any
		word, by string
	}{
		{map[string]any{"/": "DO_NOT_TRUST", "/a": "TRUST_FOLDER", "/a/b": "DO_NOT_TRUST"}, "DO_NOT_TRUST", "/a/b"},
		{map[string]any{"/": "DO_NOT_TRUST", "/a": "DO_NOT_TRUST", "/a/b/x": "TRUST_PARENT"}, "TRUST_PARENT", "/a/b/x"},
		{map[string]any{"/a/b/c/d": "DO_NOT_TRUST", "/a": "TRUST_FOLDER", "/other": "DO_NOT_TRUST"}, "TRUST_FOLDER", "/a"},
		{map[string]any{"/a/b/c/d": "TRUST_FOLDER"}, "", ""},
	} {
		for range 50 { // maps are read in an order of their own
			if word, by := (&Settings{values: c.folders}).folderTrust("/a/b/c"); word != c.word || by != c.by {
				t.Fatalf("%v: %s by %s, want %s by %s", c.folders, word, by, c.word, c.by)
			}
		}
	}
}

// The rules find their file by its name, wherever it stands in the list.
func TestFilesAreFoundByName(t *testing.T) {
	for host, content := range map[string]string{
		"codex":      "[projects.\"/project\"]\ntrust_level = \"trusted\"\n[hooks.state.\"/project/.codex/hooks.json\"]\n",
		"gemini-cli": `{"/project":"TRUST_FOLDER"}`,
		"copilot":    `{"trusted_folders":["/project"]}`,
	} {
		h, _ := Find(host)
		p := Places{Project: "/project", Home: "/user", System: "/system", Getenv: func(string) string { return "" }}
		settings := h.Settings(p)
		for i := range settings {
			switch filepath.Base(settings[i].Path) {
			case "config.toml", "trustedFolders.json", "config.json":
				if settings[i].Scope == User {
					settings[i].Content = []byte(content)
				}
			}
		}
		slices.Reverse(settings)
		if got := h.Off(p, settings, []Entry{{Event: "Stop", Scope: Project, File: h.File(p, Project)}}); len(got) > 0 {
			t.Errorf("%s: %+v", host, got)
		}
	}
}

// Every host needs something that init must say, and none of it is empty.
func TestNeeds(t *testing.T) {
	for _, h := range All() {
		if needs := strings.Join(h.Needs(Project), "\n"); needs == "" || strings.Contains(needs, "\n\n") {
			t.Errorf("%s: %q", h.Name, needs)
		}
	}
	h, _ := Find("codex")
	if strings.Contains(strings.Join(h.Needs(User), ""), "project") {
		t.Error("hooks of the user need no trusted project")
	}
}
