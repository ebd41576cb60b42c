package commandhooks

import (
	"testing"

	"stopgate/gate"
)

// Hooks that refuse in their own system, and did here, are not switched off for
// something that they do very well without.
func TestHooksThatDoWithout(t *testing.T) {
	root, project := hookedProject(t)
	const refuses = `echo no >&2; exit 2`
	for _, w := range []Workspace{{}, {Access: ReadOnly, Roots: []string{root}}} {
		everyMode(t, Options{Workspace: w}, func(t *testing.T, r *Runner) {
			for _, line := range []string{
				`cd ~; ` + refuses, // which is there, and empty
				`cd "$HOME" && ` + refuses,
				`. ~/.profile 2>/dev/null; ` + refuses,
				`. ./.env 2>/dev/null || true; ` + refuses, // absent in this project, too
				`read -r host < /etc/hostname || true; read -r x < /etc/passwd; ` + refuses, // the sandbox has one of its own
				`false && bash hooks/ci.sh; ` + refuses,
				`if [ -n "$CI" ]; then bash hooks/ci.sh; fi; ` + refuses,
				`ruby -e 1 2>/dev/null || { ` + refuses + `; }`,
				`python3 -c 'open("made.sh", "w").write("` + refuses + `")' && bash made.sh`,
				`sort -o made.txt; wc -l < made.txt; ` + refuses,
			} {
				if w.Access == ReadOnly && (line[:6] == "python" || line[:6] == "sort -") {
					continue // nothing can be made there
				}
				if v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PreToolUse)); v.Outcome != gate.Block {
					t.Errorf("workspace %q: %s: got %s", w.Access, line, told(v))
				}
			}
		})
	}
}

// A variable of the host's that hooks of AX Code get is what it says, whatever its
// name ends in: what it names may well be in the sandbox.
func TestAProjectVariableOfTheHosts(t *testing.T) {
	_, project := hookedProject(t)
	everyMode(t, Options{HostEnv: []string{"POLICY_PROJECT_DIR=/usr/share"}}, func(t *testing.T, r *Runner) {
		v := ask(t, r, `cd "$POLICY_PROJECT_DIR" && echo no >&2 && exit 2`, inline, in(project), on(gate.PreToolUse), func(in *gate.Input) {
			in.Hook.Dialect, in.Hook.ReadsAnswer, in.Hook.Timeout = gate.AXCode, true, gate.DefaultTimeout
		})
		if v.Outcome != gate.Block {
			t.Errorf("got %s", show(v))
		}
	})
}
