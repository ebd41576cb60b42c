package commandhooks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

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

// examine looks into a sandbox that is built, and fails if something in it is
// not what was looked at. Its mounts stay from now on, whatever is renamed.
func (x *boxed) examine(all []shown) error {
	root, err := openIn(unix.AT_FDCWD, "/proc/"+strconv.Itoa(x.init)+"/root", 0)
	if errors.Is(err, os.ErrPermission) {
		return errors.New("the gate may not look into it, and runs no hook that it cannot look after: " +
			"bwrap must not be setuid (chmod u-s), and a gate that is root needs CAP_SYS_PTRACE, or to be another user")
	}
	if err != nil {
		return fmt.Errorf("root of the sandbox: %w", err)
	}
	defer root.Close()
	for _, path := range []string{"/tmp", "/dev/shm"} {
		f, err := openIn(int(root.Fd()), path, unix.RESOLVE_IN_ROOT)
		if err != nil {
			return fmt.Errorf("%q in the sandbox: %w", path, err)
		}
		x.memory = append(x.memory, f)
	}
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

// openIn opens a path for looking at what it is, not at what is in it.
func openIn(dir int, path string, resolve uint64) (*os.File, error) {
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Base(path)), nil
}
