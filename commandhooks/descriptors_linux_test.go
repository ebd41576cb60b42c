package commandhooks

import (
	"testing"

	"golang.org/x/sys/unix"
)

func clearCloseOnExec(t *testing.T, fd int) {
	t.Helper()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
}
