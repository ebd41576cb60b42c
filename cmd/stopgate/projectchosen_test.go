package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An agent that makes a project of its own, with hooks that have no objection, and
// works in it from then on, is judged by the project's that its session began in.
func TestAnAgentDoesNotChooseItsProject(t *testing.T) {
	write := func(t *testing.T, script string, path ...string) {
		t.Helper()
		file := filepath.Join(path...)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const refuses, allows = "#!/bin/bash\necho no >&2; exit 2\n", "#!/bin/bash\nexit 0\n"
	for _, tt := range []struct{ dialect, hooks, script string }{
		{"claude-code", `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"bash \"$CLAUDE_PROJECT_DIR/.claude/check.sh\""}]}]}}`, ".claude/check.sh"},
		{"ax-code", `{"hooks":[{"event":"PreToolUse","command":"bash .ax-code/check.sh","blockOnFailure":true}]}`, ".ax-code/check.sh"},
	} {
		t.Run(tt.dialect, func(t *testing.T) {
			root, data := t.TempDir(), t.TempDir()
			project := filepath.Join(root, "project")
			write(t, refuses, project, tt.script)
			write(t, "", project, "src", "a.go")
			file := "sandbox: {mode: process, workspace: read-only, workspace_roots: [" + root + "]}"
			ask := func(s *service, session, event, cwd string) string {
				t.Helper()
				body, _ := json.Marshal(map[string]any{"session_id": session, "hook_event_name": event, "cwd": cwd, "prompt": "do it",
					"tool_name": "Bash", "tool_input": map[string]string{"command": "ls"}})
				return s.want(200, "POST", "/v1/hooks/claude-code?agent=a", string(body))
			}
			denied := func(t *testing.T, s *service, session, cwd string, want bool) {
				t.Helper()
				if answer := ask(s, session, "PreToolUse", cwd); strings.Contains(answer, `"deny"`) != want {
					t.Errorf("in %s: %s, denied is to be %t", strings.TrimPrefix(cwd, root), answer, want)
				}
			}
			src, own := filepath.Join(project, "src"), filepath.Join(root, "own")
			t.Run("while it serves", func(t *testing.T) {
				s := withServerFile(t, data, file)
				s.want(202, "PUT", "/v1/agents/a/hooks?dialect="+tt.dialect, tt.hooks)
				ask(s, "s", "UserPromptSubmit", src) // which no hook is about
				denied(t, s, "quiet", src, true)

				write(t, allows, src, tt.script)
				write(t, allows, own, tt.script)
				write(t, allows, root, tt.script)
				for _, cwd := range []string{src, own, root} {
					denied(t, s, "s", cwd, true)
					denied(t, s, "quiet", cwd, true)
				}
				denied(t, s, "later", own, false) // a session that begins there is there
				denied(t, s, "", own, false)      // and without one nothing is known
			})
			t.Run("after a restart", func(t *testing.T) {
				s := withServerFile(t, data, file)
				denied(t, s, "s", own, true)
				s.want(204, "DELETE", "/v1/sessions/s", "")
				denied(t, s, "s", own, false)
				denied(t, s, "s", src, false)
			})
		})
	}
}
