package commandhooks

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// awaitEnd returns when the child has ended, and leaves it to be waited for.
func awaitEnd(pid int) {
	const (
		pPID    = 1
		wExited = 0x4
		wNoWait = 0x20
	)
	var info [128]byte // at least a siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(pid), uintptr(unsafe.Pointer(&info)), wExited|wNoWait, 0, 0)
		if !errors.Is(errno, syscall.EINTR) {
			return
		}
	}
}

// closeOnExec marks every descriptor but the standard ones: Go does so with
// its own, but those that whoever started the gate left open would be in every
// hook's hands.
func closeOnExec() {
	entries, _ := os.ReadDir("/dev/fd")
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
