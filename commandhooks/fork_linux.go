package commandhooks

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// forks counts the jobs of a sandbox whose Python is forked for each of them
// (forks.py). Untrusted code runs in none of its own processes, but in namespaces
// inside it that each job has to itself, and that end with the job's process 1.
type forks struct {
	mu    sync.Mutex
	jobs  int
	ended bool
}

var errNoForks = errors.New("sandbox that forks: it has ended")

// enter is before a job; afterwards it leaves, and does end's work if it is the
// last of a sandbox that was to end.
func (f *forks) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	f.jobs++
	return true
}

func (f *forks) leave() (last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs--
	return f.ended && f.jobs == 0
}

// end reports whether no job is running.
func (f *forks) end() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	return f.jobs == 0
}

// mayFork reports whether what waits for the job may be a Python that is forked
// for it. Only one that would be running before its job can be. Each job gets a /tmp and a /dev/shm of its own in place of the
// sandbox's, which must not cover anything that was mounted for it there.
func (j job) mayFork(s *sandbox) bool {
	covers := func(path string) bool {
		return slices.ContainsFunc([]string{"/tmp", "/dev/shm", "/proc"}, func(own string) bool { return within(path, own) || within(own, path) })
	}
	_, runs := j.early(s.environ, false)
	return runs && strings.HasSuffix(j.fileName, ".py") &&
		!slices.ContainsFunc(s.mounted, func(m mounted) bool { return covers(m.path) }) &&
		!slices.ContainsFunc(s.shown, func(x shown) bool { return covers(x.path) })
}

// makeForks makes a sandbox that is about to be started one that forks: it gets
// its script, and its Python what that has to know.
func (b *bubblewrap) makeForks(w *ahead, j job, first *early) error {
	w.forks, w.like.forks = &forks{}, true
	first.content = slices.Concat(b.knownToForks(w.like), first.content)
	return w.write(j.fileName, []byte(j.script), 0o555)
}

// knownToForks is what forks.py has to know, as lines of Python.
func (b *bubblewrap) knownToForks(s *sandbox) []byte {
	namespaces := unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	loopback := "False"
	if !b.opt.Network {
		namespaces |= unix.CLONE_NEWNET
		loopback = "True"
	}
	return fmt.Appendf(nil, "CLONE = %d\nNAMESPACES = %d\nID = %d\nLOOPBACK = %s\nSHM_SIZE = %d\nTEMP_SIZE = %d\n"+
		"DIRECTORY = bytes.fromhex(%q)\nFILTER = bytes.fromhex(%q)\n", unix.SYS_CLONE, namespaces, insideID, loopback,
		shmSize, b.opt.Limits.TempSize, hex.EncodeToString([]byte(s.dir)), hex.EncodeToString(b.filter))
}

// forkFrom has a process forked for the job, and lets it go. After an error no
// line of it was run.
func (b *bubblewrap) forkFrom(ctx context.Context, w *ahead, s *sandbox, j job, own *streams) (*process, error) {
	if failure := own.openFor(j); failure != nil {
		return nil, failure
	}
	if !w.forks.enter() {
		return nil, errNoForks
	}
	leave := func() {
		if w.forks.leave() {
			b.pool.discard(w.remove)
		}
	}
	box, err := b.forkLimited(ctx, w, s, own.child)
	if err != nil {
		leave()
		return nil, err
	}
	f := &forked{box: box}
	return &process{main: f, kill: box.kill, read: f.read, used: f.used, limit: b.opt.Limits.Memory, ahead: true,
		clear: func() { box.clear(); leave() }}, nil
}

func (b *bubblewrap) forkLimited(ctx context.Context, w *ahead, s *sandbox, stdio [3]*os.File) (*boxed, error) {
	if !w.shows(s, b.look()) {
		return nil, errors.New("sandbox that forks: its files have changed")
	}
	give(stdio, s.user)
	box, err := w.fork(ctx, stdio)
	if err != nil {
		return nil, err
	}
	err = as(s.user, func() error { return b.opt.Limits.put(box.init) })
	if err == nil {
		err = box.letGo()
	}
	if err != nil {
		box.clear()
		return nil, err
	}
	return box, nil
}

// tryFork finds out whether a job could be forked, which wants more of the kernel
// than a sandbox: namespaces in namespaces.
func (w *ahead) tryFork(ctx context.Context) error {
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer nothing.Close()
	box, err := w.fork(ctx, [3]*os.File{nothing, nothing, nothing})
	if err == nil {
		box.clear() // which it takes for our death
	}
	return err
}

