package commandhooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
)

// A project with a hook of its own that refuses, and one that has no objection.
func hookedProject(t *testing.T) (root, project string) {
	t.Helper()
	root = openDir(t)
	project = mkdir(t, root, "project")
	mkdir(t, project, "hooks")
	for name, text := range map[string]string{"no.sh": "#!/bin/bash\necho no >&2\nexit 2\n", "no.py": "import sys\nsys.exit('no')\n", "yes.sh": "#!/bin/bash\nexit 0\n"} {
		if err := os.WriteFile(filepath.Join(project, "hooks", name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root, project
}

// A server whose scripts do not see the project has no verdict of a hook that
// lies there, whatever an interpreter without its script would exit with.
func TestAScriptThatHooksDoNotSee(t *testing.T) {
	root, project := hookedProject(t)
	elsewhere := mkdir(t, openDir(t), "elsewhere")
	lines := []struct {
		name, line string
		args       []string // nil: a line
	}{
		{"python", `python3 hooks/no.py`, nil},
		{"bash", `bash hooks/no.sh`, nil},
		{"by its path", `./hooks/no.sh`, nil},
		{"behind cd", `cd hooks && ./no.sh`, nil},
		{"asked for first", `[ -x hooks/no.sh ] && hooks/no.sh`, nil},
		{"by a variable", `bash "$PWD/hooks/no.sh"`, nil},
		{"with arguments", `bash`, []string{"hooks/no.sh"}},
	}
	for _, w := range []struct {
		name      string
		workspace Workspace
		cwd       string
		want      string // what helps
	}{
		{"no workspace", Workspace{}, project, "set sandbox.workspace to read-only, and sandbox.workspace_roots"},
		{"another root", Workspace{Access: ReadOnly, Roots: []string{elsewhere}}, project, "under none of sandbox.workspace_roots"},
		{"in the gate's own data", Workspace{Access: ReadOnly, Roots: []string{root}, Hidden: []string{root}}, project, "data directory"},
	} {
		everyMode(t, Options{Workspace: w.workspace}, func(t *testing.T, r *Runner) {
			needsPython(t, r)
			for _, tt := range lines {
				t.Run(w.name+"/"+tt.name, func(t *testing.T) {
					v := ask(t, r, tt.line, ofClaudeCode, in(w.cwd), func(in *gate.Input) { in.Hook.Args = tt.args })
					if told(v) != "no_verdict script_missing" || !strings.Contains(v.Failure.Message, w.want) || (v.Evidence != nil) != (tt.name == "asked for first") {
						t.Errorf("got %s: %v", told(v), v.Failure)
					}
				})
			}
		})
	}
}

// What an agent lays into its project does not keep a hook from refusing by what else
// it looks at.
func TestAFileOfTheAgentsKeepsNoHookFromRefusing(t *testing.T) {
	root, project := hookedProject(t)
	symlink(t, "/opt/stopgate/none.sh", project, "lint.sh")
	refuses := `grep -q sudo && { echo no >&2; exit 2; }; exit 0`
	for _, w := range []Workspace{{}, {Access: ReadOnly, Roots: []string{root}}} {
		everyMode(t, Options{Workspace: w}, func(t *testing.T, r *Runner) {
			for _, line := range []string{
				`bash hooks/yes.sh 2>/dev/null || true; ` + refuses,
				`[ -x hooks/yes.sh ] && hooks/yes.sh </dev/null; ` + refuses,
				`if [ -f lint.sh ]; then bash lint.sh </dev/null; fi; ` + refuses,
				`bash lint.sh </dev/null; ` + refuses,
				`. hooks/yes.sh; ` + refuses,
			} {
				if strings.HasPrefix(line, ".") && w.Access != NoWorkspace && w.Access != "" { // it is read, and ends
					continue
				}
				v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PreToolUse), withContext([]byte(`{"tool_input":{"command":"sudo x"}}`)))
				if v.Outcome != gate.Block {
					t.Errorf("%s: got %s", line, show(v))
				}
			}
		})
	}
}

// Without the agent's directory on this machine nothing of it can be looked for.
func TestADirectoryThatIsNotHere(t *testing.T) {
	for _, mode := range []Access{NoWorkspace, ReadOnly} {
		everyMode(t, Options{Workspace: Workspace{Access: mode, Roots: []string{"/"}}}, func(t *testing.T, r *Runner) {
			needsPython(t, r)
			for _, cwd := range []string{"", "/stopgate/none"} {
				for _, line := range []string{`python3 "$CLAUDE_PROJECT_DIR/hooks/no.py"`, `python3 hooks/no.py`, `cd "$CLAUDE_PROJECT_DIR" && true`} {
					if v := ask(t, r, line, ofClaudeCode, in(cwd)); told(v) != "no_verdict script_missing" {
						t.Errorf("%s in %q: %s %v", line, cwd, told(v), v.Failure)
					}
				}
			}
		})
	}
}

// Every dialect, by its own law, since no law is about it.
func TestAScriptThatHooksDoNotSeeInEveryDialect(t *testing.T) {
	_, project := hookedProject(t)
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		needsPython(t, r)
		for _, d := range gate.Dialects {
			v := ask(t, r, `python3 hooks/no.py`, inline, in(project), on(gate.PreToolUse), func(in *gate.Input) {
				in.Hook.Dialect, in.Hook.BlockOnFailure, in.Hook.Timeout = d, true, gate.DefaultTimeout
			})
			if told(v) != "no_verdict script_missing" {
				t.Errorf("%s: %s %v", d, told(v), v.Failure)
			}
		}
	})
}

