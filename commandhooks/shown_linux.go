package commandhooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// shown is a file or directory that was looked at before bwrap, which opens
// paths by itself, was told to mount it. In between, whoever owns one of the
// directories above may have put another in its place.
type shown struct {
	path string
	info os.FileInfo
	code gate.FailureCode // of the hook, if another is mounted
}

// examine waits until bwrap has built the sandbox, and fails if something in it
// is not what was looked at. The sandbox still waits for our word then, and its
// mounts stay whatever is renamed.
//
// A gate that is root without CAP_SYS_PTRACE, as in a container, may not look
// into the sandbox of another user; it takes what is mounted as it is.
func (x *boxed) examine(ctx context.Context, all []shown) error {
	if len(all) == 0 {
		return nil
	}
	root, err := x.root(ctx)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil
	case err != nil:
		return err
	}
	defer root.Close()
	for _, s := range all {
		f, err := openIn(int(root.Fd()), s.path, unix.RESOLVE_IN_ROOT)
		if err != nil {
			return fmt.Errorf("%q in the sandbox: %w", s.path, err)
		}
		info, err := f.Stat()
		f.Close()
		if err != nil || !os.SameFile(info, s.info) {
			return failed(s.code, "%q was exchanged for something else just before the hook ran", s.path)
		}
	}
	return nil
}

// examineEvery is a small part of the milliseconds that bwrap takes.
const examineEvery = 200 * time.Microsecond

// root is the sandbox's root directory once it is complete: bwrap goes from the
// host's to a bare one to that of the sandbox, which alone is of its own and
// has an /etc/passwd.
func (x *boxed) root(ctx context.Context) (*os.File, error) {
	host, err := os.Stat("/")
	if err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		root, err := openIn(unix.AT_FDCWD, "/proc/"+strconv.Itoa(x.init)+"/root", 0)
		if err != nil {
			return nil, fmt.Errorf("root of the sandbox: %w", err)
		}
		info, err := root.Stat()
		if err == nil && !os.SameFile(info, host) {
			if f, err := openIn(int(root.Fd()), "/etc/passwd", unix.RESOLVE_IN_ROOT); err == nil {
				f.Close()
				return root, nil
			}
		}
		root.Close()
		time.Sleep(examineEvery)
	}
	return nil, ctx.Err()
}

// openIn opens a path for looking at what it is, not at what is in it.
func openIn(dir int, path string, resolve uint64) (*os.File, error) {
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Base(path)), nil
}
