//go:build unix

package commandhooks

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// readNow reads from a non-blocking descriptor; what interrupts it is tried
// again.
func readNow(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// writeNow writes what a pipe takes without waiting, and answers how much that was.
// What goes wrong is met again by who writes the rest.
func writeNow(pipe *os.File, content []byte) (written int) {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Write(func(fd uintptr) bool {
		for {
			n, err := unix.Write(int(fd), content)
			if !errors.Is(err, unix.EINTR) {
				written = max(n, 0)
				return true
			}
		}
	})
	return written
}

// readState is how a process ended that we started ourselves.
func readState(state *os.ProcessState, e *ending) *gate.Failure {
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return failed(gate.Internal, "the hook's end could not be read")
	case status.Signaled():
		e.signal = signalName(status.Signal())
	default:
		e.code = status.ExitStatus()
	}
	return nil
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return s.String()
}

// couldNotStart says why a program was not started.
func couldNotStart(file string, err error) *gate.Failure {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return failed(gate.InterpreterMissing, "%s is no longer there: %v", file, err)
	}
	return failed(gate.Internal, "the hook could not be started: %v", err)
}
