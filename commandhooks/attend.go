//go:build unix

package commandhooks

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// attend keeps what a hook writes, and returns when there is something to read from
// end, or nothing ever will be. It is one thread that sleeps for all three: most hooks
// write a line and end, and to wake a reader of each stream for that is a good part of
// what one takes that was started ahead.
func (s *streams) attend(end *os.File) {
	const ended = len(s.outputs)
	all := make([]unix.PollFd, ended+1)
	for i, f := range []*os.File{s.outputs[0].pipe, s.outputs[1].pipe, end} {
		all[i] = unix.PollFd{Fd: descriptor(f), Events: unix.POLLIN}
	}
	for {
		_, err := unix.Poll(all, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || all[ended].Revents != 0:
			return
		}
		for i, c := range s.outputs {
			if all[i].Revents == 0 {
				continue
			}
			if c.drain(); c.atEnd {
				all[i].Fd = -1 // else poll would not sleep again
			}
		}
	}
}

// descriptor is a file's number, which stays the runtime's to wait on; -1: it is
// closed.
func descriptor(f *os.File) int32 {
	number := int32(-1)
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { number = int32(fd) })
	}
	return number
}
