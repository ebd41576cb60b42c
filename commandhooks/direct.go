//go:build unix

package commandhooks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"stopgate/gate"
	"stopgate/internal/scratch"
)

// direct starts hooks as plain processes (modes process and container): their
// own session and process group, which is killed as a whole, a clean
// environment, a private temporary directory, resource limits.
type direct struct {
	opt   Options
	tools tools
}

func (d direct) start(_ context.Context, j job, s *streams) (*process, *gate.Failure) {
	if j.rooted && d.opt.Root != "/" {
		return nil, failed(gate.SandboxUnavailable, "hooks of this kind have %q as /, which only the sandbox can show them: mode %s has none", d.opt.Root, d.opt.Mode)
	}
	if failure := s.openFor(j); failure != nil {
		return nil, failure
	}
	home, err := scratch.Make("")
	if err != nil {
		return nil, failed(gate.Internal, "temporary directory for the hook: %v", err)
	}
	discard := func() { _ = home.Remove() } // what is left by a process that has left the group is the system's to clean
	proc, failure := d.startIn(home.Path(), j, s.child)
	if failure != nil {
		discard()
		return nil, failure
	}
	return &process{
		main:  child{proc},
		kill:  func() { syscall.Kill(-proc.Pid, syscall.SIGKILL) },
		read:  readState,
		clear: discard,
		used:  func() int64 { return groupMemory(proc.Pid) },
		limit: d.opt.Limits.Memory,
	}, nil
}

func (d direct) startIn(home string, j job, stdio [3]*os.File) (*os.Process, *gate.Failure) {
	tmp, path := filepath.Join(home, "tmp"), d.tools.path
	err := os.Mkdir(tmp, 0o700)
	script := filepath.Join(home, j.fileName)
	if err == nil && j.script != "" {
		err = os.WriteFile(script, []byte(j.script), 0o500)
	}
	if err == nil && d.tools.ownJQ {
		path += ":" + home
		err = os.Symlink(d.tools.jq, filepath.Join(home, "jq"))
	}
	if err != nil {
		return nil, failed(gate.Internal, "temporary directory for the hook: %v", err)
	}
	argv := j.argv(script)
	if _, err := os.Stat(argv[0]); err != nil {
		return nil, couldNotStart(argv[0], err)
	}
	dir := tmp
	if v := d.opt.Workspace.view(j.cwd, j.project); v.unseen == "" {
		dir = v.cwd
	}
	if j.rooted && isDir(j.cwd) {
		dir = j.cwd
	}
	// The shell sets the limits on itself and becomes the interpreter: there is
	// no moment at which the hook runs without them.
	argv = append([]string{"/bin/sh", "-c", failsafe + d.opt.Limits.ulimits() + `; exec "$@"`, "hook"}, argv...)
	proc, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Dir: dir, Env: withHost(environment(d.opt, path, tmp), j.env),
		Files: stdio[:], Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return nil, couldNotStart(argv[0], err)
	}
	return proc, nil
}

// ulimits are the shell's commands for the limits that hold for one process.
// None may fail, since a shell that gives up exits with 2, which is a block: a
// limit that the gate itself is under is not raised. -f counts blocks of 512
// bytes.
func (l Limits) ulimits() string {
	within := func(resource int, want int64, unit int64) int64 {
		var now unix.Rlimit
		if unix.Getrlimit(resource, &now) == nil && now.Max < uint64(want) {
			want = int64(now.Max)
		}
		return want / unit
	}
	return fmt.Sprintf("ulimit -c 0; ulimit -f %d; ulimit -n %d; ulimit -t %d; ulimit -d %d",
		within(unix.RLIMIT_FSIZE, l.FileSize, 512), within(unix.RLIMIT_NOFILE, int64(l.OpenFiles), 1),
		within(unix.RLIMIT_CPU, int64(l.CPU), 1), within(unix.RLIMIT_DATA, l.Memory, 1024))
}
