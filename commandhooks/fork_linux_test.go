package commandhooks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// forkRunner forks Python scripts from one that waits.
func forkRunner(t testing.TB, opt Options) *Runner {
	t.Helper()
	opt.ForkPython = true
	r := warmRunner(t, opt)
	needsPython(t, r)
	return r
}

// TestForkedIsCold compares runs that were forked with runs in sandboxes of their
// own, byte for byte. What does differ is in docs/writing-hooks.md.
func TestForkedIsCold(t *testing.T) {
	cold, forked := newRunner(t, Options{}), forkRunner(t, Options{})
	for _, tt := range pythonBehaviours {
		t.Run(tt.name, func(t *testing.T) {
			j := planned(t, cold, python+tt.script)
			want := runTraced(t, cold, j)
			awaitForks(t, forked, j)
			for range 2 { // the second comes after what the first left
				before := forked.Use().Warm
				got := runTraced(t, forked, j)
				if forked.Use().Warm != before+1 {
					t.Error("it was not forked")
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("cold -, forked +\n%s", d)
				}
			}
		})
	}
}

// awaitForks runs the job until a sandbox waits that forks for it.
func awaitForks(t *testing.T, r *Runner, j job) {
	t.Helper()
	forgetAll(r)
	awaitWaiting(t, r, j)
}

// theForks is the one sandbox that waits.
func theForks(t *testing.T, r *Runner) *ahead {
	t.Helper()
	p := r.pool.(*pool)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.shapes {
		for _, w := range s.waiting {
			if w.ahead.forks != nil {
				return w.ahead
			}
		}
	}
	t.Fatal("none waits that forks")
	return nil
}

// forkServer is the process that forks.
func forkServer(t *testing.T, w *ahead) int {
	t.Helper()
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", w.box.init))
	pid, bad := strconv.Atoi(strings.TrimSpace(string(list)))
	if err != nil || bad != nil {
		t.Fatalf("process 1 of the sandbox has the children %q, %v", list, err)
	}
	return pid
}

// bySaid is a script whose input says what its job does.
const bySaid = python + `import os, subprocess, sys, time
what = sys.stdin.readline().strip()
if what == "stay":
  time.sleep(2)
  print("alive", [p for p in os.listdir("/proc") if p.isdigit()], os.listdir("/tmp"), os.listdir("/dev/shm"))
elif what == "harm":
  import ctypes, resource, signal
  libc = ctypes.CDLL(None)
  open("/tmp/mark", "w"); open("/dev/shm/mark", "w")
  for s in signal.valid_signals(): os.kill(os.getppid(), s)
  for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_AS):
    try: resource.prlimit(os.getppid(), limit, (1, 1))
    except OSError: pass
  for fd in range(64):
    try: os.write(os.open(f"/proc/1/fd/{fd}", os.O_WRONLY), b'{"exit-code": 2}\n')
    except OSError: pass
  for fd in range(3, 64):
    libc.syscall(438, os.pidfd_open(1), fd, 0)
  libc.ptrace(16, 1, 0, 0)
  for s in (signal.SIGSTOP, signal.SIGKILL):
    try: os.kill(-1, s)
    except ProcessLookupError: pass
  try:
    while True: os.fork()
  except OSError: pass
  os.kill(0, signal.SIGKILL)
elif what == "leave":
  for _ in range(3): subprocess.Popen(["sleep", "98765.4321"], start_new_session=True)
elif what == "hang":
  for _ in range(3): subprocess.Popen(["sleep", "98765.4321"], start_new_session=True)
  time.sleep(600)
`

func said(t *testing.T, r *Runner, what string) job {
	t.Helper()
	j := planned(t, r, bySaid)
	j.stdin = []byte(what + "\n")
	return j
}

// TestForkedHarmsNobody: what a job does to everything that it can reach touches
// neither a job beside it, nor what forks, nor the next one.
func TestForkedHarmsNobody(t *testing.T) {
	r := forkRunner(t, Options{Limits: Limits{Processes: 20}})
	awaitForks(t, r, said(t, r, ""))
	server, before := forkServer(t, theForks(t, r)), r.Use().Warm
	var jobs sync.WaitGroup
	jobs.Go(func() {
		if got, want := runTraced(t, r, said(t, r, "stay")), "alive ['1', '2'] [] []\n"; got.Stdout != want || got.Code != 0 {
			t.Errorf("beside it: %+v", got)
		}
	})
	for range 3 {
		jobs.Go(func() {
			if got := runTraced(t, r, said(t, r, "harm")); got.Signal != "SIGKILL" || got.Failure != nil {
				t.Errorf("the one that harms: %+v", got)
			}
		})
	}
	jobs.Wait()
	if got := runTraced(t, r, said(t, r, "stay")); !strings.HasPrefix(got.Stdout, "alive ['1', '2'] [] []") {
		t.Errorf("after it: %+v", got)
	}
	if n := r.Use().Warm - before; n != 5 {
		t.Errorf("%d of 5 were forked", n)
	}
	if now := forkServer(t, theForks(t, r)); now != server {
		t.Errorf("process %d forks in the place of %d", now, server)
	}
}

