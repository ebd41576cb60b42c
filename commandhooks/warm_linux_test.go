package commandhooks

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// warmRunner starts sandboxes ahead.
func warmRunner(t testing.TB, opt Options) *Runner {
	t.Helper()
	opt.Pool = 64 << 20
	r := newRunner(t, opt)
	t.Cleanup(func() { r.Close() })
	if r.pool == nil {
		t.Fatal("no sandbox is started ahead")
	}
	return r
}

// waitsFor is the sandbox that waits, and has the next job of its shape.
func waitsFor(t *testing.T, r *Runner, j job) *ahead {
	t.Helper()
	awaitWarm(t, r, j)
	p := r.pool.(*pool)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.shapes {
		for _, w := range s.waiting {
			return w.ahead
		}
	}
	t.Fatal("none waits")
	return nil
}

// TestWarmShowsWhatIsThereNow: a sandbox that was started when something else
// lay at a path is not used.
func TestWarmShowsWhatIsThereNow(t *testing.T) {
	dir := openDir(t)
	giveToSandbox(t, dir)
	text, work := filepath.Join(dir, "conversation.txt"), filepath.Join(dir, "work")
	put := func(path, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(text, "one\n")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(work, "file"), "first\n")
	for _, tt := range []struct {
		name   string
		change func()
		want   string
		warm   uint64
	}{
		{"nothing has changed", func() {}, "one\nfirst\n", 1},
		{"the conversation goes on", func() {
			f, err := os.OpenFile(text, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString("two\n")
				f.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "one\ntwo\nfirst\n", 1},
		{"another file is the conversation", func() {
			put(text+".new", "other\n")
			if err := os.Rename(text+".new", text); err != nil {
				t.Fatal(err)
			}
		}, "other\nfirst\n", 0},
		{"a file of the workspace is another", func() {
			put(filepath.Join(work, "new"), "second\n")
			if err := os.Rename(filepath.Join(work, "new"), filepath.Join(work, "file")); err != nil {
				t.Fatal(err)
			}
		}, "other\nsecond\n", 1},
		{"another directory is the workspace", func() {
			if err := os.Rename(work, work+".old"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(work, 0o755); err != nil {
				t.Fatal(err)
			}
			put(filepath.Join(work, "file"), "third\n")
		}, "other\nthird\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := warmRunner(t, Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{dir}}})
			j := planned(t, r, "cat "+text+"; cat file", in(work), withTranscript(text, ""))
			waitsFor(t, r, j)
			tt.change()
			before := r.Use().Warm
			if got := runTraced(t, r, j); got.Stdout != tt.want {
				t.Errorf("got %+v", got)
			}
			if warm := r.Use().Warm - before; warm != tt.warm {
				t.Errorf("%d of 1 were warm", warm)
			}
		})
	}
	t.Run("the conversation is not the event's own", func(t *testing.T) {
		r := warmRunner(t, Options{})
		j := planned(t, r, "cat "+text, withTranscript(text, ""))
		waitsFor(t, r, j)
		j.isTranscript = func(string, os.FileInfo) bool { return false }
		if got := runTraced(t, r, j); got.Failure == nil || got.Failure.Code != gate.TranscriptUnreadable {
			t.Errorf("got %+v", got)
		}
	})
}

// TestWarmOnlyForItsOwn: what one kind of hook waits with is no other's.
func TestWarmOnlyForItsOwn(t *testing.T) {
	dir := openDir(t)
	r := warmRunner(t, Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{dir}}})
	waitsFor(t, r, planned(t, r, ":"))
	for _, tt := range []struct {
		name, script string
		change       []func(*gate.Input)
	}{
		{"a shell line", "exit 0", []func(*gate.Input){inline}},
		{"python", python, nil},
		{"in a workspace", ":", []func(*gate.Input){in(dir)}},
		{"of Claude Code, with a variable", ":", []func(*gate.Input){in("/somewhere"), func(in *gate.Input) { in.Hook.Dialect = gate.ClaudeCode }}},
		{"of AX Code", ":", []func(*gate.Input){func(in *gate.Input) { in.Hook.Dialect = gate.AXCode }}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := r.Use().Warm
			if got := runTraced(t, r, planned(t, r, tt.script, tt.change...)); got.Failure != nil || got.Code != 0 {
				t.Errorf("got %+v", got)
			}
			if r.Use().Warm != before {
				t.Error("it got another's sandbox")
			}
		})
	}
	if n := shapes(r); n != 5 { // AX Code's have none
		t.Errorf("%d shapes are remembered", n)
	}
}

