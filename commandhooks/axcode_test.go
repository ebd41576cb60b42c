package commandhooks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
)

// ofAXCode makes the hook one of AX Code's, a shell line with ample time.
func ofAXCode(in *gate.Input) {
	inline(in)
	in.Hook.Dialect, in.Hook.Timeout = gate.AXCode, gate.DefaultTimeout
}

// timed sets the hook's own time.
func timed(d time.Duration) func(*gate.Input) {
	return func(in *gate.Input) { in.Hook.Timeout = d }
}

func answering(in *gate.Input) { in.Hook.ReadsAnswer = true }
func blocking(in *gate.Input)  { in.Hook.BlockOnFailure = true }

// ended is how a process ended and what it said.
func ended(code int, stdout, stderr string) ending {
	return ending{code: code, stdout: text{kept: []byte(stdout)}, stderr: text{kept: []byte(stderr)}}
}

type axCase struct {
	name string
	end  ending
	want string
}

// runLaw holds the law to a table. What a hook says for the agent stands behind
// a "+".
func runLaw(t *testing.T, cases []axCase, change ...func(*gate.Input)) {
	t.Helper()
	in := input("true", append([]func(*gate.Input){ofAXCode}, change...)...)
	for _, tt := range cases {
		t.Run(fmt.Sprintf("%s/%s", in.Hook.Event, tt.name), func(t *testing.T) {
			v := judge(in.Hook, in.Event.Name, tt.end)
			got := told(v)
			if v.AdditionalContext != "" {
				got += " +" + v.AdditionalContext
			}
			if got != tt.want {
				t.Errorf("got %s\nwant %s", show(v), tt.want)
			}
		})
	}
}

// blockable are the events that a hook can block, watched those that it cannot,
// feedback left out.
var (
	blockable = []gate.EventName{gate.PreToolUse, gate.UserPromptSubmit}
	watched   = []gate.EventName{gate.PostToolUseFailure, gate.Stop, gate.PreCompact, gate.SubagentStop, gate.Start, gate.SessionEnd, gate.PostCompact, gate.Interrupt}
)

const (
	denies = `{"permissionDecision":"deny","reason":"flat"}`
	asks   = `{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"sure?"}}`
)

func TestAXCode11WithoutProtocol(t *testing.T) {
	for _, event := range blockable {
		runLaw(t, []axCase{
			{"exit 0", ended(0, "running bash", ""), "allow"},
			{"JSON is not read", ended(0, denies, ""), "allow"},
			{"exit 1", ended(1, "", "no"), "no_verdict nonzero_exit"},
			{"exit 2 alone does not block", ended(2, denies, "no"), "no_verdict nonzero_exit"},
			{"a time-out", ending{timedOut: true}, "no_verdict timeout"},
			{"a signal", ending{signal: "SIGKILL"}, "no_verdict signalled"},
		}, on(event))
		runLaw(t, []axCase{
			{"exit 0", ended(0, denies, "no"), "allow"},
			{"stderr", ended(1, "out", " err \n"), "block err"},
			{"else stdout", ended(1, " out \n", " \n"), "block out"},
			{"else the code", ended(3, "", ""), "block exit 3"},
			{"exit 2 too", ended(2, denies, ""), "block " + denies},
			{"9: a time-out is 124", ending{timedOut: true}, "block exit 124"},
			{"9: a time-out that said something", ending{timedOut: true, stderr: text{kept: []byte("slow")}}, "block slow"},
			{"9: a signal is 1", ending{signal: "SIGTERM"}, "block exit 1"},
			{"9: a signal as the sandbox reports it", ending{signal: "SIGTERM", code: 143, unsure: true}, "block exit 1"},
			{"9: too much memory is a signal", ending{signal: "SIGKILL", overMemory: 1 << 20}, "block exit 1"},
		}, on(event), blocking)
	}
	for _, event := range append(watched, gate.PostToolUse) {
		runLaw(t, []axCase{{"blocks nothing", ended(1, "", "no"), "no_verdict nonzero_exit"}, {"a time-out neither", ending{timedOut: true}, "no_verdict timeout"}}, on(event), blocking)
	}
}

