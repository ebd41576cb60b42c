package wire

import (
	"slices"
	"testing"
)

// A matcher can meet the host's own names and their aliases, the shell first:
// doctor takes the first that a matcher has.
func TestKnownTools(t *testing.T) {
	for host, shell := range map[string]string{"claude-code": "Bash", "codex": "exec_command", "gemini-cli": "run_shell_command", "qwen-code": "run_shell_command", "copilot": "bash"} {
		known := KnownTools(host)
		if known[0] != shell || !slices.Contains(known, "Bash") || slices.Contains(known, "") {
			t.Errorf("%s: %v", host, known)
		}
	}
	if slices.Contains(KnownTools("codex"), "run_shell_command") {
		t.Error("codex has tools of another host")
	}
}