// forkTime is ample for a fork on a busy machine. It is waited for in vain only
// where one hangs, which no job can bring about: one that has died is known at
// once.
const forkTime = 5 * time.Second

// fork has process 1 of a job made, which holds until [boxed.letGo]. It ends if
// that never comes.
func (w *ahead) fork(ctx context.Context, stdio [3]*os.File) (*boxed, error) {
	theirs, ours, err := socketPair()
	if err != nil {
		return nil, err
	}
	err = send(w.box.latch, append(stdio[:], theirs))
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	ours.SetReadDeadline(time.Now().Add(forkTime))
	stop := context.AfterFunc(ctx, func() { ours.SetReadDeadline(time.Unix(1, 0)) })
	box := &boxed{status: ours, latch: ours}
	err = box.meet()
	switch {
	case err != nil:
	case !stop():
		err = ctx.Err()
	default:
		err = ours.SetReadDeadline(time.Time{})
	}
	if err != nil {
		box.clear()
		return nil, err
	}
	return box, nil
}

// meet takes what process 1 of a job says of itself: that it waits, the file
// systems that its job can fill, and, by the kernel, who it is.
func (x *boxed) meet() error {
	conn, err := x.status.SyscallConn()
	if err != nil {
		return err
	}
	said, with := make([]byte, 1), make([]byte, 256)
	var n, withN int
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		for {
			n, withN, _, _, failed = unix.Recvmsg(int(fd), said, with, unix.MSG_CMSG_CLOEXEC)
			if !errors.Is(failed, unix.EINTR) {
				return !errors.Is(failed, unix.EAGAIN)
			}
		}
	})
	if err = cmp.Or(err, failed); err != nil {
		return fmt.Errorf("sandbox that forks: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(with[:withN])
	if err != nil {
		return fmt.Errorf("sandbox that forks: %w", err)
	}
	pid := 0
	for _, m := range messages {
		if who, err := unix.ParseUnixCredentials(&m); err == nil {
			pid = int(who.Pid)
		}
		if fds, err := unix.ParseUnixRights(&m); err == nil {
			for _, fd := range fds {
				x.memory = append(x.memory, os.NewFile(uintptr(fd), "memory"))
			}
		}
	}
	if n != 1 || said[0] != '\n' || len(x.memory) != 2 || pid <= 0 {
		return fmt.Errorf("sandbox that forks: process %d said %q with %d descriptors", pid, said[:n], len(x.memory))
	}
	// It waits for us, so that the number is still its own.
	if x.pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		return fmt.Errorf("process of the sandbox: %w", err)
	}
	x.init = pid
	return nil
}

// forked is process 1 of a job that was forked. Its end is that of every process
// of the job, by the kernel.
type forked struct {
	box  *boxed
	told []byte
}

func (f *forked) await() {
	var err error
	if f.told, err = f.box.firstLine(); !os.IsTimeout(err) { // else see Kill
		f.box.awaitEnd()
	}
}

// Kill has await end also where the kernel does not let go of a process.
func (f *forked) Kill() error {
	f.box.kill()
	return f.box.status.SetReadDeadline(time.Unix(1, 0))
}

// Wait has nobody to wait for: it is no child of the gate.
func (f *forked) Wait() (*os.ProcessState, error) { return nil, nil }

// read takes the exit code as bwrap would have told it, also of one that was
// killed with all that is in the sandbox.
func (f *forked) read(_ *os.ProcessState, e *ending) *gate.Failure {
	if code := exitCode(f.told); code != nil {
		e.exited(*code)
	} else {
		e.exited(128 + int(unix.SIGKILL))
	}
	return nil
}

// used leaves out process 1, which holds what it has in common with the job's own
// process, and would count it twice.
func (f *forked) used() int64 { return max(0, f.box.used()-heldMemory(f.box.init)) }

// socketPair is of streams; who writes to ours is known to us.
func socketPair() (theirs, ours *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	err = cmp.Or(unix.SetNonblock(fds[1], true), unix.SetsockoptInt(fds[1], unix.SOL_SOCKET, unix.SO_PASSCRED, 1))
	theirs, ours = os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket")
	if err != nil {
		theirs.Close()
		ours.Close()
		return nil, nil, err
	}
	return theirs, ours, nil
}

// send hands files over with a byte, without waiting: who does not read has ended
// or hangs.
func send(socket *os.File, files []*os.File) error {
	var fds []int
	conn, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = unix.Sendmsg(int(fd), []byte("\n"), unix.UnixRights(fds...), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
	return cmp.Or(err, failed)
}