func TestAXCode12ExitTwoBlocks(t *testing.T) {
	for _, event := range blockable {
		cases := []axCase{
			{"the JSON's flat reason", ended(2, `{"reason":"flat","hookSpecificOutput":{"permissionDecisionReason":"nested"}}`, "err"), "block flat"},
			{"else the nested one", ended(2, `{"hookSpecificOutput":{"permissionDecisionReason":"nested"}}`, "err"), "block nested"},
			{"else stderr", ended(2, `{"permissionDecision":"allow"}`, " err\n"), "block err"},
			{"an empty reason is none", ended(2, `{"reason":" "}`, "err"), "block err"},
			{"broken stdout still blocks", ended(2, `{"reason":`, "err"), "block err"},
			{"prose too", ended(2, "hello", "err"), "block err"},
			{"illegal types too", ended(2, `{"reason":7}`, "err"), "block err"},
			{"in silence", ended(2, "", ""), "block"},
			{"an allow does not soften it", ended(2, `{"permissionDecision":"allow","reason":"r"}`, ""), "block r"},
		}
		runLaw(t, cases, on(event), answering)
		runLaw(t, append(cases, axCase{"blockOnFailure has no effect on 1", ended(1, "", "no"), "no_verdict nonzero_exit"},
			axCase{"nor on a time-out", ending{timedOut: true}, "no_verdict timeout"}), on(event), answering, blocking)
	}
}

