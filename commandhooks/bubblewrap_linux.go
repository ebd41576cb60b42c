package commandhooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// bubblewrap starts every hook in a sandbox of its own (DESIGN §8).
type bubblewrap struct {
	opt     Options
	tools   tools
	file    string    // bwrap
	system  []string  // the arguments that are the same for every hook
	mounted []mounted // the directories among them
	root    *rootDir  // nil: no hook has one of its own
	filter  []byte    // the seccomp program
	// noFilter is that of a sandbox whose jobs load the filter themselves.
	noFilter []byte
	user     *syscall.Credential
	passwd   []byte
	group    []byte
	hosts    []byte
	environ  []string
	// pool has sandboxes that were started ahead, with aheadDir for their
	// scripts; nil: each is started when its hook is.
	pool     *pool
	aheadDir string
}

// Inside, a hook is this user; it is the gate's own user outside.
const insideID = 1000

// outsideID is who a hook is outside when the gate itself is root, for whom
// the kernel counts no processes. It belongs to nobody: systemd leaves
// 60578–61183 unused, and it lies in the ids that containers map.
const outsideID = 60917

// newBubblewrap works out everything that does not depend on the hook.
func newBubblewrap(opt Options, t tools, file string) (*bubblewrap, error) {
	filter, err := seccompProgram(opt.Network)
	if err != nil {
		return nil, err
	}
	noFilter, err := everything()
	if err != nil {
		return nil, err
	}
	b := &bubblewrap{opt: opt, tools: t, file: file, filter: filter, noFilter: noFilter, user: sandboxUser(),
		passwd: fmt.Appendf(nil, "hook:x:%d:%d::/tmp:/bin/bash\n", insideID, insideID),
		group:  fmt.Appendf(nil, "hook:x:%d:\n", insideID),
		hosts:  []byte("127.0.0.1 localhost\n::1 localhost\n")}
	path := t.path
	if t.ownJQ {
		path += ":" + scriptDir
	}
	b.environ = environment(opt, path, "/tmp")
	b.system = b.systemArgs()
	for i, arg := range b.system {
		if arg == "--ro-bind" {
			if real, err := filepath.EvalSymlinks(b.system[i+1]); err == nil {
				b.mounted = append(b.mounted, mounted{source: real, path: b.system[i+2]})
			}
		}
	}
	return b, nil
}

func sandboxUser() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: outsideID, Gid: outsideID}
}

// shmSize bounds /dev/shm.
const shmSize = 16 << 20

func (b *bubblewrap) systemArgs() []string {
	args := []string{"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL",
		"--uid", strconv.Itoa(insideID), "--gid", strconv.Itoa(insideID), "--ro-bind", "/usr", "/usr"}
	if !b.opt.Network {
		args = append(args, "--unshare-net")
	}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else if _, err := os.Stat(dir); err == nil {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	// Of /etc only what programs need to start. Accounts, hosts and other
	// configuration of the machine are nobody's business in here. Every mount
	// costs time.
	etc := []string{"ld.so.cache", "alternatives"}
	if b.opt.Network {
		etc = append(etc, "resolv.conf", "hosts", "nsswitch.conf", "ssl/certs", "ssl/openssl.cnf", "ca-certificates", "pki/tls", "pki/ca-trust")
	}
	for _, name := range etc {
		path := "/etc/" + name
		if _, err := os.Stat(path); err == nil {
			args = append(args, "--ro-bind", path, path)
		}
	}
	if zone, err := filepath.EvalSymlinks("/etc/localtime"); err == nil && within(zone, "/usr") {
		args = append(args, "--symlink", zone, "/etc/localtime")
	}
	for _, i := range []interpreter{b.tools.bash, b.tools.python} {
		for _, prefix := range i.prefixes {
			args = append(args, "--ro-bind", prefix, prefix)
		}
	}
	// bwrap's own --dev would add terminals, which take another mount and
	// another user namespace, and be writable.
	for _, device := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		args = append(args, "--dev-bind", device, device)
	}
	args = append(args, "--proc", "/proc", "--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/proc/self/fd/0", "/dev/stdin",
		"--symlink", "/proc/self/fd/1", "/dev/stdout", "--symlink", "/proc/self/fd/2", "/dev/stderr",
		"--size", strconv.Itoa(shmSize), "--perms", "1777", "--tmpfs", "/dev/shm",
		"--size", strconv.FormatInt(b.opt.Limits.TempSize, 10), "--perms", "1777", "--tmpfs", "/tmp")
	return args
}

