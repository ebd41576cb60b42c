package commandhooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
)

// Hooks of antigravity have the project's .agents at /.agents, read-only, where they
// see the project, and it alone: no link leads elsewhere. Where they do not, the hook
// is not run, and the message says what helps.
func TestAntigravity02AgentsDirectory(t *testing.T) {
	root := openDir(t)
	project := mkdir(t, root, "project")
	file := filepath.Join(mkdir(t, project, ".agents"), "x.py")
	if err := os.WriteFile(file, []byte(`print('{"decision":"deny","reason":"x.py"}')`), 0o644); err != nil {
		t.Fatal(err)
	}
	giveToSandbox(t, project, filepath.Dir(file), file)
	symlink(t, filepath.Dir(file), mkdir(t, root, "linked"), ".agents")
	bare := mkdir(t, root, "bare")
	of := func(named string) func(*gate.Input) {
		return func(in *gate.Input) {
			in.Hook.Dialect, in.Hook.Command, in.Hook.Script = gate.Antigravity, in.Hook.Script, ""
			in.Event.Name, in.Hook.Event, in.Event.Cwd, in.Event.Project = gate.PreToolUse, gate.PreToolUse, named, named
		}
	}
	deny := func(of string) string {
		return `printf '{"decision":"deny","reason":"%s"}' "$(` + of + `)"`
	}
	for _, access := range []Access{ReadOnly, ReadWrite} {
		r := newRunner(t, Options{Mode: Bubblewrap, Workspace: Workspace{Access: access, Roots: []string{root}}})
		needsPython(t, r)
		for _, tt := range []struct{ name, command, project, want string }{
			{"a script", "python3 /.agents/x.py", project, "block x.py"},
			{"written", deny("touch /.agents/y 2>/dev/null || echo no"), project, "block no"},
			{"a link", "python3 /.agents/x.py", filepath.Join(root, "linked"), "no_verdict script_missing"},
			{"a project without", "python3 /.agents/x.py", bare, "no_verdict script_missing"},
			{"a project elsewhere", "python3 /.agents/x.py", "/elsewhere", "no_verdict script_missing"},
		} {
			t.Run(string(access)+" "+tt.name, func(t *testing.T) {
				if v := ask(t, r, tt.command, of(tt.project)); told(v) != tt.want {
					t.Errorf("%s (%v), want %s", told(v), v.Failure, tt.want)
				}
			})
		}
		in := input("python3 /.agents/x.py", of(project))
		if f, _ := r.Unserved(in.Hook); f != nil {
			t.Errorf("%s: said to be missing before there is a project: %v", access, f)
		}
		if v := ask(t, r, "python3 /.agents/x.py", ofClaudeCode, func(in *gate.Input) { in.Event.Cwd, in.Event.Project = project, project }); told(v) != "no_verdict script_missing" {
			t.Errorf("a hook of another system sees it: %s", told(v))
		}
	}
	in := input("python3 /.agents/x.py", of(project))
	f, _ := newRunner(t, Options{Mode: Bubblewrap}).Unserved(in.Hook)
	if f == nil || !strings.Contains(f.Message, "/.agents is the project's own .agents where hooks see it") || !strings.Contains(f.Message, "sandbox.workspace") {
		t.Errorf("without a workspace: %v", f)
	}
}
