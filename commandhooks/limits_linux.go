package commandhooks

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// put sets the limits on a process that waits. Its user namespace is its own
// already, so that the number of processes is counted in there alone.
func (l Limits) put(pid int) error {
	for _, limit := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_DATA, uint64(l.Memory)},
		{unix.RLIMIT_NPROC, uint64(l.Processes)},
		{unix.RLIMIT_FSIZE, uint64(l.FileSize)},
		{unix.RLIMIT_NOFILE, uint64(l.OpenFiles)},
		{unix.RLIMIT_CPU, uint64(l.CPU)},
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_MEMLOCK, 64 << 10},
	} {
		var now unix.Rlimit
		if err := unix.Prlimit(pid, limit.resource, nil, &now); err != nil {
			return fmt.Errorf("limits of the sandbox: %w", err)
		}
		value := min(limit.value, now.Max)
		if err := unix.Prlimit(pid, limit.resource, &unix.Rlimit{Cur: value, Max: value}, nil); err != nil {
			return fmt.Errorf("limits of the sandbox: %w", err)
		}
	}
	return nil
}

// sacrifice tells the kernel to take the sandbox first when memory runs out:
// what many processes and shared mappings add up to has no limit of its own. A
// kernel that does not allow this is no reason to run nothing.
func sacrifice(pid int) {
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("1000"), 0)
}

// as runs f with the real user and group ids of the sandbox's user on its
// thread. Root may set another user's limits only with CAP_SYS_RESOURCE, which
// containers do not have; a user may lower his own. The effective ids, and
// with them what files may be opened and who may trace us, stay as they are.
func as(user *syscall.Credential, f func() error) error {
	if user == nil {
		return f()
	}
	uid, gid := uint32(os.Getuid()), uint32(os.Getgid())
	runtime.LockOSThread()
	if err := realIDs(user.Uid, user.Gid); err != nil {
		return err // still locked: a thread with such ids ends with its goroutine
	}
	failed := f()
	if err := realIDs(uid, gid); err != nil {
		return err
	}
	runtime.UnlockOSThread()
	return failed
}

// realIDs sets the calling thread's real ids alone, unlike package syscall,
// which sets them on all.
func realIDs(uid, gid uint32) error {
	const same = ^uintptr(0)
	if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), same, same); errno != 0 {
		return fmt.Errorf("group of the sandbox's user: %w", errno)
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), same, same); errno != 0 {
		return fmt.Errorf("sandbox's user: %w", errno)
	}
	return nil
}
