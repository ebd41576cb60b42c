package commandhooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
)

// of names the agent's project, as its host does.
func of(project string) func(*gate.Input) {
	return func(in *gate.Input) { in.Event.Project = project }
}

// An agent that changes its directory stays on its project: there its hooks' scripts
// are, and hooks start where it works.
func TestClaudeCodeHooksFindTheProjectWhereverTheAgentWorks(t *testing.T) {
	root := openDir(t)
	project := mkdir(t, root, "project")
	src := mkdir(t, project, "src", "deep")
	guard := filepath.Join(mkdir(t, project, ".claude", "hooks"), "guard.sh")
	if err := os.WriteFile(guard, []byte("pwd -P; echo found >&2; exit 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	beside, linked := mkdir(t, root, "beside"), symlink(t, mkdir(t, root, "behind", "it"), project, "link")
	outside := mkdir(t, openDir(t), "project")
	everyMode(t, Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}}, func(t *testing.T, r *Runner) {
		for _, tt := range []struct{ name, cwd, named, want, start string }{
			{"below it", src, project, "block found", src},
			{"below it, not named", src, "", "block found", src},
			{"in it", project, "", "block found", project},
			{"beside it", beside, project, "block found", beside},
			{"behind a link in it", linked, project, "block found", filepath.Join(root, "behind", "it")},
			{"named by no whole path", src, "project", "block found", src},
			{"elsewhere, where hooks see nothing", outside, project, "block found", ""},
			{"without a directory", "", project, "block found", ""},
		} {
			v := ask(t, r, `bash "$CLAUDE_PROJECT_DIR/.claude/hooks/guard.sh"`, ofClaudeCode, in(tt.cwd), of(tt.named))
			if told(v) != tt.want || tt.start != "" && strings.TrimSpace(v.Evidence.Stdout) != tt.start {
				t.Errorf("%s: %s", tt.name, show(v))
			}
		}
	})
	confined := newRunner(t, Options{Mode: Bubblewrap, Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}})
	v := ask(t, confined, `bash "$CLAUDE_PROJECT_DIR/.claude/hooks/guard.sh"`, ofClaudeCode, in(src), of(outside))
	if told(v) != "no_verdict script_missing" || !strings.Contains(v.Failure.Message, `project "`+outside+`" lies under none`) {
		t.Errorf("a project under no root: %s", show(v))
	}
	if v := ask(t, confined, `cat "`+outside+`/x" 2>/dev/null; ls "`+outside+`" && exit 2`, ofClaudeCode, in(src), of(outside)); told(v) == "block" {
		t.Errorf("a project under no root is seen: %s", show(v))
	}
}

// Hooks find their settings' variables, but for those that would change what runs
// round them: the loader's hold for the sandbox's own program too.
func TestClaudeCodeHooksFindTheirVariables(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		v := ask(t, r, `echo "$POLICY ${LD_PRELOAD-none} ${OPTIND} ${STOPGATE_API_KEY-none} $PATH"`, ofClaudeCode, func(in *gate.Input) {
			in.Hook.Env = map[string]string{"POLICY": "strict", "LD_PRELOAD": "/x.so", "OPTIND": "x", "STOPGATE_API_KEY": "k", "PATH": "/x", "BAD=NAME": "x", "NUL": "a\x00b"}
		})
		if got := v.Evidence.Stdout; told(v) != "allow" || !strings.HasPrefix(got, "strict none 1 none ") || strings.Contains(got, "/x") {
			t.Errorf("got %s", show(v))
		}
	})
}

func TestProject(t *testing.T) {
	home := openDir(t)
	mkdir(t, home, ".claude") // a person's own
	repo := mkdir(t, home, "repo")
	mkdir(t, repo, ".git")
	plain := mkdir(t, home, "plain", "src")
	hooked := mkdir(t, home, "hooked")
	mkdir(t, hooked, ".claude")
	mkdir(t, hooked, ".ax-code")
	mkdir(t, hooked, ".git")
	module := mkdir(t, hooked, "vendor", "module", "src")
	mkdir(t, hooked, "vendor", "module", ".git")
	aside := symlink(t, mkdir(t, home, "plain", "aside"), hooked, "aside")
	for _, tt := range []struct {
		name    string
		dialect gate.Dialect
		root    string
		cwd     string
		want    string
	}{
		{"a repository inside the project's", gate.ClaudeCode, home, module, hooked},
		{"of AX Code", gate.AXCode, home, module, hooked},
		{"a home's settings are none of a repository in it", gate.ClaudeCode, home, mkdir(t, repo, "src"), repo},
		{"a repository, where there is no directory of the system's", gate.AXCode, home, filepath.Join(repo, "src"), repo},
		{"never above a root", gate.ClaudeCode, filepath.Join(hooked, "vendor"), filepath.Join(hooked, "vendor"), filepath.Join(hooked, "vendor")},
		{"nothing", gate.AXCode, home, plain, plain},
		{"under no root", gate.ClaudeCode, repo, hooked, hooked},
		{"a link leads out of it", gate.ClaudeCode, home, aside, aside},
		{"hooks that know no project", gate.Azure, home, module, module},
		{"relative", gate.ClaudeCode, home, "src", "src"},
		{"unknown", gate.ClaudeCode, home, "", ""},
	} {
		w := Workspace{Access: ReadOnly, Roots: []string{tt.root}}
		if got := w.project(tt.dialect, tt.cwd, ""); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	w := Workspace{}
	if got := w.project(gate.Azure, "/a", "/p/../q"); got != "/q" {
		t.Errorf("named: %q", got)
	}
}
