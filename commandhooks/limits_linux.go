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

// as runs f with the effective user id of the sandbox's user on its thread.
// Whoever made a user namespace has every right over the processes in it; root
// sets their limits and looks at their files only with CAP_SYS_RESOURCE and
// CAP_SYS_PTRACE, which containers do not have. The real id stays, so that the
// user can neither signal nor trace us meanwhile.
func as(user *syscall.Credential, f func() error) error {
	if user == nil {
		return f()
	}
	runtime.LockOSThread()
	if err := effectiveID(int(user.Uid)); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	failed := f()
	if err := effectiveID(0); err != nil {
		return err // still locked: a thread with such an id ends with its goroutine
	}
	runtime.UnlockOSThread()
	return failed
}

// effectiveID sets the calling thread's effective user id alone, unlike package
// syscall, which sets it on all.
func effectiveID(uid int) error {
	const same = ^uintptr(0)
	if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESUID, same, uintptr(uid), same); errno != 0 {
		return fmt.Errorf("sandbox's user: %w", errno)
	}
	return nil
}
