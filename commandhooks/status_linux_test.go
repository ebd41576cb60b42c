package commandhooks

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeBwrap is a shell script in bwrap's place.
func fakeBwrap(t *testing.T, script string) *bubblewrap {
	t.Helper()
	real := newRunner(t, Options{Mode: Process})
	file := filepath.Join(openDir(t), "bwrap")
	if err := os.WriteFile(file, []byte("#!/bin/bash\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := newBubblewrap(real.opt, real.tools, file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSelfTestNamesTheCause(t *testing.T) {
	for _, tt := range []struct{ name, bwrap, want string }{
		{"fault G67: what bwrap says is passed on", `echo 'bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted' >&2; exit 1`, "Failed RTM_NEWADDR: Operation not permitted"},
		{"fault G68: no namespaces in a container", `echo 'bwrap: No permissions to create new namespace' >&2; exit 1`, "No permissions to create new namespace"},
		{"exits at once", `exit 0`, "could not set the sandbox up"},
		{"prose for a status", `for a; do [ "$p" = --json-status-fd ] && echo hello >&$a; p=$a; done; exec sleep 5`, "names no process"},
		{"dies during its set-up", `exec bwrap --ro-bind /stopgate/none /mnt "$@"`, "Can't find source path /stopgate/none"},
		{"not tight", `exec bwrap --ro-bind /var/tmp /var/tmp "$@"`, "not tight: the host's files can be seen"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasPrefix(tt.bwrap, "exec bwrap") {
				newRunner(t, Options{})
			}
			t.Setenv("TMPDIR", "/var/tmp") // for the canary; /tmp is another one inside
			err := fakeBwrap(t, tt.bwrap).selfTest(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
	for _, tt := range []struct{ name, bwrap string }{
		{"hangs", `exec sleep 60`},
		{"loads no filter", `while (($#)); do if [ "$1" = --seccomp ]; then shift; else args+=("$1"); fi; shift; done; exec bwrap "${args[@]}"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			began := time.Now()
			if err := fakeBwrap(t, tt.bwrap).selfTest(ctx); err == nil || time.Since(began) > 5*time.Second {
				t.Errorf("got %v after %s", err, time.Since(began))
			}
		})
	}
}

func TestHints(t *testing.T) {
	const userns, clone, apparmor = "/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/unprivileged_userns_clone",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	for _, tt := range []struct {
		name, said string
		settings   map[string]int
		want       string
	}{
		{"switched off", "x", map[string]int{userns: 0, apparmor: 1}, "user.max_user_namespaces"},
		{"switched off for users", "x", map[string]int{userns: 9, clone: 0}, "unprivileged_userns_clone=1"},
		{"fault G67: AppArmor", "bwrap: setting up uid map: Permission denied", map[string]int{userns: 9, apparmor: 1}, "apparmor_restrict_unprivileged_userns=0"},
		{"fault G70: container", "bwrap: No permissions to create new namespace", map[string]int{userns: 9}, "seccomp=unconfined"},
		{"an old bubblewrap", "bwrap: Unknown option --size", map[string]int{userns: 9, apparmor: 1}, "too old"},
		{"all settings are well", "bwrap: Can't find source path", map[string]int{userns: 9, clone: 1, apparmor: 0}, ""},
		{"no settings known", "execvp", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := hintFor(tt.said, func(path string) (int, bool) { n, ok := tt.settings[path]; return n, ok })
			if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("got %q, want %q in it", got, tt.want)
			}
		})
	}
}

// TestPermits: who may read what decides between a mount and a copy.
func TestPermits(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give files away")
	}
	dir := openDir(t)
	user := sandboxUser()
	write := func(name string, mode os.FileMode, uid, gid int) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	closed := write("closed/file", 0o644, 0, 0)
	if err := os.Chmod(filepath.Dir(closed), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path string
		want       bool
	}{
		{"everybody", write("all", 0o644, 0, 0), true},
		{"root alone", write("root", 0o600, 0, 0), false},
		{"own", write("own", 0o400, outsideID, 0), true},
		{"own, but closed to the owner", write("shut", 0o044, outsideID, 0), false},
		{"own group", write("group", 0o640, 0, outsideID), true},
		{"below a closed directory", closed, false},
		{"gone", filepath.Join(dir, "none"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := permits(tt.path, user, 0o4); got != tt.want {
				t.Errorf("permits = %t", got)
			}
		})
	}
}

// A bwrap whose gate has died can still write its status: it must not be ended
// by that alone, and leave its child waiting.
func TestStatusPipeOutlivesTheGate(t *testing.T) {
	s := &sandbox{files: make([]*os.File, 3)}
	_, ours := s.hear()
	if s.err != nil {
		t.Fatal(s.err)
	}
	defer s.close()
	ours.Close()
	if _, err := s.files[3].WriteString("status"); err != nil {
		t.Errorf("bwrap's end, ours closed: %v", err)
	}
}
