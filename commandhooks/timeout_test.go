package commandhooks

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
)

// askFor evaluates with a timeout and says how long the answer took.
func askFor(timeout time.Duration, r *Runner, in gate.Input) (gate.Verdict, time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	began := time.Now()
	return r.Evaluate(ctx, in), time.Since(began)
}

func TestAzure43TimeoutKillsEverything(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		const timeout = 700 * time.Millisecond
		for _, tt := range []struct{ name, script string }{
			{"sleeps", `sleep 600`},
			{"fault timeout-03: waits for a child", `sh -c 'sleep 600 & wait'`},
			{"ignores TERM", `trap '' TERM INT HUP; while :; do sleep 1; done`},
			{"a grandchild holds the pipes", `(sleep 600 &) ; sleep 600`},
			{"a double fork in a session of its own", `setsid sh -c 'setsid sleep 5 & sleep 5' & sleep 600`},
			{"floods standard output", `while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`},
			{"floods standard error", `cat /dev/zero >&2`},
			{"stopped", `kill -STOP $$`},
			{"reads for ever", `exec 3<> <(sleep 600); read -u 3 x; sleep 600`},
		} {
			t.Run(tt.name, func(t *testing.T) {
				v, took := askFor(timeout, r, input(tt.script))
				if told(v) != "no_verdict timeout" {
					t.Errorf("got %s", show(v))
				}
				if took > timeout+time.Second {
					t.Errorf("answered after %s", took)
				}
				if v.Evidence == nil || v.Evidence.ExitCode != nil {
					t.Errorf("evidence %+v", v.Evidence)
				}
			})
		}
		t.Run("what was said before is kept", func(t *testing.T) {
			v, _ := askFor(timeout, r, input(`echo so far >&2; sleep 600`))
			if told(v) != "no_verdict timeout" || v.Evidence.Stderr != "so far\n" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("an 8 MiB context nobody reads", func(t *testing.T) {
			v, took := askFor(timeout, r, input(`sleep 600`, withContext(make([]byte, 8<<20))))
			if told(v) != "no_verdict timeout" || took > timeout+time.Second {
				t.Errorf("got %s after %s", show(v), took)
			}
		})
		t.Run("no time at all", func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if v := r.Evaluate(ctx, input(`exit 0`)); told(v) != "no_verdict timeout" {
				t.Errorf("got %s", show(v))
			}
		})
	})
}

// TestAzure43KilledInTime: a hook that its launcher's way of killing does not
// reach is killed by its main process, and the answer still comes in time.
func TestAzure43KilledInTime(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	main, err := os.StartProcess(sleep, []string{"sleep", "600"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{main: child{main}, kill: func() {}, used: func() int64 { return 0 }, limit: 1}
	own := &streams{}
	if err := own.open(); err != nil {
		t.Fatal(err)
	}
	defer own.close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	if _, why := p.wait(ctx, own); why != outOfTime || time.Since(began) > time.Second {
		t.Errorf("ended as %d after %s, want within a second of its timeout", why, time.Since(began))
	}
}

// TestAzure43ResultAtExit: what children do after the main process ended
// neither delays nor changes the answer.
func TestAzure43ResultAtExit(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		for _, tt := range []struct{ name, script, want string }{
			{"fault noise-02: a late word", `( sleep 12; echo late ) & exit 0`, "allow"},
			{"fault timeout-05: a child holds the pipes", `sleep 30 & exit 0`, "allow"},
			{"fault timeout-06: a child holds a copy of stdout", `exec 3>&1; (sleep 20) 0</dev/null >/dev/null 2>&1 & exit 0`, "allow"},
			{"a child in a session of its own holds the pipes", `setsid sleep 12 & echo '{"ok":false,"reason":"x"}'`, "block x"},
			{"a child that floods", `(while :; do echo; done >&2) & sleep 0.2; exit 0`, "allow"},
			{"1 MiB in one go before the exit", `head -c 1048576 /dev/zero | tr '\0' ' '`, "allow"},
			{"words of a child that was waited for", `(sleep 0.2; echo '{"ok":false,"reason":"x"}') & wait; exit 0`, "block x"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				v, took := askFor(30*time.Second, r, input(tt.script))
				if told(v) != tt.want {
					t.Errorf("got %s\nwant %s", show(v), tt.want)
				}
				if took > 10*time.Second { // the children live for 12 and more
					t.Errorf("answered after %s", took)
				}
			})
		}
	})
}

// TestNothingIsLost: whatever a script wrote before it ended is read, however
// busy the machine is.
func TestNothingIsLostAtExit(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				if v := ask(t, r, `printf '%60000s' ' '; echo '{"ok":false,"reason":"x"}'`); told(v) != "block x" {
					t.Errorf("got %s", show(v))
				}
			})
		}
		all.Wait()
	})
}

// TestFloodsFillNoMemory: what is kept of a stream is bounded, whatever comes.
func TestFloodsFillNoMemory(t *testing.T) {
	var c capture
	chunk := make([]byte, 300_000)
	for range 10 {
		c.keep(chunk)
	}
	if len(c.kept) != keepBytes || !c.cut {
		t.Errorf("kept %d bytes, cut %t", len(c.kept), c.cut)
	}
	c = capture{}
	if c.keep(make([]byte, keepBytes)); c.cut {
		t.Error("what fits exactly is cut")
	}
}