// TestNothingOfForkedIsLeft, however a job ends.
func TestNothingOfForkedIsLeft(t *testing.T) {
	r := forkRunner(t, Options{})
	for _, tt := range []struct {
		what  string
		limit time.Duration
		out   bool
	}{{"leave", time.Minute, false}, {"hang", 2 * time.Second, true}} {
		t.Run(tt.what, func(t *testing.T) {
			awaitForks(t, r, said(t, r, ""))
			before := r.Use().Warm
			ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
			defer cancel()
			began := time.Now()
			e, failure := run(ctx, r.launch, said(t, r, tt.what))
			if took := time.Since(began); failure != nil || e.timedOut != tt.out || took > tt.limit+time.Second {
				t.Errorf("after %s: %+v, %v", took, e, failure)
			}
			if r.Use().Warm != before+1 {
				t.Error("it was not forked")
			}
			if left := soonLeft(t, "98765.4321"); len(left) != 0 {
				t.Errorf("%d are left", left)
			}
			if got := runTraced(t, r, said(t, r, "stay")); got.Code != 0 || r.Use().Warm != before+2 {
				t.Errorf("the next one: %+v", got)
			}
		})
	}
}

// TestForkedHolds: limits are the job's own.
func TestForkedHolds(t *testing.T) {
	r := forkRunner(t, Options{Limits: Limits{Memory: 128 << 20, Processes: 20, CPU: 1}})
	for _, tt := range []struct{ name, script, want string }{
		{"processor time", "while True: pass", "no_verdict signalled"},
		{"memory", "import os, time\nif os.fork() >= 0:\n  x = bytearray(100 << 20)\n  time.sleep(60)", "no_verdict signalled"},
		{"processes", "import os, sys, time\nn = 0\ntry:\n  while n < 40:\n    if os.fork() == 0: time.sleep(60)\n    n += 1\nexcept BlockingIOError: pass\nsys.exit(0 if n == 18 else 2)", "allow"},
		{"output", "import sys\nsys.stdout.write('x' * (4 << 20))", "no_verdict output_too_large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := planned(t, r, python+tt.script)
			awaitForks(t, r, j)
			for range 2 {
				before := r.Use().Warm
				if v, _ := askFor(20*time.Second, r, input(python+tt.script)); told(v) != tt.want {
					t.Error(show(v))
				}
				if r.Use().Warm != before+1 {
					t.Error("it was not forked")
				}
			}
		})
	}
}

// TestForksThatDied: the job then has a sandbox of its own, at once where what
// forks has ended, after forkTime where it hangs; a new one forks the next.
func TestForksThatDied(t *testing.T) {
	r := forkRunner(t, Options{})
	j := planned(t, r, python+"import sys\nprint(sys.stdin.read())\nsys.exit(3)")
	for _, tt := range []struct {
		name  string
		spoil func(w *ahead) error
	}{
		{"the sandbox", func(w *ahead) error {
			if err := unix.PidfdSendSignal(w.box.pidfd, unix.SIGKILL, nil, 0); err != nil {
				return err
			}
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(w.box.pidfd), Events: unix.POLLIN}}, 10_000) // until it has ended
			return err
		}},
		{"the server", func(w *ahead) error { return unix.Kill(forkServer(t, w), unix.SIGKILL) }},
		{"it hangs", func(w *ahead) error { return unix.Kill(forkServer(t, w), unix.SIGSTOP) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			awaitForks(t, r, j)
			w, before := theForks(t, r), r.Use()
			if err := tt.spoil(w); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if got := runTraced(t, r, j); got.Code != 3 || got.Failure != nil || !strings.HasPrefix(got.Stdout, "a first line") {
				t.Errorf("got %+v", got)
			}
			if took := time.Since(began); tt.name == "it hangs" && took < forkTime {
				t.Errorf("it was waited for only %s", took)
			}
			after := r.Use()
			if after.Warm != before.Warm || after.Failed != before.Failed || after.Started != before.Started+1 {
				t.Errorf("before %+v, after %+v", before, after)
			}
			awaitWaiting(t, r, j)
			if theForks(t, r) == w {
				t.Error("it still waits")
			}
			if got := runTraced(t, r, j); got.Code != 3 || r.Use().Warm == after.Warm {
				t.Errorf("the next one: %+v", got)
			}
		})
	}
}