// What hooks see is run, and what is missing there is their own fault, with what
// their own system makes of it (spec/claude-code.md 3).
func TestAScriptThatHooksSee(t *testing.T) {
	root, project := hookedProject(t)
	everyMode(t, Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}}, func(t *testing.T, r *Runner) {
		for _, tt := range []struct{ name, line, want string }{
			{"by a variable", `bash "$CLAUDE_PROJECT_DIR/hooks/no.sh"`, "block no"},
			{"by its path", `hooks/no.sh`, "block no"},
			{"behind cd", `cd "$CLAUDE_PROJECT_DIR/hooks" && ./no.sh`, "block no"},
			{"no objection", `bash ./hooks/yes.sh`, "allow"},
			{"a typing error: bash goes on", `bash hooks/nosuch.sh`, "no_verdict nonzero_exit"},
		} {
			if v := ask(t, r, tt.line, ofClaudeCode, in(project)); told(v) != tt.want {
				t.Errorf("%s: got %s %v, want %s", tt.name, told(v), v.Failure, tt.want)
			}
		}
		if needsPython(t, r); !strings.HasPrefix(told(ask(t, r, `python3 hooks/nosuch.py`, ofClaudeCode, in(project))), "block ") {
			t.Error("a typing error: python3 does not block as there")
		}
	})
}

// A hook that needs nothing of the project is run as ever.
func TestHooksThatNeedNoProject(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		for _, tt := range []struct{ name, line, want string }{
			{"a mention", `echo "see docs/rules.md" >&2; exit 2`, "block see docs/rules.md"},
			{"asked for, and not there", `[ -x ./nosuch.sh ] && ./nosuch.sh; exit 0`, "allow"},
			{"made by itself", `printf 'exit 0' > x.sh && bash x.sh`, "allow"},
			{"in the system", `bash /usr/bin/true || exit 0`, "allow"},
		} {
			if v := ask(t, r, tt.line, ofClaudeCode, in(openDir(t))); told(v) != tt.want {
				t.Errorf("%s: got %s %v, want %s", tt.name, told(v), v.Failure, tt.want)
			}
		}
	})
}