func TestParallelIsBounded(t *testing.T) {
	everyMode(t, Options{Parallel: 1}, func(t *testing.T, r *Runner) {
		busy := make(chan gate.Verdict)
		go func() {
			v, _ := askFor(1500*time.Millisecond, r, input(`sleep 600`))
			busy <- v
		}()
		for r.slots.Taken() == 0 {
			time.Sleep(time.Millisecond)
		}
		v, took := askFor(200*time.Millisecond, r, input(`exit 0`))
		if told(v) != "no_verdict overloaded" || took > 1200*time.Millisecond {
			t.Errorf("while another runs: got %s after %s", show(v), took)
		}
		if v := <-busy; told(v) != "no_verdict timeout" {
			t.Errorf("the first: got %s", show(v))
		}
		if v := ask(t, r, `exit 0`); told(v) != "allow" {
			t.Errorf("afterwards: got %s", show(v))
		}
	})
}

// TestAgentsTakeTurns: an agent with many hooks waiting does not keep another's
// from running for longer than one of its own takes.
func TestAgentsTakeTurns(t *testing.T) {
	r := newRunner(t, Options{Mode: Process, Parallel: 1})
	of := func(agent string) func(*gate.Input) {
		return func(in *gate.Input) {
			e := *in.Event
			e.Agent, in.Event = agent, &e
		}
	}
	flood, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 20 {
		running.Go(func() { r.Evaluate(flood, input(`sleep 0.2`, of("many"))) })
	}
	for r.slots.Waiting() < 19 {
		time.Sleep(time.Millisecond)
	}
	if v := r.Evaluate(t.Context(), input(`exit 0`, of("few"))); told(v) != "allow" {
		t.Errorf("got %s", show(v))
	}
	if u := r.Use(); u.Queued < 10 {
		t.Errorf("only %d of the others wait still", u.Queued)
	}
	end()
	running.Wait()
}

// TestNoPlaceInTime: a hook whose turn would come after its time hears so while it
// still has time.
func TestNoPlaceInTime(t *testing.T) {
	for name, as := range map[string]func(*gate.Input){"azure": func(*gate.Input) {}, "ax-code": ofAXCode} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, Options{Mode: Process, Parallel: 1})
			if v := ask(t, r, `sleep 2`); told(v) != "allow" { // so that it is known how long hooks take
				t.Fatalf("got %s", show(v))
			}
			busy, let := context.WithCancel(t.Context())
			ended := make(chan gate.Verdict)
			go func() { ended <- r.Evaluate(busy, input(`sleep 600`)) }()
			for r.slots.Taken() == 0 {
				time.Sleep(time.Millisecond)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 1900*time.Millisecond)
			defer cancel()
			v := r.Evaluate(ctx, input(`exit 0`, as))
			if told(v) != "no_verdict overloaded" || !strings.Contains(v.Failure.Message, "others wait already") || ctx.Err() != nil {
				t.Errorf("got %s, %v", show(v), ctx.Err())
			}
			let()
			<-ended
		})
	}
}

func TestNothingLeaks(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // other stopgates may use the machine's
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		nap := fmt.Sprintf("sleep 30.%d", os.Getpid()) // known again from outside
		ways := []gate.Input{input(`echo '{}'`), input(`exit 2`), input(nap + ` & exit 0`),
			input(`cat >/dev/null`, withContext(make([]byte, 1<<20))), input(`exit 0`, withTranscript("/stopgate/none", ""))}
		round := func() {
			for _, in := range ways {
				askFor(20*time.Second, r, in)
			}
			askFor(50*time.Millisecond, r, input(nap, inline))
			askFor(time.Millisecond, r, input(nap, inline))
			askFor(3*time.Millisecond, r, input(nap, inline))
			askFor(6*time.Millisecond, r, input(nap, inline))
		}
		round() // what is opened once
		files, temps, before := openFiles(t), hookTemps(t), children(t)
		for range 50 / len(ways) {
			round()
		}
		runtime.GC()
		if now := openFiles(t); now > files {
			t.Errorf("%d descriptors are open, %d before", now, files)
		}
		if now := hookTemps(t); now > temps {
			t.Errorf("%d temporary directories are left, %d before", now, temps)
		}
		// The kernel ends a sandbox's processes in its own time.
		for deadline := time.Now().Add(5 * time.Second); running(nap) > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d processes are left of hooks that have ended", running(nap))
			}
		}
		if now := children(t); now > before {
			t.Errorf("%d child processes are left, %d before", now, before)
		}
	})
}

func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func hookTemps(t *testing.T) (n int) {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "stopgate-") {
			n++
		}
	}
	return n
}

// running counts the processes on this machine that have the command in their
// command line, which a sandbox's own processes do for an inline one.
func running(command string) (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		b, _ := os.ReadFile(file)
		if strings.Contains(strings.ReplaceAll(string(b), "\x00", " "), command) {
			n++
		}
	}
	return n
}

// children counts this process's own children, zombies included.
func children(t *testing.T) (n int) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil {
			continue // a thread that has ended
		}
		n += len(strings.Fields(string(b)))
	}
	return n
}

func TestUseCountsStarts(t *testing.T) {
	r := newRunner(t, Options{Mode: Process})
	ask(t, r, `exit 0`)
	ask(t, r, `exit 3`)
	r.start = func(context.Context, job, *streams) (*process, *gate.Failure) {
		return nil, failed(gate.SandboxUnavailable, "it is gone")
	}
	ask(t, r, `exit 0`)
	if got, want := r.Use(), (Use{Limit: r.slots.Limit(), Started: 2, Failed: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