func TestAXCode13To15ExitZero(t *testing.T) {
	for _, event := range blockable {
		ask := map[gate.EventName]string{gate.PreToolUse: "ask", gate.UserPromptSubmit: "block"}[event] // 16
		runLaw(t, []axCase{
			{"13: silence", ended(0, " \n", "noise"), "allow"},
			{"13: none", ended(0, `{}`, ""), "allow"},
			{"13: allow", ended(0, `{"permissionDecision":"allow","reason":"r"}`, ""), "allow"},
			{"13: deny", ended(0, "\n"+denies+"\n", ""), "block flat"},
			{"13: nested deny", ended(0, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"nested"}}`, ""), "block nested"},
			{"13: deny without a reason", ended(0, `{"permissionDecision":"deny"}`, ""), "block"},
			{"13 and 16: ask", ended(0, asks, ""), ask + " sure?"},
			{"13 and 16: ask without a reason", ended(0, `{"permissionDecision":"ask"}`, ""), ask + " hook requested user confirmation"},
			{"13: flat wins, allow", ended(0, `{"permissionDecision":"allow","hookSpecificOutput":{"permissionDecision":"deny"}}`, ""), "allow"},
			{"13: flat wins, deny", ended(0, `{"permissionDecision":"deny","hookSpecificOutput":{"permissionDecision":"allow","permissionDecisionReason":"nested"}}`, ""), "block nested"},
			{"13: flat reason wins", ended(0, `{"reason":"flat","hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"nested"}}`, ""), "block flat"},
			{"DESIGN §9: defer counts as ask", ended(0, `{"permissionDecision":"defer"}`, ""), ask + " hook requested user confirmation"},
			{"14: prose", ended(0, "looks good", ""), "no_verdict bad_output"},
			{"14: prose round it", ended(0, "note\n"+denies, ""), "no_verdict bad_output"},
			{"14: two objects", ended(0, denies+denies, ""), "no_verdict bad_output"},
			{"14: an array", ended(0, "["+denies+"]", ""), "no_verdict bad_output"},
			{"14: null", ended(0, "null", ""), "no_verdict bad_output"},
			{"14: a string", ended(0, `"deny"`, ""), "no_verdict bad_output"},
			{"14: an unknown decision", ended(0, `{"permissionDecision":"block","reason":"r"}`, ""), "no_verdict bad_output"},
			{"14: an unknown nested decision", ended(0, `{"hookSpecificOutput":{"permissionDecision":"DENY"}}`, ""), "no_verdict bad_output"},
			{"14: a reason that is no text", ended(0, `{"permissionDecision":"deny","reason":["r"]}`, ""), "no_verdict bad_output"},
			{"14: a null", ended(0, `{"permissionDecision":"deny","reason":null}`, ""), "no_verdict bad_output"},
			{"14: a nested null", ended(0, `{"permissionDecision":"deny","hookSpecificOutput":null}`, ""), "no_verdict bad_output"},
			{"14: continue that is no bool", ended(0, `{"permissionDecision":"deny","continue":"no"}`, ""), "no_verdict bad_output"},
			{"14: unknown keys may have any type", ended(0, `{"permissionDecision":"deny","reason":"r","x":null,"hookSpecificOutput":{"y":[1]}}`, ""), "block r"},
			{"14: case counts", ended(0, `{"permissiondecision":"deny"}`, ""), "allow"},
			{"14: the last of two counts", ended(0, `{"permissionDecision":"allow","permissionDecision":"deny","reason":"r"}`, ""), "block r"},
			{"15: a top-level block does not block", ended(0, `{"decision":"block","reason":"r"}`, ""), "allow"},
			{"15: exit 1", ended(1, denies, ""), "no_verdict nonzero_exit"},
			{"15: exit 127", ended(127, denies, "not found"), "no_verdict nonzero_exit"},
			{"15: a signal", ending{signal: "SIGSEGV", stdout: text{kept: []byte(denies)}}, "no_verdict signalled"},
			{"10: an answer beyond 1 MiB", ending{stdout: text{kept: []byte(`{"permissionDecision":"deny","reason":"aaa`), cut: true}}, "no_verdict output_too_large"},
		}, on(event), answering)
	}
	in := input("true", ofAXCode, on(gate.PreToolUse), answering)
	v := judge(in.Hook, in.Event.Name, ended(0, `{"continue":false,"stopReason":"budget spent"}`, ""))
	if told(v) != "block budget spent" || !v.Has(gate.HaltRequested) {
		t.Errorf("DESIGN §9: continue false is %s, notes %v", told(v), v.Notes)
	}
}

func TestAXCode17ObservedEventsReachNoDecoder(t *testing.T) {
	for _, event := range watched {
		runLaw(t, []axCase{
			{"exit 2 with a deny", ended(2, denies, "no"), "no_verdict nonzero_exit"},
			{"exit 0 with a deny", ended(0, denies, ""), "allow"},
			{"prose", ended(0, "hello", ""), "allow"},
		}, on(event), answering)
	}
}

func TestAXCode18Feedback(t *testing.T) {
	runLaw(t, []axCase{
		{"trimmed stdout", ended(0, " formatted 3 files\n", "noise"), "allow +formatted 3 files"},
		{"JSON is text", ended(0, denies, ""), "allow +" + denies},
		{"silence", ended(0, "\n", ""), "allow"},
		{"exit 1 gives nothing", ended(1, "out", "err"), "no_verdict nonzero_exit"},
		{"exit 2 gives nothing", ended(2, "out", "err"), "no_verdict nonzero_exit"},
		{"a time-out gives nothing", ending{timedOut: true, stdout: text{kept: []byte("out")}}, "no_verdict timeout"},
	}, on(gate.PostToolUse))
	runLaw(t, []axCase{
		{"a block's reason", ended(0, `{"decision":"block","reason":"fix it"}`, ""), "allow +fix it"},
		{"then the context", ended(0, `{"decision":"block","reason":"fix it","hookSpecificOutput":{"additionalContext":"ctx"}}`, ""), "allow +fix it\nctx"},
		{"the context alone", ended(0, `{"reason":"no block","hookSpecificOutput":{"additionalContext":"ctx"}}`, ""), "allow +ctx"},
		{"flat context wins", ended(0, `{"additionalContext":"flat","hookSpecificOutput":{"additionalContext":"ctx"}}`, ""), "allow +flat"},
		{"another decision", ended(0, `{"decision":"approve","reason":"fine"}`, ""), "allow"},
		{"exit 2, the reason", ended(2, `{"reason":"fix it"}`, "err"), "allow +fix it"},
		{"exit 2, else stderr", ended(2, "prose", " err \n"), "allow +err"},
		{"exit 1", ended(1, `{"decision":"block","reason":"fix it"}`, "err"), "no_verdict nonzero_exit"},
		{"plain text", ended(0, "formatted", ""), "no_verdict bad_output"},
		{"a time-out", ending{timedOut: true, stdout: text{kept: []byte(`{"decision":"block","reason":"r"}`)}}, "no_verdict timeout"},
		{"a deny does not block", ended(0, denies, ""), "allow"},
	}, on(gate.PostToolUse), answering)
}

func TestAXCode07Process(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		before := func(in *gate.Input) { on(gate.PreToolUse)(in); in.Event.ToolName = "bash" }
		whole := func(in *gate.Input) {
			in.Context = []byte(`{"command":"` + strings.Repeat("x", 200_000) + `"}`)
		}
		for _, tt := range []struct {
			name, line, want string
			change           func(*gate.Input)
		}{
			{"stdin is the arguments, then the end", `cat >&2; exit 1`, `block {"command":"ls"}`, withContext([]byte(`{"command":"ls"}`))},
			{"8: stdin is always whole", `wc -c >&2; exit 1`, "block 200014", whole},
			{"8: no variable for what is too large", `echo "[$HOOK_ARGS_JSON]$HOOK_ARGS_STDIN" >&2; exit 1`, "block []1", whole},
			{"nobody has to read it", `exit 0`, "allow", whole},
			{"it runs through the shell", `f() { echo "$1"; }; f "a b" >&2; false || exit 7`, "block a b", withContext(nil)},
			{"9: a signal", `kill -KILL $$`, "block exit 1", withContext(nil)},
			{"10: what is beyond 1 MiB is gone", `head -c 3000000 /dev/zero | tr '\0' x; exit 1`, "block " + strings.Repeat("x", 1<<20), withContext(nil)},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if v := ask(t, r, tt.line, ofAXCode, before, blocking, tt.change); told(v) != tt.want {
					t.Errorf("got %.300s\nwant %.300s", show(v), tt.want)
				}
			})
		}
	})
}

