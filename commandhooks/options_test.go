package commandhooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/internal/scratch"
)

func TestOptionsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		name string
		opt  Options
		want string
	}{
		{"mode", Options{Mode: "docker"}, `mode "docker"`},
		{"workspace", Options{Mode: Off, Workspace: Workspace{Access: "all"}}, `workspace "all"`},
		{"parallel", Options{Mode: Off, Parallel: -1}, "parallel is -1"},
		{"forks without a pool", Options{Mode: Off, ForkPython: true}, "its pool is 0"},
		{"memory", Options{Mode: Off, Limits: Limits{Memory: 1}}, "memory is 1"},
		{"file size", Options{Mode: Off, Limits: Limits{FileSize: -1}}, "file size is -1"},
		{"no limits", Options{Mode: Off, Parallel: 1}, "open files is 0"},
		{"name of a variable", Options{Mode: Off, Env: map[string]string{"A=B": "x"}}, `"A=B"`},
		{"value of a variable", Options{Mode: Off, Env: map[string]string{"A": "x\x00"}}, `"A"`},
		{"all at once", Options{Mode: "x", Parallel: -1}, "parallel is -1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(t.Context(), tt.opt); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestUnavailableRunsNothing: there is no way from a sandbox that does not
// work to a script that runs without one.
func TestUnavailableRunsNothing(t *testing.T) {
	r, err := New(t.Context(), complete(Options{Mode: Off}))
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Status(); s.Working || s.Mode != Off || s.Reason == "" {
		t.Errorf("status %+v", s)
	}
	mark := filepath.Join(t.TempDir(), "mark")
	v := ask(t, r, "touch '"+mark+"'")
	if told(v) != "no_verdict sandbox_unavailable" || !strings.Contains(v.Failure.Message, "switched off") {
		t.Errorf("got %s", show(v))
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the script was run")
	}
}

func TestAutoIsBubblewrapOrNothing(t *testing.T) {
	r, err := New(t.Context(), complete(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	s := r.Status()
	if s.Mode != Bubblewrap || s.Working == (s.Reason != "") {
		t.Errorf("status %+v", s)
	}
	if v := ask(t, r, `grep -q '^Seccomp:.*2' /proc/self/status || exit 2`); s.Working && told(v) != "allow" || !s.Working && told(v) != "no_verdict sandbox_unavailable" {
		t.Errorf("got %s", show(v))
	}
}

// TestPythonBehindAShim: the interpreter is the one that the shim would start,
// asked once.
func TestPythonBehindAShim(t *testing.T) {
	real := newRunner(t, Options{Mode: Process})
	needsPython(t, real)
	dir := openDir(t)
	shim := filepath.Join(dir, "python3")
	if err := os.WriteFile(shim, []byte("#!/bin/sh\nexec '"+real.Status().Python+"' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p, ok := realPython(t.Context(), shim, []string{dir, "/usr/bin", "/bin"})
	if !ok || p.file != real.Status().Python {
		t.Errorf("got %+v, %t, want %s", p, ok, real.Status().Python)
	}
	if err := os.WriteFile(shim, []byte("#!/bin/sh\necho not found >&2; exit 127\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if p, ok := realPython(t.Context(), shim, []string{dir, "/usr/bin", "/bin"}); ok {
		t.Errorf("a shim without a python is %+v", p)
	}
}

// What a gate that was killed left behind goes when the next one starts.
func TestNewSweeps(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	d, err := scratch.Make("")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.Path(), 0o700); err != nil { // as it was, but nobody's
		t.Fatal(err)
	}
	if _, err := New(t.Context(), complete(Options{Mode: Off})); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}