// sandbox is one hook's bwrap being put together: its arguments and the
// descriptors that they name. Every other descriptor of the gate is closed on
// exec.
type sandbox struct {
	args    []string
	files   []*os.File
	user    *syscall.Credential // who the hook is outside
	dir     string              // where it starts
	environ []string
	mounted []mounted     // of its own, beside the system's
	hidden  []string      // empty file systems that become read-only at the end
	covered []os.FileInfo // what lies below the hidden paths
	shown   []shown       // what bwrap mounts by path
	lost    bool          // a transcript could not be brought in
	forks   bool          // what it has is a server of forks, which confines its jobs itself
	err     error         // the first thing that went wrong
}

// pass hands a file to bwrap and answers its number there.
func (s *sandbox) pass(f *os.File) string {
	s.files = append(s.files, f)
	return strconv.Itoa(len(s.files) - 1)
}

// content hands bytes over as a file to be read.
func (s *sandbox) content(b []byte) string {
	fd, err := unix.MemfdCreate("stopgate", unix.MFD_CLOEXEC)
	if err != nil {
		s.fail(err)
		return "-1"
	}
	f := os.NewFile(uintptr(fd), "memfd")
	if _, err := f.Write(b); err != nil {
		s.fail(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		s.fail(err)
	}
	return s.pass(f)
}

// hear makes a pipe that bwrap writes to, tell one that it reads from. They
// answer bwrap's number of its end, and our end, which is the caller's to close.
func (s *sandbox) hear() (number string, ours *os.File) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		s.fail(err)
		return "-1", nil
	}
	defer theirs.Close()
	// It can read there, too: were the gate the only reader and dead, writing
	// would end bwrap alone, and leave a child that waits for its word for ever.
	both, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", theirs.Fd()), os.O_RDWR, 0)
	if err != nil {
		s.fail(err)
		return "-1", ours
	}
	return s.pass(both), ours
}

func (s *sandbox) tell() (number string, ours *os.File) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		s.fail(err)
		return "-1", nil
	}
	return s.pass(theirs), ours
}

func (s *sandbox) add(args ...string) { s.args = append(s.args, args...) }

func (s *sandbox) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// close closes what is ours alone; the first three are the streams'. A second
// time does nothing.
func (s *sandbox) close() {
	for _, f := range s.files[3:] {
		f.Close()
	}
}

// latchFD is the descriptor on which a sandbox is told to go on.
const latchFD = 3

// latched is a shell's program that becomes the hook once the gate has written
// a line to [latchFD]. Where that ends without one, the gate is dead, and no
// line of the hook is run.
const latched = failsafe + `read -r go <&3 && exec "$@" 3<&-`

// start lets a sandbox go that was started ahead, where there is one that shows
// the same; else it puts one together, holds it until its limits are set, and
// lets it go.
func (b *bubblewrap) start(ctx context.Context, j job, own *streams) (*process, *gate.Failure) {
	s, failure := b.prepare(j)
	if failure != nil {
		return nil, failure
	}
	defer s.close()
	if p := b.startAhead(ctx, s, j, own); p != nil {
		return p, nil
	}
	if failure := own.openFor(j); failure != nil {
		return nil, failure
	}
	if j.script != "" {
		s.add("--perms", "0555", "--file", s.content([]byte(j.script)), j.scriptFile())
	}
	p, box, failure := b.hold(ctx, s, latched, j, own.child)
	if failure != nil {
		return nil, failure
	}
	defer box.latch.Close()
	if err := box.letGo(); err != nil {
		abandon(box.bwrap)
		box.clear()
		return nil, failed(gate.SandboxUnavailable, "bubblewrap could not set the sandbox up (%v)", err)
	}
	return p, nil
}

// prepare works out what the hook is to see, who it is, and where it starts. The
// streams and the latch are still missing, and so is the script.
func (b *bubblewrap) prepare(j job) (*sandbox, *gate.Failure) {
	if _, err := os.Stat(j.interpreter.file); err != nil {
		return nil, couldNotStart(j.interpreter.file, err)
	}
	s := &sandbox{args: append([]string{b.file}, b.system...), files: make([]*os.File, latchFD+1), user: b.user, dir: "/tmp",
		environ: withHost(b.environ, j.env)}
	failure := b.mount(s, j)
	if failure != nil {
		s.close()
		return nil, failure
	}
	return s, nil
}

