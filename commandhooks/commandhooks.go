// Package commandhooks asks command hooks: scripts and shell lines that the
// gate's owner wrote and that count as untrusted code.
//
// A [Runner] starts each hook once per event, the context JSON on its standard
// input, and reads its answer by the law of the hook's dialect. Azure's is that
// of spec/azure.md 40–44: exit 0 answers on standard output, exit 2 blocks with
// standard error as the reason, everything else is no verdict with a failure
// code.
//
// Where the processes run is the [Mode]. The usual one is bubblewrap: own
// user, process, network, ipc, host name and mount namespaces, a read-only
// system, a private bounded /tmp, no network, a clean environment, resource
// limits and a seccomp filter. [New] tries it for real; where it does not work,
// no hook is run and each ends as sandbox_unavailable. A weaker mode is never
// chosen by the package itself.
package commandhooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"stopgate/gate"
	"stopgate/internal/places"
	"stopgate/internal/scratch"
)

// Mode says what stands round a hook's processes.
type Mode string

const (
	// Auto is bubblewrap, and no hook at all where that does not work.
	Auto Mode = "auto"
	// Bubblewrap is Auto by its own name.
	Bubblewrap Mode = "bubblewrap"
	// Process is no sandbox: a process group, a clean environment, a private
	// temporary directory and resource limits, with the gate's own rights.
	Process Mode = "process"
	// Container is Process, for gates whose own container is the sandbox.
	Container Mode = "container"
	// Off runs no hook.
	Off Mode = "off"
)

// Modes lists every [Mode].
var Modes = []Mode{Auto, Bubblewrap, Process, Container, Off}

// Access says how the event's working directory is mounted in the sandbox.
type Access string

const (
	NoWorkspace Access = "none"
	ReadOnly    Access = "read-only"
	ReadWrite   Access = "read-write"
)

// Workspace lets hooks see the directory that the agent works in.
type Workspace struct {
	Access Access // empty is NoWorkspace
	// Roots are the directories under which, symbolic links resolved, an
	// event's cwd must lie to be mounted.
	Roots []string
	// Hidden are paths that are empty in the sandbox even if they lie in what is
	// mounted there, be it a workspace or the system, as the gate's data
	// directory.
	Hidden []string
}

// Limits bound what one hook may use. All of them have to be set.
type Limits struct {
	// Memory of the whole hook in bytes; at least 16 MiB. What its processes
	// hold, shared memory included, and a KiB for every file in its /tmp is added
	// up (Linux only) from its first 20 ms on, some 40 times a second; a hook that
	// passes the limit is killed and ends as signalled. Memory that processes share counts for each of them; in mode
	// process those that have left the process group do not count. It is the
	// limit of each process's own writable memory too (RLIMIT_DATA), which holds
	// at once. RLIMIT_AS is not set: Go, Java and node reserve far more address
	// space than they use, and would not start. The kernel's OOM killer is
	// told to take sandboxed processes first.
	Memory int64
	// Processes and threads of one hook; bubblewrap only, since outside a user
	// namespace the kernel counts all that the user runs. At least 4.
	Processes int
	// FileSize is the size of any one file written, in bytes; at least 1 MiB.
	FileSize int64
	// OpenFiles of each process; at least 16.
	OpenFiles int
	// CPU seconds of each process; at least 1.
	CPU int
	// TempSize bounds the private /tmp in bytes; bubblewrap only. At least 64 KiB.
	TempSize int64
}

// The least that an interpreter starts with; less would fail every hook in
// ways that are hard to read.
func (l Limits) validate() error {
	var errs []error
	for _, bound := range []struct {
		name         string
		value, least int64
	}{
		{"memory", l.Memory, 16 << 20}, {"processes", int64(l.Processes), 4}, {"file size", l.FileSize, 1 << 20},
		{"open files", int64(l.OpenFiles), 16}, {"cpu", int64(l.CPU), 1}, {"temp size", l.TempSize, 64 << 10},
	} {
		if bound.value < bound.least {
			errs = append(errs, fmt.Errorf("sandbox limit %s is %d: at least %d", bound.name, bound.value, bound.least))
		}
	}
	return errors.Join(errs...)
}