// TestForkedOnlyForItsOwn: nothing is forked for another agent, another hook, or
// another script, which a hook has as soon as it is changed.
func TestForkedOnlyForItsOwn(t *testing.T) {
	r := forkRunner(t, Options{})
	awaitForks(t, r, planned(t, r, python+"print(1)"))
	for _, tt := range []struct {
		name, script, want string
		change             func(*gate.Input)
		warm               uint64
	}{
		{"its own", "print(1)", "1\n", func(in *gate.Input) { in.Context = []byte("other") }, 1},
		{"another agent's", "print(1)", "1\n", func(in *gate.Input) { in.Event.Agent = "b" }, 0},
		{"another hook's", "print(1)", "1\n", func(in *gate.Input) { in.Hook.Name = "i" }, 0},
		{"another level's", "print(1)", "1\n", func(in *gate.Input) { in.Hook.Level = gate.AgentLevel }, 0},
		{"a changed script", "print(2)", "2\n", func(*gate.Input) {}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := r.Use().Warm
			if got := runTraced(t, r, planned(t, r, python+tt.script, tt.change)); got.Stdout != tt.want || got.Code != 0 {
				t.Errorf("got %+v", got)
			}
			if warm := r.Use().Warm - before; warm != tt.warm {
				t.Errorf("%d were forked", warm)
			}
		})
	}
}

