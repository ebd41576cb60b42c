//go:build e2e

package e2e_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

func byhand(t *testing.T, a agent, home, project, url, name string) {
	curl := installed(t, "bin", "stopgate") + " hook --protocol " + a.host + " --agent " + name + " --server " + url
	group := func(timeout int, matcher bool) []any {
		g := map[string]any{"hooks": []any{map[string]any{"type": "command", "command": curl, "timeout": timeout}}}
		if matcher {
			g["matcher"] = "*"
		}
		return []any{g}
	}
	var file, events any
	switch a.host {
	case "gemini-cli":
		events = map[string]any{"SessionStart": group(30000, false), "BeforeAgent": group(30000, false), "BeforeTool": group(30000, true), "AfterTool": group(30000, true), "AfterAgent": group(30000, false)}
		file = filepath.Join(project, ".gemini", "settings.json")
	case "codex":
		events = map[string]any{"SessionStart": group(30, false), "UserPromptSubmit": group(30, false), "PreToolUse": group(30, true), "PostToolUse": group(30, true), "Stop": group(30, false)}
		file = filepath.Join(project, ".codex", "hooks.json")
	default:
		events = map[string]any{"SessionStart": group(30000, false), "UserPromptSubmit": group(30000, false), "PreToolUse": group(30000, true), "PostToolUse": group(30000, true), "Stop": group(30000, false)}
		file = filepath.Join(project, ".qwen", "settings.json")
	}
	b, _ := json.MarshalIndent(map[string]any{"hooks": events}, "", " ")
	writeFile(t, file.(string), string(b))
}