// Options say how hooks are run.
type Options struct {
	Mode Mode // empty is Auto
	// Network leaves the host's network to hooks. In bubblewrap they have no unix
	// sockets but connected pairs, with it or without.
	Network   bool
	Workspace Workspace
	Limits    Limits
	// Root, if set, is a directory that hooks of the antigravity dialect have as
	// / (spec/antigravity.md 2): each entry of it lies there, writable as far as
	// its own modes allow, in place of a workspace. They run in the event's cwd
	// as seen from there. Bubblewrap shows it; in the modes without a sandbox it
	// can only be / itself. See [Runner.Unshown].
	Root string
	// AsRoot: a gate that is root runs hooks as root where the Root or the
	// workspace that they may write is root's, since nobody else could write
	// there: root without a single capability, in a user namespace. The kernel
	// counts no processes of root, so that Limits.Memory alone bounds their
	// number.
	AsRoot bool
	// Parallel is how many hooks run at once, over all events; further ones
	// wait, within their timeouts, those of AX Code before theirs, agent by agent
	// in turns, so that none shuts out another. One whose turn would come too late
	// is not asked, and hears so at once. At least 1.
	Parallel int
	// Pool is how much memory in bytes may be held by sandboxes that are started
	// before their hooks, a script's interpreter running, for the kinds of hooks
	// that ran of late; no more of them wait than Parallel. Each has one hook and is
	// then replaced, but see ForkPython. What a hook can tell of it is in docs/writing-hooks.md. 0: each
	// sandbox is started when its hook is. Bubblewrap only; see [Runner.Close].
	Pool int64
	// ForkPython has Python scripts forked from a Python that waits in a sandbox,
	// one for each hook of each agent, within Pool: at volume that takes a
	// fraction of the time. Every job still has namespaces of its own, with their
	// process ids, /tmp and network, limits and system call filter; it shares with
	// the others of its hook, for as long as a sandbox waits, how the memory of its
	// interpreter is laid out and its hash seed. docs/writing-hooks.md has what else
	// a script can tell, and which scripts go the usual way.
	ForkPython bool
	// Env is added to the clean environment that hooks get; the gate's own
	// environment never reaches them, but as HostEnv.
	Env map[string]string
	// HostEnv is the environment of the agent's host, as [os.Environ] has it,
	// without the gate's own keys, which the caller knows.
	// Hooks of AX Code get it sanitised, all others nothing of it (DESIGN §9).
	HostEnv []string
	// Path is a search path for interpreters, tried after the system's own
	// directories. Empty: those alone.
	Path string
	// Self is a program that acts as jq when it is called by that name (package
	// jq), for hosts without one. Empty: none.
	Self string
}

// systemPath holds the directories that a sandbox has too.
const systemPath = "/usr/local/bin:/usr/bin:/bin"

// Status says how hooks are run, for /readyz and doctor.
type Status struct {
	Mode    Mode   `json:"mode"`             // the mode in force; never Auto
	Working bool   `json:"working"`          // hooks can be run
	Reason  string `json:"reason,omitempty"` // why not, and what helps
	Bash    string `json:"bash"`             // the interpreter's file; empty: none found
	Python  string `json:"python"`
	JQ      string `json:"jq"` // empty: scripts find no jq
	// Ahead is why nothing is started ahead, or forked, though [Options] have a Pool:
	// why the last start failed. Empty: none did, or there is no Pool.
	Ahead string `json:"ahead,omitempty"`
}

// Runner is the [gate.Evaluator] of command hooks. Make one with [New], and
// close it if its options have a Pool.
type Runner struct {
	opt    Options
	tools  tools
	start  launcher // nil when no hook can be run
	status Status
	slots  *places.Places
	axCode *places.Places // slots of AX Code's hooks, which have one of the others too
	root   *rootDir       // nil: Options.Root is not set

	pool keeper // nil: no sandbox is started ahead

	cold, warm, unstarted atomic.Uint64 // jobs, by how their sandboxes were started
}

