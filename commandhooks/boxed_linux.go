package commandhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// boxed is a running sandbox.
type boxed struct {
	bwrap  *os.Process // nil: another sandbox holds it
	status *os.File    // what bwrap tells of it
	block  *os.File    // a byte lets bwrap go on, and so does our death
	latch  *os.File    // a line lets the hook run; of one that forks, a socket
	init   int         // process 1 of the sandbox, as we know it; 0: not known
	pidfd  int
	memory []*os.File // its file systems that a hook can fill
}

// confine puts the limits on the sandbox's first process and examines what it is
// to see. The hook is held until [boxed.letGo].
//
// bwrap dies with the thread that started it, and so with the gate even if that
// is killed, and process 1 dies with bwrap (--die-with-parent). Each of them
// asks the kernel for that itself: until both have, a hook would outlive the
// gate, and is held; it ends if the gate does. A bwrap that dies between that
// request and its word to its child, which are microseconds, leaves the child
// asleep in its set-up for ever: a process too many, and no hook.
func (x *boxed) confine(ctx context.Context, l Limits, user *syscall.Credential, all []shown) error {
	stop := context.AfterFunc(ctx, func() { x.status.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := x.firstLine()
	if err != nil {
		return err
	}
	var first struct {
		Child int `json:"child-pid"`
	}
	if err := json.Unmarshal(line, &first); err != nil || first.Child <= 0 {
		return fmt.Errorf("its status %q names no process", line)
	}
	// It waits for us, so that the number is still its own.
	if x.pidfd, err = unix.PidfdOpen(first.Child, 0); err != nil {
		return fmt.Errorf("process of the sandbox: %w", err)
	}
	x.init = first.Child
	if err := as(user, func() error { return l.put(x.init) }); err != nil {
		return err
	}
	sacrifice(x.init)
	if err := x.build(ctx); err != nil {
		return err
	}
	return as(user, func() error { return x.examine(all) })
}

// letGo lets the hook run.
func (x *boxed) letGo() error {
	_, err := x.latch.WriteString("\n")
	return err
}

// build lets bwrap finish its work. The last of it is the seccomp filter, which
// process 1 loads after it has asked to die with bwrap.
func (x *boxed) build(ctx context.Context) error {
	before, err := filters(x.init)
	if err != nil {
		return err
	}
	if _, err := x.block.Write([]byte{1}); err != nil {
		return err
	}
	for now := before; now == before; {
		if err := ctx.Err(); err != nil {
			return err
		}
		// A small part of the milliseconds that bwrap takes. The runtime's own
		// timers round up to one of them.
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 200_000}, nil) // an early end is as good
		if now, err = filters(x.init); err != nil {
			return err
		}
	}
	return nil
}

// filters is how many seccomp filters a process has.
func filters(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("process of the sandbox: %w", err)
	}
	_, rest, _ := strings.Cut(string(status), "\nSeccomp_filters:")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0, errors.New("the kernel does not tell of seccomp filters: 5.9 or later is needed")
	}
	return n, nil
}

// abandon ends a bwrap that is still setting up. Killed alone, it could leave a
// child behind that waits for its word for ever; stopped, it can start no more
// of them, and keeps the ids of those it has.
func abandon(bwrap *os.Process) {
	_ = bwrap.Signal(syscall.SIGSTOP)
	for errors.Is(unix.Waitid(unix.P_PID, bwrap.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", bwrap.Pid))
	for _, child := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
	bwrap.Kill()
	bwrap.Wait()
}

// firstLine is what bwrap tells before the hook runs; it writes it in pieces,
// and the next line comes only when the hook has ended.
func (x *boxed) firstLine() ([]byte, error) {
	var line []byte
	buf := make([]byte, 512)
	for len(line) < 4096 && !bytes.HasSuffix(line, []byte("\n")) {
		n, err := x.status.Read(buf)
		if err != nil {
			return nil, err
		}
		line = append(line, buf[:n]...)
	}
	return line, nil
}

// kill ends process 1 of the sandbox, and the kernel everything in it. bwrap
// then sees it and ends too.
func (x *boxed) kill() {
	if x.init != 0 {
		unix.PidfdSendSignal(x.pidfd, unix.SIGKILL, nil, 0)
	}
}

// awaitEnd returns when process 1 has ended, which takes no longer than
// killGrace after a kill, but in a kernel that hangs.
func (x *boxed) awaitEnd() {
	for deadline := time.Now().Add(killGrace); ; {
		left := time.Until(deadline).Milliseconds()
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(x.pidfd), Events: unix.POLLIN}}, max(int(left), 0))
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// used is the memory that the sandbox holds. Once bwrap has reaped process 1,
// its number may be anybody's, and what was counted is void.
func (x *boxed) used() int64 {
	total := treeMemory(x.init)
	for _, f := range x.memory {
		total += fileMemory(f)
	}
	if unix.PidfdSendSignal(x.pidfd, 0, nil, 0) != nil {
		return 0
	}
	return total
}

// bwrapped is a sandbox that has bwrap for itself. It has ended when bwrap tells how,
// or has ended itself; what is left of bwrap then is waited for by clear, when the
// answer no longer waits.
type bwrapped struct {
	*os.Process // bwrap
	box         *boxed
	told        []byte
}

func (w *bwrapped) tells() *os.File { return w.box.status }

func (w *bwrapped) await() {
	w.told, _ = w.box.firstLine() // an error is bwrap's end
}

// Wait answers how bwrap ended where it did not tell of the hook. It does not wait for
// process 1, which the kernel lets end only when it has taken its mounts apart: that
// takes longer than most hooks.
func (w *bwrapped) Wait() (*os.ProcessState, error) {
	if exitCode(w.told) != nil {
		return nil, nil
	}
	return w.Process.Wait()
}

// read takes the hook's exit code from what bwrap told: without one, the hook
// never ran.
func (w *bwrapped) read(state *os.ProcessState, e *ending) *gate.Failure {
	code := exitCode(w.told)
	if code == nil {
		return failed(gate.SandboxUnavailable, "bubblewrap could not set the sandbox up (%v)%s", state, e.lastWords())
	}
	e.exited(*code)
	return nil
}

func (w *bwrapped) clear() {
	_, _ = w.Process.Wait() // a second time it answers at once
	w.box.clear()
}

// exitCode is the one in a line of status; nil: there is none.
func exitCode(line []byte) *int {
	var last struct {
		Code *int `json:"exit-code"`
	}
	if json.Unmarshal(line, &last) != nil {
		return nil
	}
	return last.Code
}

// exited takes an exit code as bwrap has it, which is also that of a signal.
func (e *ending) exited(code int) {
	e.code = code
	if n := code - 128; n > 0 && n < 32 {
		e.signal, e.unsure = signalName(syscall.Signal(n)), true
	}
}

func (x *boxed) clear() {
	x.status.Close()
	for _, f := range x.memory {
		f.Close()
	}
	if x.init == 0 {
		return
	}
	// bwrap may end before process 1, which is then an orphan: ours, if the
	// gate is itself process 1 of a container.
	for errors.Is(unix.Waitid(unix.P_PIDFD, x.pidfd, nil, unix.WEXITED, nil), unix.EINTR) {
	}
	unix.Close(x.pidfd)
}
