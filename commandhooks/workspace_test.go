package commandhooks

import (
	"os"
	"path/filepath"
	"testing"

	"stopgate/gate"
)

// openDir is a temporary directory that everybody may enter, as the sandbox's
// user of a root gate must.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// giveToSandbox makes files the sandbox's user's own, so that nothing but the
// mount keeps it from writing them. A gate that is not root owns them already.
func giveToSandbox(t *testing.T, paths ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for _, path := range paths {
		if err := os.Chown(path, sandboxUID, sandboxUID); err != nil {
			t.Fatal(err)
		}
	}
}

func mkdir(t *testing.T, elem ...string) string {
	t.Helper()
	dir := filepath.Join(elem...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func symlink(t *testing.T, target string, elem ...string) string {
	t.Helper()
	link := filepath.Join(elem...)
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func in(cwd string) func(*gate.Input) { return func(in *gate.Input) { in.Event.Cwd = cwd } }

func TestWorkspaceIsFoundUnderARoot(t *testing.T) {
	base := openDir(t)
	root := mkdir(t, base, "root")
	inside, evil, data := mkdir(t, root, "project"), mkdir(t, base, "root-evil"), mkdir(t, root, "data", "deep")
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, into := symlink(t, evil, root, "out"), symlink(t, inside, base, "into")
	w := Workspace{Access: ReadOnly, Roots: []string{"/stopgate/none", root}, Hidden: []string{filepath.Join(root, "data")}}
	for _, tt := range []struct{ name, cwd, want string }{
		{"the root", root, root},
		{"below it", inside, inside},
		{"not clean", root + "//project/../project/", inside},
		{"by a link from outside, at its own path", into, into},
		{"by a link to outside", out, ""},
		{"a name that only begins alike", evil, ""},
		{"above", base, ""},
		{"dots to outside", inside + "/../../root-evil", ""},
		{"in a hidden directory", data, ""},
		{"a file", file, ""},
		{"gone", filepath.Join(root, "none"), ""},
		{"relative", "root", ""},
		{"empty", "", ""},
		{"the sandbox's own", "/usr/bin", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, why := w.find("working directory", tt.cwd); got.path != tt.want || (why == "") != (tt.want != "") {
				t.Errorf("find(%q) = %q, %q, want %q", tt.cwd, got.path, why, tt.want)
			}
		})
	}
	everywhere := Workspace{Access: ReadOnly, Roots: []string{"/"}}
	for _, cwd := range []string{"/", "/tmp", "/usr", "/usr/lib", "/etc", "/proc/self", "/dev"} {
		if got, why := everywhere.find("working directory", cwd); why == "" {
			t.Errorf("find(%q) = %q under the root /", cwd, got.path)
		}
	}
	if _, why := (Workspace{Access: NoWorkspace, Roots: []string{root}}).find("working directory", inside); why == "" {
		t.Error("a workspace was found although there is none")
	}
}

func TestWorkspace(t *testing.T) {
	root := openDir(t)
	project := mkdir(t, root, "project")
	if err := os.WriteFile(filepath.Join(project, "main.go"), []byte("package main"), 0o644); err != nil {
		t.Fatal(err)
	}
	data := mkdir(t, project, ".stopgate")
	giveToSandbox(t, project, filepath.Join(project, "main.go"))
	conversation := filepath.Join(data, "view.txt")
	if err := os.WriteFile(conversation, []byte("said"), 0o600); err != nil {
		t.Fatal(err)
	}
	options := func(a Access) Options {
		return Options{Workspace: Workspace{Access: a, Roots: []string{root}, Hidden: []string{data}}}
	}
	t.Run("none", func(t *testing.T) {
		r := newRunner(t, options(NoWorkspace))
		if v := ask(t, r, `[ -e '`+project+`' ] && exit 2; pwd >&2; exit 2`, in(project)); told(v) != "block /tmp" {
			t.Errorf("got %s", show(v))
		}
	})
	t.Run("read-only", func(t *testing.T) {
		everyMode(t, options(ReadOnly), func(t *testing.T, r *Runner) {
			if v := ask(t, r, `echo "$PWD $(cat main.go)" >&2; exit 2`, in(project)); told(v) != "block "+project+" package main" {
				t.Errorf("got %s", show(v))
			}
		})
		r := newRunner(t, options(ReadOnly))
		if v := ask(t, r, `{ echo > new; } 2>/dev/null && exit 2; { echo >> main.go; } 2>/dev/null && exit 2; exit 0`, in(project)); told(v) != "allow" {
			t.Errorf("written: got %s", show(v))
		}
		if v := ask(t, r, `ls -A .stopgate >&2; chmod 700 .stopgate 2>/dev/null; { echo > .stopgate/x; } 2>/dev/null && echo written >&2; exit 2`, in(project)); told(v) != "block" {
			t.Errorf("hidden directory: got %s", show(v))
		}
		if v := ask(t, r, `cat '`+conversation+`' >&2; exit 2`, in(project), withTranscript(conversation, "")); told(v) != "block said" {
			t.Errorf("transcript in it: got %s", show(v))
		}
		if v := ask(t, r, `pwd >&2; exit 2`, in("/stopgate/none")); told(v) != "block /tmp" {
			t.Errorf("elsewhere: got %s", show(v))
		}
	})
	t.Run("read-write", func(t *testing.T) {
		r := newRunner(t, options(ReadWrite))
		if os.Geteuid() == 0 {
			if err := os.Chown(project, 0, 0); err != nil {
				t.Fatal(err)
			}
			v := ask(t, r, `exit 0`, in(project))
			if told(v) != "no_verdict sandbox_unavailable" {
				t.Errorf("root's own directory: got %s", show(v))
			}
			const owner = 54321
			if err := os.Chown(project, owner, owner); err != nil {
				t.Fatal(err)
			}
		}
		if v := ask(t, r, `echo built > result && cat result >&2; exit 2`, in(project)); told(v) != "block built" {
			t.Errorf("got %s", show(v))
		}
		if b, err := os.ReadFile(filepath.Join(project, "result")); string(b) != "built\n" {
			t.Errorf("result is %q, %v", b, err)
		}
	})
}

// A data directory may be named relative to the working directory.
func TestHiddenMayBeRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	r := newRunner(t, Options{Workspace: Workspace{Hidden: []string{"data"}}})
	if v := ask(t, r, "exit 0"); told(v) != "allow" {
		t.Errorf("got %s", show(v))
	}
}