// keeper has sandboxes wait for jobs.
type keeper interface {
	answered()                   // a hook has ended
	waits() (n int, bytes int64) // what waits now
	trouble() error              // why that is not what should; nil: it is
	close()
}

// New finds the interpreters and tries the sandbox by running a script in it.
// A sandbox that does not work is no error: it is in the Status, and every hook
// ends as sandbox_unavailable. An error means that the options make no sense.
//
// New marks the process's open descriptors as closed on exec, lest hooks
// inherit what the gate itself inherited, and removes the temporary directories
// that gates of this user left behind when they were killed.
func New(ctx context.Context, opt Options) (*Runner, error) {
	opt.Mode = cmp.Or(opt.Mode, Auto)
	opt.Workspace.Access = cmp.Or(opt.Workspace.Access, NoWorkspace)
	opt.Workspace.Hidden = absolute(opt.Workspace.Hidden)
	if err := opt.validate(); err != nil {
		return nil, err
	}
	root, err := lookAt(opt.Root)
	if err != nil {
		return nil, err
	}
	closeOnExec()
	scratch.Sweep("") // of gates that were killed
	r := &Runner{opt: opt, slots: places.New(opt.Parallel), axCode: places.New(axCodeParallel), status: Status{Mode: opt.Mode}, root: root}
	switch opt.Mode {
	case Off:
		r.status.Reason = "command hooks are switched off (sandbox mode off)"
		return r, nil
	case Process, Container:
		r.tools = findTools(ctx, opt, func(string) bool { return true })
		r.start, r.status.Working = direct{opt: opt, tools: r.tools}.start, true
		if opt.Pool > 0 {
			r.status.Ahead = "sandboxes are started ahead in mode bubblewrap alone, and this is mode " + string(opt.Mode)
		}
	default:
		r.status.Mode = Bubblewrap
		r.enterBubblewrap(ctx)
	}
	r.status.Bash, r.status.Python, r.status.JQ = r.tools.bash.file, r.tools.python.file, r.tools.jq
	return r, nil
}

// absolute makes paths that are relative to the working directory whole: they
// are compared with mounts, and walked up to the root. Where the working
// directory is gone they stay as they are, and match nothing.
func absolute(paths []string) []string {
	whole := make([]string, len(paths))
	for i, p := range paths {
		whole[i] = p
		if abs, err := filepath.Abs(p); err == nil {
			whole[i] = abs
		}
	}
	return whole
}

func (o Options) validate() error {
	errs := []error{o.Limits.validate()}
	if !slices.Contains(Modes, o.Mode) {
		errs = append(errs, fmt.Errorf("sandbox mode %q is unknown: want one of %v", o.Mode, Modes))
	}
	if !slices.Contains([]Access{NoWorkspace, ReadOnly, ReadWrite}, o.Workspace.Access) {
		errs = append(errs, fmt.Errorf("sandbox workspace %q is unknown: want none, read-only or read-write", o.Workspace.Access))
	}
	if o.Pool < 0 {
		errs = append(errs, fmt.Errorf("sandbox pool is %d bytes: at least 0", o.Pool))
	}
	if o.ForkPython && o.Pool == 0 {
		errs = append(errs, errors.New("sandbox forks python, but its pool is 0: what waits needs memory"))
	}
	if o.Parallel < 1 {
		errs = append(errs, fmt.Errorf("sandbox parallel is %d: at least 1", o.Parallel))
	}
	for _, key := range slices.Sorted(maps.Keys(o.Env)) {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.Contains(o.Env[key], "\x00") {
			errs = append(errs, fmt.Errorf("sandbox environment variable %q has no legal name or value", key))
		}
	}
	return errors.Join(errs...)
}

// Use is what hooks take of the machine, for an operator's metrics.
type Use struct {
	// Running hooks have a slot now, Queued ones wait for theirs; Limit may run.
	Running, Queued int
	Limit           int
	// Started are the hooks whose process was started since New, Failed those
	// whose process could not be.
	Started, Failed uint64
	// Warm are those of Started that had a sandbox started ahead, or a Python in
	// one that was forked for them.
	Warm uint64
	// Waiting sandboxes were started ahead and have no hook yet, and hold so
	// many bytes.
	Waiting      int
	WaitingBytes int64
}