func TestAXCode07RunsInTheGivenDirectory(t *testing.T) {
	dir := openDir(t)
	giveToSandbox(t, dir)
	everyMode(t, Options{Workspace: Workspace{Access: ReadWrite, Roots: []string{dir}}}, func(t *testing.T, r *Runner) {
		if v := ask(t, r, `pwd >&2; touch written; exit 1`, ofAXCode, on(gate.PreToolUse), blocking, in(dir)); told(v) != "block "+dir {
			t.Errorf("got %s, want %s", show(v), dir)
		}
		if err := os.Remove(filepath.Join(dir, "written")); err != nil {
			t.Error(err)
		}
	})
}

func TestAXCode09TimeOut(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		v := ask(t, r, `sleep 60 & wait`, ofAXCode, on(gate.PreToolUse), blocking, timed(500*time.Millisecond))
		if told(v) != "block exit 124" {
			t.Errorf("got %s", show(v))
		}
	})
}

// TestAXCode09TimeBeginsWithTheProcess: waiting for a place costs a hook nothing
// of its own time.
func TestAXCode09TimeBeginsWithTheProcess(t *testing.T) {
	r := newRunner(t, Options{Mode: Process, Parallel: 1})
	var busy sync.WaitGroup
	for range axCodeParallel {
		busy.Go(func() {
			if v := ask(t, r, `sleep 1; exit 1`, ofAXCode, on(gate.PreToolUse), blocking); told(v) != "block exit 1" {
				t.Errorf("got %s", show(v))
			}
		})
	}
	for r.axCode.Taken() < axCodeParallel {
		time.Sleep(time.Millisecond)
	}
	if v := ask(t, r, `exit 1`, ofAXCode, on(gate.PreToolUse), blocking, timed(3*time.Second)); told(v) != "block exit 1" {
		t.Errorf("after a wait: %s", show(v))
	}
	busy.Wait()
}

// TestAXCode09TheGatesTimeIsNoTimeOut: a hook that the gate cannot wait for any
// longer has not been asked, whatever it would have come to.
func TestAXCode09TheGatesTimeIsNoTimeOut(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		for name, as := range map[string]func(*gate.Input){"answering": answering, "blocking": blocking, "neither": func(*gate.Input) {}} {
			for _, left := range []time.Duration{0, 300 * time.Millisecond} {
				v, _ := askFor(left, r, input(`echo so far >&2; sleep 60 & wait`, ofAXCode, on(gate.PreToolUse), as))
				if told(v) != "no_verdict overloaded" {
					t.Errorf("%s, %s are left: %s", name, left, show(v))
				}
			}
		}
	})
}

// TestAXCode10FourAtMost: a fifth hook waits, however many others the gate may
// run, and hooks of other dialects do not wait for them.
func TestAXCode10FourAtMost(t *testing.T) {
	r := newRunner(t, Options{Mode: Process, Parallel: 16})
	dir := t.TempDir()
	hold := func(name string) string {
		return fmt.Sprintf("touch %[1]s/%[2]s; until [ -e %[1]s/go ]; do sleep 0.02; done", dir, name)
	}
	var running sync.WaitGroup
	for i := range 4 {
		running.Go(func() {
			if v := ask(t, r, hold(itoa(i)), ofAXCode); told(v) != "allow" {
				t.Errorf("hook %d: %s", i, show(v))
			}
		})
	}
	for started := 0; started < 4; time.Sleep(10 * time.Millisecond) {
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		started = len(files)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if v := r.Evaluate(ctx, input(`true`, ofAXCode)); told(v) != "no_verdict overloaded" {
		t.Errorf("a fifth: %s", show(v))
	}
	if v := ask(t, r, `exit 0`); told(v) != "allow" {
		t.Errorf("one of another dialect: %s", show(v))
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	running.Wait()
}
