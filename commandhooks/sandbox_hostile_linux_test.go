package commandhooks

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stopgate/gate"
)

// TestSandboxIsOutsideOurProcessGroup: a Ctrl-C at the terminal goes to
// the whole foreground process group. "Ctrl-C finishes running evaluations":
// bwrap must not be in it, or every hook that runs ends as sandbox_unavailable
// and fails open.
func TestSandboxIsOutsideOurProcessGroup(t *testing.T) {
	r := newRunner(t, Options{})
	answered := make(chan gate.Verdict, 1)
	go func() { answered <- ask(t, r, "sleep 2; echo judged >&2; exit 2") }()
	var inGroup []string
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, pid := range childPIDs(t) {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			if group, err := syscall.Getpgid(pid); err == nil && group == syscall.Getpgrp() && strings.TrimSpace(string(name)) == "bwrap" {
				inGroup = append(inGroup, strconv.Itoa(pid))
			}
		}
		if len(inGroup) > 0 {
			break
		}
	}
	if len(inGroup) > 0 {
		t.Errorf("bwrap %s is in the gate's own process group", inGroup[0])
		// What the terminal would do to it:
		pid, _ := strconv.Atoi(inGroup[0])
		syscall.Kill(pid, syscall.SIGINT)
	}
	if v := <-answered; told(v) != "block judged" {
		t.Errorf("the hook's verdict was lost: %s", show(v))
	}
}

func childPIDs(t *testing.T) []int {
	t.Helper()
	var pids []int
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range tasks {
		list, _ := os.ReadFile(file)
		for _, f := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// TestSandboxSharedMemoryIsLimited: RLIMIT_DATA counts private memory alone, and
// none of a shared mapping of nothing or of /dev/zero.
func TestSandboxSharedMemoryIsLimited(t *testing.T) {
	r := newRunner(t, Options{Limits: Limits{Memory: 64 << 20}})
	needsPython(t, r)
	for _, how := range []string{"mmap.mmap(-1, 300 << 20)", "mmap.mmap(os.open('/dev/zero', os.O_RDWR), 300 << 20)"} {
		script := python + `
import mmap, os, sys
try: m = ` + how + `
except OSError: sys.exit(0)
for i in range(0, len(m), 4096): m[i] = 1
print('holds', len(m) >> 20, 'MiB with a limit of 64', file=sys.stderr)
sys.exit(2)`
		v := ask(t, r, script)
		if told(v) != "no_verdict signalled" || !strings.Contains(v.Failure.Message, "memory limit of 64 MiB") || v.Evidence.ExitCode != nil {
			t.Errorf("%s: %s", how, show(v))
		}
	}
}

// TestMemoryOfAllProcessesIsLimited: none of these processes passes the limit,
// and none lives in its parent's care.
func TestMemoryOfAllProcessesIsLimited(t *testing.T) {
	everyMode(t, Options{Limits: Limits{Memory: 64 << 20}}, func(t *testing.T, r *Runner) {
		needsPython(t, r)
		hold := func(processes int) string {
			return python + fmt.Sprintf(`
import os, sys, time
for _ in range(%d):
    if os.fork() == 0:
        if os.fork() == 0:
            held = bytearray(24 << 20)
            time.sleep(60)
        os._exit(0)
    os.wait()
time.sleep(1.5)
sys.exit(2)`, processes)
		}
		v := ask(t, r, hold(6))
		if told(v) != "no_verdict signalled" || !strings.Contains(v.Failure.Message, "memory limit of 64 MiB") {
			t.Errorf("6 processes of 24 MiB: %s", show(v))
		}
		if v := ask(t, r, hold(1)); told(v) != "block" {
			t.Errorf("one of them: %s", show(v))
		}
	})
}

// TestSandboxNetworkIsNoWayToLocalSockets: sandbox.network grants the network.
// Abstract unix sockets (an X server, a session bus, containerd-shim) hang on
// the same namespace and are no network.
func TestSandboxNetworkIsNoWayToLocalSockets(t *testing.T) {
	name := fmt.Sprintf("stopgate-test-%d", os.Getpid())
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go drop(l)
	r := newRunner(t, Options{Network: true})
	needsPython(t, r)
	v := ask(t, r, python+fmt.Sprintf(`
import socket, sys
try: socket.socket(socket.AF_UNIX).connect("\0%s")
except OSError: sys.exit(0)
sys.exit(2)`, name))
	if v.Outcome == gate.Block {
		t.Error("a hook with network can talk to the host's abstract sockets")
	}
}

// TestSandboxHiddenIsHiddenEverywhere: hidden is hidden, be it in a workspace,
// below /usr, or below the prefix of an interpreter, as ~/.local, which is where
// the default data directory lies.
func TestSandboxHiddenIsHiddenEverywhere(t *testing.T) {
	secretIn := func(t *testing.T, dir string) (hidden string) {
		hidden = mkdir(t, dir, "state", "stopgate")
		if err := os.WriteFile(filepath.Join(hidden, "stopgate.db"), []byte("THE RECORDS"), 0o644); err != nil {
			t.Fatal(err)
		}
		return hidden
	}
	look := func(t *testing.T, r *Runner, hidden string) {
		if v := ask(t, r, "cat '"+hidden+"/stopgate.db' >&2 && exit 2; exit 0"); v.Outcome == gate.Block {
			t.Errorf("a hook read the data directory: %s", v.Reason)
		}
	}
	t.Run("below an interpreter's prefix", func(t *testing.T) {
		local, err := os.MkdirTemp("/var/tmp", "stopgate-test-") // /tmp is another one inside
		if err != nil {
			t.Skip(err)
		}
		defer os.RemoveAll(local)
		if err := os.Chmod(local, 0o755); err != nil {
			t.Fatal(err)
		}
		hidden := secretIn(t, local)
		r := newRunner(t, Options{Workspace: Workspace{Hidden: []string{hidden}}})
		found := r.tools
		found.bash.prefixes = []string{local} // as of a python3 with --prefix=$HOME/.local
		useTools(t, r, found)
		look(t, r, hidden)
	})
	t.Run("below /usr", func(t *testing.T) {
		dir, err := os.MkdirTemp("/usr/local", "stopgate-test-")
		if err != nil {
			t.Skip(err)
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		hidden := secretIn(t, dir)
		look(t, newRunner(t, Options{Workspace: Workspace{Hidden: []string{hidden}}}), hidden)
	})
}

// TestSandboxTempDirIsInTheSystem: the self-test's canary lies in TMPDIR, which
// may be a place that every sandbox shows.
func TestSandboxTempDirIsInTheSystem(t *testing.T) {
	newRunner(t, Options{})
	dir, err := os.MkdirTemp("/usr/local", "stopgate-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	r, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Status(); !s.Working {
		t.Errorf("a sandbox that works is not used: %s", s.Reason)
	}
}