// TestNotForked: what cannot be, waits or runs as ever.
func TestNotForked(t *testing.T) {
	py, sh := job{script: "pass", fileName: "script.py"}, job{script: ":", fileName: "script.sh"}
	for _, tt := range []struct {
		name string
		j    job
		s    sandbox
		want bool
	}{
		{"python", py, sandbox{}, true},
		{"in a workspace", py, sandbox{mounted: []mounted{{path: "/srv/work"}}, shown: []shown{{path: "/srv/work"}}}, true},
		{"bash", sh, sandbox{}, false},
		{"python that is told something", py, sandbox{environ: []string{"PYTHONHASHSEED=0"}}, false},
		{"a shell line", job{inline: "python3 x.py", fileName: "script.sh"}, sandbox{}, false},
		{"a workspace in /tmp", py, sandbox{mounted: []mounted{{path: "/tmp/work"}}}, false},
		{"a workspace that holds /tmp", py, sandbox{mounted: []mounted{{path: "/"}}}, false},
		{"a conversation in /tmp", py, sandbox{shown: []shown{{path: "/tmp/x.txt"}}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.j.mayFork(&tt.s); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
	t.Run("with a filter all the same", func(t *testing.T) {
		r := warmRunner(t, Options{ForkPython: true, Env: map[string]string{"PYTHONHASHSEED": "0"}})
		needsPython(t, r)
		j := planned(t, r, python+"print([m.split()[1] for m in open('/proc/self/status') if m.startswith('Seccomp:')], hash('a'))")
		awaitWarm(t, r, j)
		got, cold := runTraced(t, r, j), runTraced(t, newRunner(t, Options{Env: map[string]string{"PYTHONHASHSEED": "0"}}), j)
		if d := cmp.Diff(cold, got); d != "" || !strings.HasPrefix(got.Stdout, "['2']") || r.Use().Warm == 0 {
			t.Errorf("%d were warm, cold -, warm +\n%s", r.Use().Warm, d)
		}
	})
	t.Run("without being asked for", func(t *testing.T) {
		r := warmRunner(t, Options{})
		needsPython(t, r)
		if w := waitsFor(t, r, planned(t, r, python)); w.forks != nil {
			t.Error("it forks")
		}
	})
}

// TestForkedInAWorkspace: a hook has the agent's directory, where it lies outside
// of /tmp, and starts there.
func TestForkedInAWorkspace(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "stopgate-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "types.py"), []byte("mine = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	opt := Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{dir}}}
	cold, forked := newRunner(t, opt), forkRunner(t, opt)
	j := planned(t, cold, python+"import os, sys\nsys.path.insert(0, os.getcwd())\nimport types\nprint(os.getcwd(), os.listdir(), types.mine, sorted(sys.modules))\nopen('x', 'w')", in(dir))
	want := runTraced(t, cold, j)
	awaitForks(t, forked, j)
	before := forked.Use().Warm
	if d := cmp.Diff(want, runTraced(t, forked, j)); d != "" || forked.Use().Warm != before+1 || !strings.HasSuffix(want.Stderr, "'x'\n") {
		t.Errorf("%d were forked, cold -, forked +\n%s", forked.Use().Warm-before, d)
	}
}

// TestForksEndAfterTheirJobs: one that is to go lets its jobs end first.
func TestForksEndAfterTheirJobs(t *testing.T) {
	r := forkRunner(t, Options{})
	awaitForks(t, r, said(t, r, ""))
	w, before := theForks(t, r), r.Use().Warm
	var jobs sync.WaitGroup
	for range 2 {
		jobs.Go(func() {
			if got := runTraced(t, r, said(t, r, "stay")); !strings.HasPrefix(got.Stdout, "alive") {
				t.Errorf("got %+v", got)
			}
		})
	}
	for r.Use().Warm < before+2 {
		time.Sleep(time.Millisecond)
	}
	r.Close()
	if _, err := os.Stat(w.home.Path()); err != nil {
		t.Errorf("it has ended already: %v", err)
	}
	jobs.Wait()
	for _, pid := range soonLeft(t, w.hook) {
		t.Errorf("process %d is left", pid)
	}
	if _, err := os.Stat(w.home.Path()); err == nil {
		t.Error("its script lies there still")
	}
}

// TestManyForkedAtOnce have each their own input and output.
func TestManyForkedAtOnce(t *testing.T) {
	r := forkRunner(t, Options{})
	j := planned(t, r, python+"import sys\nprint(sys.stdin.read())\nsys.exit(3)")
	awaitForks(t, r, j)
	before := r.Use().Warm
	var jobs sync.WaitGroup
	for i := range 40 {
		jobs.Go(func() {
			j := j
			j.stdin = []byte(strings.Repeat(fmt.Sprint("job ", i, "\n"), 2000))
			if got := runTraced(t, r, j); got.Stdout != string(j.stdin)+"\n" || got.Code != 3 {
				t.Errorf("job %d: exit %d, %d bytes", i, got.Code, len(got.Stdout))
			}
		})
	}
	jobs.Wait()
	if n := r.Use().Warm - before; n != 40 {
		t.Errorf("%d of 40 were forked", n)
	}
}

// TestForkedDiffersAsDocumented: the exceptions of docs/writing-hooks.md, each held
// here so that none of them grows or outlives its reason.
func TestForkedDiffersAsDocumented(t *testing.T) {
	cold, forked := newRunner(t, Options{}), forkRunner(t, Options{})
	for _, tt := range []struct{ name, script, cold, forked string }{
		{"modules", `import sys; print("json" in sys.modules, "ctypes" in sys.modules, "fcntl" in sys.modules)`, "False False False\n", "True False False\n"},
		{"what the collector leaves alone", `import gc; print(gc.get_freeze_count() > 0)`, "False\n", "True\n"},
		{"process 1", `print(open("/proc/1/cmdline").read().split("\0")[0].split("/")[-1][:6])`, "bwrap\n", "python\n"},
		{"mounts", `print(sum(" /tmp " in m for m in open("/proc/self/mounts")))`, "1\n", "2\n"},
		{"filters", `print([m.split()[1] for m in open("/proc/self/status") if "filters" in m])`, "['1']\n", "['2']\n"},
		{"first environment", `print("PYTHONPATH=/hook" in open("/proc/self/environ").read().split("\0"))`, "False\n", "True\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := planned(t, cold, python+tt.script)
			if got := runTraced(t, cold, j).Stdout; got != tt.cold {
				t.Errorf("cold: %q", got)
			}
			awaitForks(t, forked, j)
			if got := runTraced(t, forked, j).Stdout; got != tt.forked {
				t.Errorf("forked: %q", got)
			}
		})
	}
	t.Run("hash seed and layout", func(t *testing.T) {
		j := planned(t, forked, python+`print(hash("a"), id(object()), id(print))`)
		awaitForks(t, forked, j)
		one, two := runTraced(t, forked, j), runTraced(t, forked, j)
		if one.Stdout != two.Stdout {
			t.Errorf("%q and %q", one.Stdout, two.Stdout)
		}
		forgetAll(forked)
		if cold := runTraced(t, forked, j); cold.Stdout == one.Stdout {
			t.Errorf("%q after that, too", cold.Stdout)
		}
	})
}
