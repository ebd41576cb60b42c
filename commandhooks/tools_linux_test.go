package commandhooks

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func clearCloseOnExec(t *testing.T, fd int) {
	t.Helper()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
}

const sandboxUID = outsideID

// plainSandboxWorks reports whether bubblewrap can be used here at all.
func plainSandboxWorks() bool {
	cmd := exec.Command("bwrap", "--unshare-user", "--unshare-net", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: sandboxUser()}
	return cmd.Run() == nil
}

// useTools makes a runner that found other tools.
func useTools(t *testing.T, r *Runner, found tools) {
	t.Helper()
	if r.opt.Mode == Process {
		r.start = direct{opt: r.opt, tools: found}.start
		return
	}
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBubblewrap(r.opt, found, bwrap)
	if err != nil {
		t.Fatal(err)
	}
	r.start = b.start
}

// TestOwnJQ: where the host has no jq, hooks find Self by that name.
func TestOwnJQ(t *testing.T) {
	self := filepath.Join(openDir(t), "stopgate")
	if err := os.WriteFile(self, []byte("#!/bin/sh\necho \"own ${0##*/} $1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	everyMode(t, Options{Self: self}, func(t *testing.T, r *Runner) {
		tools := r.tools
		tools.jq, tools.ownJQ, tools.path = self, true, "" // nothing but ours on the PATH
		useTools(t, r, tools)
		if v := ask(t, r, `jq .a >&2; exit 2`); told(v) != "block own jq .a" {
			t.Errorf("got %s", show(v))
		}
	})
}