// Use is how things are now.
func (r *Runner) Use() Use {
	u := Use{Running: r.slots.Taken(), Queued: r.slots.Waiting(), Limit: r.slots.Limit(), Failed: r.unstarted.Load(), Warm: r.warm.Load()}
	u.Started = u.Warm + r.cold.Load()
	if r.pool != nil {
		u.Waiting, u.WaitingBytes = r.pool.waits()
	}
	return u
}

// Close ends the sandboxes that wait for hooks, and starts no more ahead. Hooks
// that run go on, and further ones can be run. The error is always nil.
func (r *Runner) Close() error {
	if r.pool != nil {
		r.pool.close()
	}
	return nil
}

// launch starts a job, and counts it.
func (r *Runner) launch(ctx context.Context, j job, s *streams) (*process, *gate.Failure) {
	p, failure := r.start(ctx, j, s)
	switch {
	case failure != nil:
		r.unstarted.Add(1)
	case p.ahead:
		r.warm.Add(1)
	default:
		r.cold.Add(1)
	}
	return p, failure
}

// Status is how hooks are run, as of now.
func (r *Runner) Status() Status {
	s := r.status
	if r.pool != nil {
		if err := r.pool.trouble(); err != nil {
			s.Ahead = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
	}
	return s
}

// Evaluate runs the hook and reads its answer. The end of ctx is the hook's
// timeout, but for a hook of AX Code, whose own begins when it is started; the
// verdict comes within a second of it, and no process of the hook's group or
// sandbox is left.
func (r *Runner) Evaluate(ctx context.Context, in gate.Input) gate.Verdict {
	if r.start == nil {
		return noVerdict(gate.SandboxUnavailable, "%s", r.status.Reason)
	}
	j, failure := r.plan(in)
	if failure != nil {
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: failure}
	}
	s := r.sight(j)
	wants, sure := s.lacks(j, in.Hook)
	if sure {
		return noVerdict(wants.code, "the hook was not run: %s", wants.message())
	}
	own := run
	if in.Hook.Dialect == gate.AXCode {
		own = inOwnTime(in.Hook.Timeout)
		leave, err := r.axCode.Take(ctx, in.Event.Agent)
		if err != nil {
			return crowded(r.axCode, err)
		}
		defer leave()
	}
	leave, err := r.slots.Take(ctx, in.Event.Agent)
	if err != nil {
		return crowded(r.slots, err)
	}
	defer func() {
		leave()
		if r.pool != nil {
			r.pool.answered()
		}
	}()
	e, failure := own(ctx, r.launch, j)
	if failure != nil {
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: failure}
	}
	if _, ended := e.ended(); ended {
		if e.lacked = wants; wants == nil {
			e.lacked = s.missed(j, in.Hook, e)
		}
	}
	v := judge(in.Hook, in.Event.Name, e)
	v.Evidence.Workspace = string(r.seen(s))
	return v
}

// seen is what a hook sees of the directories of its agent.
func (r *Runner) seen(s sight) Access {
	if s.unseen != "" && s.projectUnseen != "" {
		return NoWorkspace
	}
	return r.opt.Workspace.Access
}

// crowded is the verdict of a hook that had no place to run.
func crowded(p *places.Places, err error) gate.Verdict {
	if errors.Is(err, places.ErrFull) {
		return noVerdict(gate.Overloaded, "no slot will come free in time: %d command hooks run, and others wait already", p.Limit())
	}
	return noVerdict(gate.Overloaded, "no slot came free in time: %d command hooks were running", p.Limit())
}

// noVerdict is the verdict of a hook that could not be asked.
func noVerdict(code gate.FailureCode, format string, args ...any) gate.Verdict {
	return gate.Verdict{Outcome: gate.NoVerdict, Failure: failed(code, format, args...)}
}

func failed(code gate.FailureCode, format string, args ...any) *gate.Failure {
	return &gate.Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}