// What lies outside of the sandbox, and interpreters that it has not.
func TestWhatTheSandboxDoesNotHold(t *testing.T) {
	root, project := hookedProject(t)
	r := newRunner(t, Options{Mode: Bubblewrap, Workspace: Workspace{Access: ReadOnly, Roots: []string{project}}})
	needsPython(t, r)
	for _, tt := range []struct{ line, want string }{
		{`python3 /opt/hooks/x.py`, "no_verdict script_missing"},
		{`python3 ~/.claude/hooks/x.py`, "no_verdict script_missing"},
		{`python3 "$CLAUDE_PLUGIN_ROOT/x.py"`, "no_verdict script_missing"},
		{`bash ` + filepath.Join(project, "hooks", "no.sh"), "block no"},
		{`ruby -e 'puts 1'`, "no_verdict interpreter_missing"},
	} {
		if strings.HasPrefix(tt.line, "ruby") && len(candidates(filepath.SplitList(systemPath), "ruby")) > 0 {
			continue
		}
		if v := ask(t, r, tt.line, ofClaudeCode, in(project)); told(v) != tt.want {
			t.Errorf("%s: got %s %v, want %s", tt.line, told(v), v.Failure, tt.want)
		}
	}
	if v := ask(t, newRunner(t, Options{Mode: Bubblewrap}), `bash `+filepath.Join(project, "hooks", "no.sh"), ofClaudeCode, in(project)); told(v) != "no_verdict script_missing" {
		t.Errorf("a whole path below %s: got %s %v", root, told(v), v.Failure)
	}
}

// What can be said of a hook before there is an event.
func TestUnserved(t *testing.T) {
	root, _ := hookedProject(t)
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		for line, want := range map[string]string{
			`bash hooks/no.sh`:        "script_missing",
			`bash ~/x.sh`:             "script_missing",
			`bash ~/x.sh; exit 2`:     "script_missing, asked",
			`bash ~/x.sh || exit 2`:   "",
			`echo a/b; exit 2`:        "",
			`[ -x ./x.sh ] && ./x.sh`: "",
		} {
			unservedIs(t, r, line, want)
		}
	})
	everyMode(t, Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}}, func(t *testing.T, r *Runner) {
		needsPython(t, r)
		unservedIs(t, r, `python3 "$CLAUDE_PROJECT_DIR/hooks/no.py"`, "")
		unservedIs(t, r, `bash hooks/no.sh`, "")
		unservedIs(t, r, `bash `+root+`/project/hooks/no.sh`, "")
	})
	unservedIs(t, newRunner(t, Options{Mode: Bubblewrap}), `bash "$CLAUDE_PROJECT_DIR/hooks/no.sh"`, "script_missing")
	unservedIs(t, newRunner(t, Options{Mode: Process}), `bash "$CLAUDE_PROJECT_DIR/hooks/no.sh"`, "") // which is seen by its name
	in := input(`bash "$CLAUDE_PROJECT_DIR/hooks/no.sh"`, ofClaudeCode)
	if f, _ := newRunner(t, Options{Mode: Bubblewrap}).Unserved(in.Hook); f == nil || !strings.Contains(f.Message, `"$CLAUDE_PROJECT_DIR/hooks/no.sh"`) {
		t.Errorf("the message names what the hook does not: %v", f)
	}
	off, err := New(t.Context(), complete(Options{Mode: Off}))
	if err != nil {
		t.Fatal(err)
	}
	unservedIs(t, off, `true`, "sandbox_unavailable")
}

func unservedIs(t *testing.T, r *Runner, line, want string) {
	t.Helper()
	in := input(line, ofClaudeCode)
	got := ""
	if f, asked := r.Unserved(in.Hook); f != nil {
		if got = string(f.Code); asked {
			got += ", asked"
		}
	}
	if got != want {
		t.Errorf("%s: got %q, want %q", line, got, want)
	}
}