func shapes(r *Runner) int {
	p := r.pool.(*pool)
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.shapes)
}

// TestNotWarmAsSomebody: a hook that runs as the workspace's owner has no
// sandbox ahead, since the owner could exchange its script out here.
func TestNotWarmAsSomebody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only a gate that is root runs hooks as somebody else")
	}
	dir := openDir(t)
	giveToSandbox(t, dir)
	r := warmRunner(t, Options{Workspace: Workspace{Access: ReadWrite, Roots: []string{dir}}})
	if got := runTraced(t, r, planned(t, r, "id -u; : > file", in(dir))); got.Failure != nil || got.Code != 0 {
		t.Errorf("got %+v", got)
	}
	if n := shapes(r); n != 0 {
		t.Errorf("%d shapes are remembered", n)
	}
}

// TestWarmThatDied: what has ended while it waited has no job.
func TestWarmThatDied(t *testing.T) {
	r := warmRunner(t, Options{})
	j := planned(t, r, "cat; exit 3")
	w := waitsFor(t, r, j)
	if err := unix.PidfdSendSignal(w.box.pidfd, unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	awaitEnd(w.box.bwrap.Pid)
	before := r.Use().Warm
	if got := runTraced(t, r, j); got.Code != 3 || got.Failure != nil || !strings.HasPrefix(got.Stdout, "a first line") {
		t.Errorf("got %+v", got)
	}
	if r.Use().Warm != before {
		t.Error("it counts as warm")
	}
}

// TestWarmHolds: limits and timeouts are the job's.
func TestWarmHolds(t *testing.T) {
	r := warmRunner(t, Options{Limits: Limits{Memory: 128 << 20, Processes: 20, CPU: 1}})
	needsPython(t, r)
	for _, tt := range []struct{ name, script, want string }{
		{"time", "sleep 600", "no_verdict timeout"},
		{"processor time", "while :; do :; done", "no_verdict signalled"},
		{"memory", python + "import os\nif os.fork() >= 0:\n  x = bytearray(100 << 20)\n  import time; time.sleep(60)", "no_verdict signalled"},
		{"processes", python + "import os, sys, time\nn = 0\ntry:\n  while n < 40:\n    if os.fork() == 0: time.sleep(60)\n    n += 1\nexcept BlockingIOError: pass\nsys.exit(0 if 10 < n < 20 else 2)", "allow"},
		{"descriptors", "for n in {3..254}; do [ -e /proc/$$/fd/$n ] && exit 2; done; exit 0", "allow"},
		{"privileges", "grep -q '^CapEff:.*0000000000000000$' /proc/self/status && grep -q '^Seccomp:.2' /proc/self/status && exit 0; exit 2", "allow"},
		{"no word to the gate", "{ echo >&3; } 2>/dev/null && exit 2; exit 0", "allow"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			forgetAll(r)
			waitsFor(t, r, planned(t, r, tt.script))
			before, limit := r.Use().Warm, 20*time.Second
			if tt.name == "time" {
				limit = 500 * time.Millisecond
			}
			v, took := askFor(limit, r, input(tt.script))
			if told(v) != tt.want || took > limit+time.Second {
				t.Errorf("after %s: %s", took, show(v))
			}
			if r.Use().Warm != before+1 {
				t.Error("it was not warm")
			}
		})
	}
}