// mount adds what differs from hook to hook.
func (b *bubblewrap) mount(s *sandbox, j job) (failure *gate.Failure) {
	if j.rooted {
		s.user, s.dir, failure = b.mountRoot(s, j.cwd)
	} else if v := b.opt.Workspace.view(j.cwd, j.project); len(v.dirs) > 0 {
		s.user, failure = b.mountWorkspace(s, v.dirs)
		s.dir = cmp.Or(v.cwd, s.dir)
	}
	if failure == nil && j.wantsAgents() {
		failure = b.mountAgents(s, j.project)
	}
	if failure != nil {
		return failure
	}
	b.hide(s, s.user)
	for _, path := range j.transcripts {
		if failure := b.mountTranscript(s, path, j.isTranscript, s.user); failure != nil {
			return failure
		}
	}
	return nil
}

// hold starts the sandbox and holds it, limited and examined, in a shell that
// runs a program with the hook's command line as its arguments.
func (b *bubblewrap) hold(ctx context.Context, s *sandbox, program string, j job, stdio [3]*os.File) (*process, *boxed, *gate.Failure) {
	copy(s.files, stdio[:])
	if b.tools.ownJQ {
		s.add("--ro-bind", b.tools.jq, scriptDir+"/jq")
	}
	s.add("--file", s.content(b.passwd), "/etc/passwd", "--file", s.content(b.group), "/etc/group")
	if !b.opt.Network {
		s.add("--file", s.content(b.hosts), "/etc/hosts")
	}
	for _, hidden := range s.hidden {
		s.add("--remount-ro", hidden)
	}
	box := &boxed{}
	filter := b.filter
	var err error
	if s.forks {
		filter = b.noFilter
		s.files[latchFD], box.latch, err = socketPair()
	} else {
		// Nothing in it is a hook's to change, its own oom_score_adj least of all.
		s.add("--remount-ro", "/proc")
		s.files[latchFD], box.latch, err = os.Pipe()
	}
	if err != nil {
		s.fail(err)
	}
	var statusFD, blockFD string
	statusFD, box.status = s.hear()
	blockFD, box.block = s.tell()
	defer box.block.Close()
	s.add("--remount-ro", "/", "--chdir", s.dir, "--seccomp", s.content(filter), "--json-status-fd", statusFD, "--block-fd", blockFD)
	s.add("--", "/bin/sh", "-c", program, "hook")
	s.add(j.argv(j.scriptFile())...)
	p, failure := b.launch(ctx, s, stdio, box)
	if failure != nil {
		box.latch.Close()
		box.clear()
	}
	return p, box, failure
}

// launch starts bwrap. It has a process group of its own, since a Ctrl-C at the
// gate's terminal lets running hooks finish.
func (b *bubblewrap) launch(ctx context.Context, s *sandbox, stdio [3]*os.File, box *boxed) (*process, *gate.Failure) {
	if s.err != nil {
		return nil, failed(gate.Internal, "files for the sandbox: %v", s.err)
	}
	give(stdio, s.user)
	bwrap, err := os.StartProcess(b.file, s.args, &os.ProcAttr{Dir: "/", Env: s.environ, Files: s.files,
		Sys: &syscall.SysProcAttr{Credential: s.user, Setpgid: true}})
	s.close()
	if err != nil {
		return nil, failed(gate.SandboxUnavailable, "bubblewrap could not be started: %v", err)
	}
	box.bwrap = bwrap
	limits := b.opt.Limits
	if s.forks {
		limits.Processes *= b.opt.Parallel + 1 // each job is held to its own
	}
	if err := box.confine(ctx, limits, s.user, s.shown); err != nil {
		abandon(bwrap)
		if failure, ok := errors.AsType[*gate.Failure](err); ok {
			return nil, failure
		}
		return nil, failed(gate.SandboxUnavailable, "bubblewrap could not set the sandbox up (%v)", err)
	}
	w := &bwrapped{Process: bwrap, box: box}
	return &process{main: w, kill: box.kill, read: w.read, clear: w.clear, used: box.used, limit: b.opt.Limits.Memory, lost: s.lost}, nil
}

// give has the hook's user own its streams: else it could not open /dev/stderr.
func give(stdio [3]*os.File, user *syscall.Credential) {
	if user == nil {
		return
	}
	for _, f := range stdio {
		_ = f.Chown(int(user.Uid), int(user.Gid)) // a hook that needs it says so itself
	}
}
