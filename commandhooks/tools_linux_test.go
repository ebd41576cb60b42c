package commandhooks

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func clearCloseOnExec(t *testing.T, fd int) {
	t.Helper()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
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