// TestScriptsLieNowhereBeforeAndAfter: a sandbox that waits has but an empty file in
// the place of its script, which nobody else can open, and one that has run leaves none.
func TestScriptsLieNowhereBeforeAndAfter(t *testing.T) {
	dir := openDir(t)
	t.Setenv("TMPDIR", dir)
	r := warmRunner(t, Options{})
	j := planned(t, r, "echo secret")
	w := waitsFor(t, r, j)
	if lie, err := os.ReadDir(w.hook); err != nil || len(lie) != 1 || lie[0].Name() != "script.sh" {
		t.Errorf("%v lie there, %v", lie, err)
	}
	if info, err := os.Stat(filepath.Join(w.hook, "script.sh")); err != nil || info.Size() != 0 || info.Mode() != 0o600 {
		t.Errorf("the script's place: %d bytes, %v, %v", info.Size(), info.Mode(), err)
	}
	if info, err := os.Stat(w.home.Path()); err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("others get there: %v, %v", info.Mode(), err)
	}
	runTraced(t, r, j)
	r.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	for _, pid := range soonLeft(t, dir) {
		t.Errorf("process %d is left", pid)
	}
	if got := runTraced(t, r, j); got.Stdout != "secret\n" {
		t.Errorf("after Close: %+v", got)
	}
}

// TestNoPlaceForScripts: where hooks see the temporary directories, no script
// may lie there for another.
func TestNoPlaceForScripts(t *testing.T) {
	r := newRunner(t, Options{Pool: 64 << 20, Workspace: Workspace{Access: ReadWrite, Roots: []string{"/"}}})
	defer r.Close()
	if r.pool != nil {
		t.Error("sandboxes are started ahead")
	}
	if got := r.Status().Ahead; !strings.Contains(got, "no temporary directory") {
		t.Errorf("ahead: %q", got)
	}
	if got := newRunner(t, Options{Pool: 64 << 20, Mode: Process}).Status().Ahead; !strings.Contains(got, "in mode bubblewrap alone, and this is mode process") {
		t.Errorf("without a sandbox, ahead: %q", got)
	}
}

// TestKilledGateLeavesNothingWaiting: the sandboxes end with the gate, and the
// next one takes their directories away.
func TestKilledGateLeavesNothingWaiting(t *testing.T) {
	newRunner(t, Options{})
	dir := openDir(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestGateWithWaiting$")
	cmd.Env = append(os.Environ(), killedGate+"="+dir, "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	waited := processesNaming(t, dir)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	if err != nil || line != "waits\n" || len(waited) == 0 {
		t.Fatalf("the gate said %q, %v, with %d processes", line, err, len(waited))
	}
	for _, pid := range soonLeft(t, dir) {
		t.Errorf("process %d outlives its gate", pid)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	t.Setenv("TMPDIR", dir)
	newRunner(t, Options{})
	if left, err := filepath.Glob(dir + "/stopgate-scratch-*"); err != nil || len(left) != 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// soonLeft are the processes with a text in their command lines that do not end
// within 5 s, for ends that take milliseconds.
func soonLeft(t *testing.T, text string) (left []int) {
	t.Helper()
	for range 500 {
		if left = processesNaming(t, text); len(left) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return left
}

func TestGateWithWaiting(t *testing.T) {
	if os.Getenv(killedGate) == "" {
		t.Skip("is a part of TestKilledGateLeavesNothingWaiting")
	}
	r := warmRunner(t, Options{ForkPython: true})
	waitsFor(t, r, planned(t, r, ":"))
	if r.Status().Python != "" {
		j := planned(t, r, python+"import sys, time\ntime.sleep(float(sys.stdin.readline()))")
		j.stdin = []byte("0\n")
		forgetAll(r)
		awaitWaiting(t, r, j)
		before := r.Use().Warm
		j.stdin = []byte("600\n")
		go runTraced(t, r, j)
		for r.Use().Warm == before {
			time.Sleep(time.Millisecond)
		}
		waitsFor(t, r, planned(t, r, ":"))
	}
	fmt.Println("waits")
	time.Sleep(time.Minute)
}
