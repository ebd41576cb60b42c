package gate

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func block(reason string) func(Input) Verdict { return says(Verdict{Outcome: Block, Reason: reason}) }

func allowWith(context string) func(Input) Verdict {
	return says(Verdict{Outcome: Allow, AdditionalContext: context})
}

func fails(in Input) Verdict { return failed(Timeout, "no answer in 30 s") }

func prompt(name string, limit int) Hook {
	return Hook{Name: name, Type: PromptHook, MaxRejections: limit}
}

func TestAzure25Context(t *testing.T) {
	var got map[string]any
	see := func(in Input) Verdict {
		got = nil
		if err := json.Unmarshal(in.Context, &got); err != nil {
			t.Errorf("context is no JSON: %v", err)
		}
		return Verdict{Outcome: Allow}
	}
	g := newGate(newMemory(), answers{"h": see}, agent(
		Hook{Name: "h"}, Hook{Name: "h", Event: PreToolUse}, Hook{Name: "h", Event: PostToolUse}))
	common := map[string]any{"agent_name": "a", "current_turn": 2.0, "max_turns": 9.0, "execution_summary": "",
		"session_id": "s", "hook_name": "h"}
	for _, c := range []struct {
		event EventName
		more  map[string]any
	}{
		{Stop, map[string]any{"hook_event_name": "Stop", "final_output": "done <&>", "stop_hook_active": false, "stop_rejection_count": 0.0}},
		{PreToolUse, map[string]any{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": map[string]any{"command": "ls"}}},
		{PostToolUse, map[string]any{"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": map[string]any{"command": "ls"},
			"tool_result": "ok", "tool_succeeded": true}},
	} {
		ev := tool(c.event)
		ev.Turn, ev.MaxTurns, ev.FinalOutput, ev.ToolResult = 2, 9, "done <&>", "ok"
		ev.ToolInput = json.RawMessage(`{"command":"ls"}`)
		decide(t, g, ev)
		want := map[string]any{}
		for _, m := range []map[string]any{common, c.more} {
			for k, v := range m {
				want[k] = v
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s context (-want +got)\n%s", c.event, diff)
		}
	}
	t.Run("fault G29: any tool_input is taken, and hooks get an object", func(t *testing.T) {
		for in, want := range map[string]any{`"s"`: map[string]any{"value": "s"}, `[1]`: map[string]any{"value": []any{1.0}}, ` 7 `: map[string]any{"value": 7.0}, `{`: map[string]any{},
			`null`: map[string]any{}, ``: map[string]any{}, `{"a":{"b":null}}`: map[string]any{"a": map[string]any{"b": nil}}} {
			ev := tool(PreToolUse)
			ev.ToolInput = json.RawMessage(in)
			decide(t, g, ev)
			if diff := cmp.Diff(want, got["tool_input"]); diff != "" {
				t.Errorf("tool_input %s (-want +got)\n%s", in, diff)
			}
		}
	})
}

func TestAzure26FailedToolIsAllowed(t *testing.T) {
	g := newGate(newMemory(), answers{"h": block("no")}, agent(Hook{Name: "h", Event: PostToolUse}))
	ev := tool(PostToolUse)
	if d := decide(t, g, ev); d.Outcome != Block {
		t.Errorf("successful tool: %s, want block", d.Outcome)
	}
	ev.ToolSucceeded = false
	if d := decide(t, g, ev); d.Outcome != Allow || len(d.Hooks) != 0 {
		t.Errorf("failed tool: %s with %d hooks, want allow with none", d.Outcome, len(d.Hooks))
	}
	ev.Name = PostToolUseFailure
	if d := decide(t, g, ev); d.Outcome != Allow || len(d.Hooks) != 0 {
		t.Errorf("PostToolUseFailure: %s with %d hooks, want allow with none", d.Outcome, len(d.Hooks))
	}
}

type fakeTranscript struct{ Transcript }

func (fakeTranscript) Path() string    { return "/t/view.txt" }
func (fakeTranscript) RawPath() string { return "/t/raw.jsonl" }
func (fakeTranscript) Close() error    { return nil }

func TestAzure27ExecutionSummaryIsThePath(t *testing.T) {
	var in Input
	g := newGate(newMemory(), answers{"h": func(i Input) Verdict { in = i; return Verdict{Outcome: Allow} }}, agent(Hook{Name: "h"}))
	decide(t, g, stop("s"))
	if in.Transcript != nil || !strings.Contains(string(in.Context), `"execution_summary":""`) {
		t.Errorf("without a transcript: %v %s", in.Transcript, in.Context)
	}
	g.Transcripts = transcriptsFunc(func(*Event) (Transcript, error) { return fakeTranscript{}, nil })
	decide(t, g, stop("s"))
	if in.Transcript == nil || !strings.Contains(string(in.Context), `"execution_summary":"/t/view.txt"`) ||
		!strings.Contains(string(in.Context), `"transcript_path":"/t/raw.jsonl"`) {
		t.Errorf("with a transcript: %v %s", in.Transcript, in.Context)
	}
}

func TestTranscriptThatCannotBeRead(t *testing.T) {
	g := newGate(newMemory(), answers{}, agent(Hook{Name: "h"}))
	g.Transcripts = transcriptsFunc(func(*Event) (Transcript, error) { return nil, Errorf(CodeValidation, "outside") })
	if _, err := g.Decide(t.Context(), stop("s"), Options{}); CodeOf(err) != CodeValidation {
		t.Errorf("native caller: %v, want a validation error", err)
	}
	ev := stop("s")
	ev.Protocol = "claude-code"
	if d := decide(t, g, ev); !d.Hooks[0].Has(TranscriptLost) {
		t.Errorf("host: %+v, want the note %s", d.Hooks[0], TranscriptLost)
	}
	g.Transcripts = transcriptsFunc(func(*Event) (Transcript, error) { return nil, &Failure{TranscriptUnreadable, "gone"} })
	if d := decide(t, g, stop("s")); !d.Hooks[0].Has(TranscriptLost) {
		t.Errorf("unreadable: %+v, want the note %s", d.Hooks[0], TranscriptLost)
	}
}

func TestAzure33RejectionComesBackAsUserMessage(t *testing.T) {
	g := newGate(newMemory(), answers{"h": block("say so")}, agent(Hook{Name: "h"}))
	d := decide(t, g, stop("s"))
	if diff := cmp.Diff([]Message{{"user", "say so"}}, d.Messages); diff != "" {
		t.Errorf("messages (-want +got)\n%s", diff)
	}
	if !d.StopHookActive || d.StopRejectionCount != 1 {
		t.Errorf("after one rejection: active %v count %d", d.StopHookActive, d.StopRejectionCount)
	}
	var seen string
	g.Evaluators[CommandHook] = answers{"h": func(in Input) Verdict { seen = string(in.Context); return Verdict{Outcome: Allow} }}
	decide(t, g, stop("s"))
	if !strings.Contains(seen, `"stop_hook_active":true,"stop_rejection_count":1`) {
		t.Errorf("next evaluation saw %s", seen)
	}
}

func TestAzure34RejectionWithoutReasonApproves(t *testing.T) {
	for _, reason := range []string{"", " \n\t"} {
		g := newGate(newMemory(), answers{"h": block(reason)}, agent(Hook{Name: "h"}))
		d := decide(t, g, stop("s"))
		if d.Outcome != Allow || !d.Hooks[0].Has(RejectedWithoutReason) || d.StopRejectionCount != 0 || d.Degraded {
			t.Errorf("reason %q: %+v", reason, d)
		}
	}
}

func TestAzure35MaxRejections(t *testing.T) {
	run := func(t *testing.T, a answers, hooks ...Hook) []Decision {
		g := newGate(newMemory(), a, agent(hooks...))
		var out []Decision
		for range 30 {
			out = append(out, decide(t, g, stop("s")))
		}
		return out
	}
	firstAllow := func(ds []Decision) int {
		for i, d := range ds {
			if d.Outcome == Allow {
				return i
			}
		}
		return -1
	}
	no := block("no")
	for _, c := range []struct {
		name  string
		hooks []Hook
		want  int // rejections before the forced allow
	}{
		{"fault gx-018, fault G06: default is 3", []Hook{prompt("p", 0)}, 3},
		{"1", []Hook{prompt("p", 1)}, 1},
		{"fault loop-04: 25 exactly", []Hook{prompt("p", 25)}, 25},
		{"maximum of those set", []Hook{prompt("p", 2), prompt("q", 5)}, 5},
		{"a default does not raise it", []Hook{prompt("p", 2), prompt("q", 0)}, 2},
		{"a command hook's value has no effect", []Hook{prompt("p", 2), {Name: "quiet", MaxRejections: 20}}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds := run(t, answers{"p": no, "q": no}, c.hooks...)
			if got := firstAllow(ds); got != c.want {
				t.Fatalf("rejections before the first allow: %d, want %d", got, c.want)
			}
			d := ds[c.want]
			if !d.Forced || d.StopRejectionCount != 0 || d.StopHookActive {
				t.Errorf("the allow: forced %v, count %d", d.Forced, d.StopRejectionCount)
			}
			if v := d.Hooks[0]; v.Outcome != Skipped || !v.Has(Capped) || v.Usage != nil {
				t.Errorf("prompt hook at the cap: %+v", v)
			}
			if ds[0].Forced {
				t.Error("a rejection is forced")
			}
			if ds[c.want+1].Outcome != Block {
				t.Error("the counts did not go back to 0")
			}
		})
	}
	t.Run("an inactive hook does not raise it", func(t *testing.T) {
		h := prompt("wide", 20)
		h.Activation = OnDemand
		g := newGate(newMemory(), answers{"p": no}, global(h), agent(prompt("p", 1)))
		decide(t, g, stop("s"))
		if d := decide(t, g, stop("s")); !d.Forced {
			t.Errorf("second stop: %+v", d)
		}
	})
	t.Run("rejections by command hooks alone do not count", func(t *testing.T) {
		g := newGate(newMemory(), answers{"c": no}, agent(prompt("p", 2), Hook{Name: "c"}))
		for i := range 10 {
			if d := decide(t, g, stop("s")); d.Outcome != Block || d.Hooks[0].Outcome != Allow {
				t.Fatalf("stop %d: %s, prompt hook %s", i, d.Outcome, d.Hooks[0].Outcome)
			}
		}
	})
	t.Run("a closed failure counts, an open one does not", func(t *testing.T) {
		closed := prompt("p", 2)
		closed.FailMode = FailBlock
		if got := firstAllow(run(t, answers{"p": fails}, closed)); got != 2 {
			t.Errorf("closed: %d rejections, want 2", got)
		}
		if got := firstAllow(run(t, answers{"p": fails}, prompt("p", 2))); got != 0 {
			t.Errorf("open: %d rejections, want 0", got)
		}
	})
	t.Run("a command hook still rejects at the cap", func(t *testing.T) {
		ds := run(t, answers{"p": no, "c": block("command says no")}, prompt("p", 1), Hook{Name: "c"})
		d := ds[1]
		if d.Outcome != Block || d.Forced || d.Hooks[0].Outcome != Skipped || d.Reason != "command says no" || d.StopRejectionCount != 2 {
			t.Errorf("second stop: %+v", d)
		}
	})
	t.Run("without a session the caller's count is compared", func(t *testing.T) {
		g := newGate(newMemory(), answers{"p": no}, agent(prompt("p", 2)))
		for claimed, want := range map[int]Outcome{0: Block, 1: Block, 2: Allow, 7: Allow} {
			ev := stop("")
			ev.ClaimedRejections = claimed
			d := decide(t, g, ev)
			if d.Outcome != want || d.Forced != (want == Allow) {
				t.Errorf("claimed %d: %s forced %v", claimed, d.Outcome, d.Forced)
			}
			if want == Block && d.StopRejectionCount != claimed+1 {
				t.Errorf("claimed %d: next count %d", claimed, d.StopRejectionCount)
			}
		}
	})
	t.Run("with a session the caller's count is ignored", func(t *testing.T) {
		g := newGate(newMemory(), answers{"p": no}, agent(prompt("p", 2)))
		ev := stop("s")
		ev.ClaimedRejections = 24
		if d := decide(t, g, ev); d.Outcome != Block || d.StopRejectionCount != 1 {
			t.Errorf("%+v", d)
		}
	})
}

func TestAzure36CommandHookHasNoCap(t *testing.T) {
	g := newGate(newMemory(), answers{"c": block("no")}, agent(Hook{Name: "c", MaxRejections: 1}))
	for i := range 40 {
		if d := decide(t, g, stop("s")); d.Outcome != Block || d.StopRejectionCount != i+1 {
			t.Fatalf("stop %d: %s count %d", i, d.Outcome, d.StopRejectionCount)
		}
	}
	for _, c := range []struct {
		turn, most int
		want       Outcome
	}{{4, 5, Block}, {5, 5, Allow}, {6, 5, Allow}, {5, 0, Block}} {
		ev := stop("s")
		ev.Turn, ev.MaxTurns = c.turn, c.most
		d := decide(t, g, ev)
		if d.Outcome != c.want || d.Forced != (c.want == Allow) {
			t.Errorf("turn %d of %d: %s forced %v", c.turn, c.most, d.Outcome, d.Forced)
		}
		if c.want == Allow && (d.Hooks[0].Outcome != Skipped || !d.Hooks[0].Has(MaxTurns)) {
			t.Errorf("turn %d of %d: hook %+v", c.turn, c.most, d.Hooks[0])
		}
	}
}

// The last turn ends, whatever fails: on_gate_error blocks the one before it.
func TestAzure36LastTurnEndsThoughTheGateFails(t *testing.T) {
	for turn, want := range map[int]Outcome{4: Block, 5: Allow} {
		m := newMemory()
		m.broken = errBroken
		g := newGate(m, answers{}, agent(Hook{Name: "c"}))
		g.OnGateError = FailBlock
		ev := stop("s")
		ev.Turn, ev.MaxTurns = turn, 5
		if d := decide(t, g, ev); d.Outcome != want || d.GateError == nil {
			t.Errorf("turn %d of 5: %s, gate error %v; want %s", turn, d.Outcome, d.GateError, want)
		}
		if d := g.Fail(t.Context(), ev, &Failure{Code: Overloaded}); d.Outcome != want {
			t.Errorf("turn %d of 5, not taken on: %s, want %s", turn, d.Outcome, want)
		}
	}
}

func TestAzure37OneRejectionIsEnough(t *testing.T) {
	g := newGate(newMemory(), answers{"one": block("first"), "three": block("third\n")},
		agent(Hook{Name: "one"}, Hook{Name: "two"}, Hook{Name: "three"}))
	if d := decide(t, g, stop("s")); d.Outcome != Block || d.Reason != "first\n\nthird" {
		t.Errorf("%s %q", d.Outcome, d.Reason)
	}
}

func TestAzure38Counts(t *testing.T) {
	a := answers{"c": block("do it")}
	count := func(t *testing.T, g *Gate, evs ...Event) int {
		t.Helper()
		n := 0
		for _, ev := range evs {
			n = decide(t, g, ev).StopRejectionCount
		}
		return n
	}
	ask := func(text string, person bool) Event {
		return Event{Name: UserPromptSubmit, Protocol: Native, Agent: "a", Session: "s", Prompt: text, ByPerson: person}
	}
	inside := ask("go on", true)
	inside.SubAgent = "sub"
	stopFor := func(id string) Event { ev := stop("s"); ev.PromptID = id; return ev }
	for _, c := range []struct {
		name   string
		events []Event
		want   int
	}{
		{"each rejection counts", []Event{stop("s"), stop("s")}, 2},
		{"tool events show it and leave it", []Event{stop("s"), tool(PreToolUse)}, 1},
		{"the user speaks", []Event{stop("s"), ask("next thing", true)}, 0},
		{"not a person", []Event{stop("s"), ask("<task-notification>", false)}, 1},
		{"inside a sub-agent", []Event{stop("s"), inside, stop("s")}, 2},
		{"our own reason", []Event{stop("s"), ask("do it", true)}, 1},
		{"a Stop of the same prompt", []Event{stopFor("p1"), stopFor("p1")}, 2},
		{"a Stop of another prompt", []Event{stopFor("p1"), stopFor("p1"), stopFor("p2")}, 1},
		{"another session", []Event{stop("s"), stop("other")}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(newMemory(), a, agent(Hook{Name: "c"}))
			if got := count(t, g, c.events...); got != c.want {
				t.Errorf("count %d, want %d", got, c.want)
			}
		})
	}
	t.Run("what is said inside a sub-agent leaves its own count too", func(t *testing.T) {
		m := newMemory()
		g := newGate(m, a, agent(Hook{Name: "c"}))
		own := stop("s")
		own.SubAgent = "sub"
		decide(t, g, own)
		decide(t, g, inside)
		if c := m.counts[LedgerKey{Agent: "a", Session: "s", SubAgent: "sub"}]; c.StopRejections != 1 {
			t.Errorf("the sub-agent's count is %d, want 1", c.StopRejections)
		}
	})
	t.Run("another agent of the session has its own", func(t *testing.T) {
		g := newGate(newMemory(), a, agent(Hook{Name: "c"}), &Spec{Kind: AgentSpec, Name: "b", Hooks: defaults([]Hook{{Name: "c", Level: CustomLevel}})})
		decide(t, g, stop("s"))
		other := stop("s")
		other.Agent = "b"
		if d := decide(t, g, other); d.StopRejectionCount != 1 {
			t.Errorf("count %d, want 1", d.StopRejectionCount)
		}
	})
	t.Run("an allow ends it", func(t *testing.T) {
		g := newGate(newMemory(), a, agent(Hook{Name: "c"}))
		decide(t, g, stop("s"))
		g.Evaluators[CommandHook] = answers{}
		if d := decide(t, g, stop("s")); d.StopRejectionCount != 0 || d.StopHookActive {
			t.Errorf("%+v", d)
		}
	})
	t.Run("a dry run counts nothing", func(t *testing.T) {
		m := newMemory()
		g := newGate(m, a, agent(Hook{Name: "c"}))
		ev := stop("s")
		ev.Dry = true
		decide(t, g, ev)
		if len(m.counts) != 0 || !m.records[0].DryRun {
			t.Errorf("counts %v, record %+v", m.counts, m.records[0])
		}
	})
	t.Run("the cap holds for the count of prompt hooks only", func(t *testing.T) {
		m := newMemory()
		g := newGate(m, answers{"p": block("x")}, agent(prompt("p", 3)))
		decide(t, g, stop("s"))
		decide(t, g, ask("again", true))
		if c := m.counts[LedgerKey{Agent: "a", Session: "s"}]; c.StopRejections != 0 || c.PromptRejections != 0 {
			t.Errorf("after the user spoke: %+v", c)
		}
	})
}

func TestAzure38TwoAtOnceNeverPassTheCap(t *testing.T) {
	m := newMemory()
	g := newGate(m, answers{"p": block("no")}, agent(prompt("p", 1)))
	var second Decision
	m.between = func() { second = decide(t, g, stop("s")) }
	first := decide(t, g, stop("s"))
	if second.Outcome != Block || second.StopRejectionCount != 1 {
		t.Errorf("the one that commits first: %+v", second)
	}
	if first.Outcome != Allow || !first.Forced || first.StopRejectionCount != 0 || !first.Hooks[0].Has(Capped) {
		t.Errorf("the one beyond the cap: %+v", first)
	}
	if len(m.records) != 2 {
		t.Errorf("%d records, want 2", len(m.records))
	}
	t.Run("a closed failure beyond the cap leaves no trace of one", func(t *testing.T) {
		m := newMemory()
		closed := prompt("p", 1)
		closed.FailMode = FailBlock
		g := newGate(m, answers{"p": fails}, agent(closed))
		m.between = func() { decide(t, g, stop("s")) }
		d := decide(t, g, stop("s"))
		if v := d.Hooks[0]; d.Outcome != Allow || !d.Forced || v.Outcome != Skipped || v.Failure != nil || v.Reason != "" || !cmp.Equal(v.Notes, []Note{Capped}) {
			t.Errorf("%+v", d)
		}
	})
	t.Run("below the cap two count two", func(t *testing.T) {
		m := newMemory()
		g := newGate(m, answers{"p": block("no")}, agent(prompt("p", 5)))
		m.between = func() { decide(t, g, stop("s")) }
		if d := decide(t, g, stop("s")); d.StopRejectionCount != 2 {
			t.Errorf("count %d, want 2", d.StopRejectionCount)
		}
	})
	t.Run("a command hook that rejects too still does", func(t *testing.T) {
		m := newMemory()
		g := newGate(m, answers{"p": block("no"), "c": block("never")}, agent(prompt("p", 1), Hook{Name: "c"}))
		m.between = func() { decide(t, g, stop("s")) }
		if d := decide(t, g, stop("s")); d.Outcome != Block || d.Reason != "never" {
			t.Errorf("%+v", d)
		}
	})
}

// Of two Stops at once at the cap, one is the forced allow; it ends the loop,
// so the other is judged (docs/decisions/0006-two-stops-at-the-cap.md).
func TestAzure38TwoAtOnceAtTheCap(t *testing.T) {
	type asked struct {
		hook  string
		count int
	}
	for _, c := range []struct {
		name    string
		between func(t *testing.T, g *Gate)
	}{
		{"another Stop", func(t *testing.T, g *Gate) {
			if d := decide(t, g, stop("s")); d.Outcome != Allow || !d.Forced {
				t.Errorf("the one that commits first: %+v", d)
			}
		}},
		{"the user spoke", func(t *testing.T, g *Gate) {
			decide(t, g, Event{Name: UserPromptSubmit, Protocol: Native, Agent: "a", Session: "s", Prompt: "go on", ByPerson: true})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMemory()
			var calls []asked
			see := func(v Verdict) func(Input) Verdict {
				return func(in Input) Verdict {
					var told struct {
						Count int `json:"stop_rejection_count"`
					}
					if err := json.Unmarshal(in.Context, &told); err != nil {
						t.Error(err)
					}
					calls = append(calls, asked{in.Hook.Name, told.Count})
					return v
				}
			}
			g := newGate(m, answers{"p": see(Verdict{Outcome: Block, Reason: "no"}), "c": see(Verdict{Outcome: Allow})}, agent(prompt("p", 1), Hook{Name: "c"}))
			g.Parallel = 1
			decide(t, g, stop("s"))
			calls = nil
			m.between = func() { c.between(t, g); calls = nil }
			d := decide(t, g, stop("s"))
			if d.Outcome != Block || d.Forced || d.StopRejectionCount != 1 || d.GateError != nil {
				t.Errorf("the second: %+v", d)
			}
			// The judge, with the new counts; the script was asked before and is not again.
			if diff := cmp.Diff([]asked{{"p", 0}}, calls, cmp.AllowUnexported(asked{})); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if last := m.records[len(m.records)-1]; last.EvaluationID != d.EvaluationID || last.Outcome != Block || len(last.Hooks) != 2 {
				t.Errorf("recorded %+v", last.Decision)
			}
		})
	}
	t.Run("a store that goes down in between", func(t *testing.T) {
		m := newMemory()
		g := newGate(m, answers{"p": block("no")}, agent(prompt("p", 1)))
		decide(t, g, stop("s"))
		m.between = func() { decide(t, g, stop("s")); m.broken = errBroken }
		if d := decide(t, g, stop("s")); !d.Degraded || d.GateError == nil {
			t.Errorf("%+v", d)
		}
	})
	t.Run("a store that always says stale", func(t *testing.T) {
		m := newMemory()
		g := newGate(m, answers{"p": block("no")}, agent(prompt("p", 1)))
		m.broken = ErrStale
		if d := decide(t, g, stop("s")); d.Outcome != Block || d.GateError == nil {
			t.Errorf("%+v", d)
		}
	})
}

func TestAzure39LevelsAndOrder(t *testing.T) {
	var asked []string
	see := func(in Input) Verdict {
		asked = append(asked, in.Hook.Name)
		return Verdict{Outcome: Block, Reason: in.Hook.Name}
	}
	a := answers{"g1": see, "g2": see, "c1": see, "c2": see}
	g := newGate(newMemory(), a, agent(Hook{Name: "c1"}, Hook{Name: "c2"}), global(Hook{Name: "g1"}), global(Hook{Name: "g2"}))
	g.Parallel = 1
	d := decide(t, g, stop("s"))
	if want := "g1\n\ng2\n\nc1\n\nc2"; d.Reason != want || len(asked) != 4 {
		t.Errorf("asked %v, reason %q", asked, d.Reason)
	}
	other := stop("s")
	other.Agent = "default"
	if d := decide(t, g, other); d.Reason != "g1\n\ng2" {
		t.Errorf("default agent: %q", d.Reason)
	}
	other.Agent = "nobody"
	if _, err := g.Decide(t.Context(), other, Options{}); CodeOf(err) != CodeNotFound {
		t.Errorf("unknown agent: %v", err)
	}
}

// The slowest hook comes first in firing order, and the answer is still in it.
func TestAzure39ParallelHooksAnswerInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := func(d time.Duration) func(Input) Verdict {
			return func(in Input) Verdict {
				time.Sleep(d)
				return Verdict{Outcome: Block, Reason: in.Hook.Name}
			}
		}
		g := newGate(newMemory(), answers{"slow": after(3 * time.Second), "quick": after(time.Second)},
			agent(Hook{Name: "slow"}, Hook{Name: "quick"}))
		began := time.Now()
		d := decide(t, g, stop("s"))
		if d.Reason != "slow\n\nquick" {
			t.Errorf("reason %q", d.Reason)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %s, want both at the same time", took)
		}
	})
}

func TestAzure12Activation(t *testing.T) {
	m := newMemory()
	onDemand := Hook{Name: "od", Activation: OnDemand}
	g := newGate(m, answers{"od": block("od"), "al": block("al")}, global(onDemand), global(Hook{Name: "al", Activation: Always}), agent())
	reason := func(session string) string { return decide(t, g, stop(session)).Reason }
	if got := reason("s"); got != "al" {
		t.Errorf("new thread: %q", got)
	}
	_ = m.SetActive(t.Context(), "s", "od", true, Actor{})
	_ = m.SetActive(t.Context(), "s", "al", false, Actor{})
	if got := reason("s"); got != "od" {
		t.Errorf("switched thread: %q", got)
	}
	if got := reason("other"); got != "al" {
		t.Errorf("another thread: %q", got)
	}
	d, err := g.Decide(t.Context(), stop("s"), Options{AllActive: true})
	if err != nil || d.Reason != "od\n\nal" {
		t.Errorf("all active: %q, %v", d.Reason, err)
	}
	t.Run("an agent's own hook of the same name is not switched", func(t *testing.T) {
		m := newMemory()
		own := func(in Input) Verdict { return Verdict{Outcome: Block, Reason: string(in.Hook.Level)} }
		g := newGate(m, answers{"h": own}, global(Hook{Name: "h"}), agent(Hook{Name: "h"}))
		_ = m.SetActive(t.Context(), "s", "h", false, Actor{})
		if d := decide(t, g, stop("s")); d.Reason != string(CustomLevel) {
			t.Errorf("blocked by %q, want the agent's own", d.Reason)
		}
	})
}

func TestAzure42FailMode(t *testing.T) {
	for _, event := range []EventName{Stop, PreToolUse, PostToolUse} {
		for mode, want := range map[FailMode]Outcome{FailAllow: Allow, FailBlock: Block} {
			g := newGate(newMemory(), answers{"h": fails}, agent(Hook{Name: "h", Event: event, FailMode: mode}))
			d := decide(t, g, tool(event))
			v := d.Hooks[0]
			if d.Outcome != want || v.Outcome != NoVerdict || v.Failure.Code != Timeout || v.FailMode != mode {
				t.Errorf("%s failMode %s: %s, hook %+v", event, mode, d.Outcome, v)
			}
			if d.Degraded != (mode == FailAllow) || v.Has(FailedOpen) != (mode == FailAllow) || v.Has(FailedClosed) != (mode == FailBlock) {
				t.Errorf("%s failMode %s: degraded %v notes %v", event, mode, d.Degraded, v.Notes)
			}
			if mode == FailBlock && (!strings.Contains(d.Reason, `"h"`) || !strings.Contains(d.Reason, "timeout")) {
				t.Errorf("%s: reason %q names neither hook nor error", event, d.Reason)
			}
		}
	}
	t.Run("fault G32: nonsense and panics are no verdict", func(t *testing.T) {
		for name, f := range map[string]func(Input) Verdict{
			"zero verdict":   says(Verdict{}),
			"unknown word":   says(Verdict{Outcome: "yes"}),
			"ask on Stop":    says(Verdict{Outcome: Ask}),
			"no cause given": says(Verdict{Outcome: NoVerdict}),
			"panic":          func(Input) Verdict { panic("boom") },
		} {
			g := newGate(newMemory(), answers{"h": f}, agent(Hook{Name: "h", FailMode: FailBlock}))
			if d := decide(t, g, stop("s")); d.Outcome != Block || d.Hooks[0].Failure == nil || d.Hooks[0].Failure.Code != Internal {
				t.Errorf("%s: %+v", name, d)
			}
		}
		g := newGate(newMemory(), answers{}, agent(Hook{Name: "h", Type: HTTPHook, FailMode: FailBlock}))
		if d := decide(t, g, stop("s")); d.Outcome != Block {
			t.Errorf("a type without evaluator: %+v", d)
		}
	})
	t.Run("the hook's own timeout ends its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			wait := EvaluatorFunc(func(ctx context.Context, _ Input) Verdict { <-ctx.Done(); return failed(Timeout, ctx.Err().Error()) })
			g := newGate(newMemory(), wait, agent(Hook{Name: "h", Timeout: 7 * time.Second}))
			began := time.Now()
			d := decide(t, g, stop("s"))
			if took := time.Since(began); took != 7*time.Second || d.Hooks[0].DurationMS != 7000 {
				t.Errorf("took %s, recorded %d ms", took, d.Hooks[0].DurationMS)
			}
		})
	})
}

func TestAzure45PostToolUseBlock(t *testing.T) {
	g := newGate(newMemory(), answers{"h": block("secret in the output")}, agent(Hook{Name: "h", Event: PostToolUse}))
	d := decide(t, g, tool(PostToolUse))
	if d.Outcome != Block || !strings.HasPrefix(d.Reason, "secret in the output\n") || !strings.Contains(d.Reason, "already run") {
		t.Errorf("%s %q", d.Outcome, d.Reason)
	}
	if len(d.Messages) != 0 {
		t.Errorf("messages %v: the reason stands in for the tool's result", d.Messages)
	}
	for _, event := range []EventName{PostToolUse, PreToolUse} { // fault G13
		g := newGate(newMemory(), answers{"h": block(" ")}, agent(Hook{Name: "h", Event: event}))
		if d := decide(t, g, tool(event)); d.Outcome != Block || !strings.HasPrefix(d.Reason, "A hook blocked this tool call and gave no reason.") {
			t.Errorf("%s without reason: %s %q", event, d.Outcome, d.Reason)
		}
	}
}

// fault G52, fault G57: in the answer itself, as a user message that comes
// after the tool's result.
func TestAzure46LastContextIsInjected(t *testing.T) {
	g := newGate(newMemory(), answers{"one": allowWith("c1"), "two": allowWith("c2"), "three": allowWith(" ")},
		agent(Hook{Name: "one", Event: PostToolUse}, Hook{Name: "two", Event: PostToolUse}, Hook{Name: "three", Event: PostToolUse}))
	d := decide(t, g, tool(PostToolUse))
	if d.AdditionalContext != "c2" || !cmp.Equal(d.Messages, []Message{{"user", "c2"}}) {
		t.Errorf("context %q messages %v", d.AdditionalContext, d.Messages)
	}
	if d.Hooks[0].Injected || !d.Hooks[1].Injected || d.Hooks[2].Injected || d.Hooks[0].AdditionalContext != "c1" {
		t.Errorf("hooks %+v", d.Hooks)
	}
	t.Run("from a hook that blocked", func(t *testing.T) {
		g := newGate(newMemory(), answers{"h": says(Verdict{Outcome: Block, Reason: "r", AdditionalContext: "c"})},
			agent(Hook{Name: "h", Event: PostToolUse}))
		if d := decide(t, g, tool(PostToolUse)); d.Outcome != Block || !cmp.Equal(d.Messages, []Message{{"user", "c"}}) {
			t.Errorf("%s %v", d.Outcome, d.Messages)
		}
	})
}

func TestAzure47CrashWithFailModeBlockWithholds(t *testing.T) {
	g := newGate(newMemory(), answers{"h": says(failed(NonzeroExit, "exit 1"))}, agent(Hook{Name: "h", Event: PostToolUse, FailMode: FailBlock}))
	if d := decide(t, g, tool(PostToolUse)); d.Outcome != Block || !strings.Contains(d.Reason, "nonzero_exit") || !strings.Contains(d.Reason, "withheld") {
		t.Errorf("%s %q", d.Outcome, d.Reason)
	}
}

func TestAzure48DenyBeatsAskBeatsAllow(t *testing.T) {
	yes, no := says(Verdict{Outcome: Allow}), block("denied")
	ask := says(Verdict{Outcome: Ask, Reason: "asked"})
	for _, c := range []struct {
		a      answers
		want   Outcome
		reason string
	}{
		{answers{"1": yes, "2": ask, "3": no}, Block, "denied"},
		{answers{"1": no, "2": ask, "3": yes}, Block, "denied"},
		{answers{"1": yes, "2": ask, "3": yes}, Ask, "asked"},
		{answers{"1": yes, "2": yes, "3": yes}, Allow, ""},
		{answers{"1": says(Verdict{Outcome: Ask})}, Ask, "A hook asks for a person's approval of this tool call."},
	} {
		g := newGate(newMemory(), c.a, agent(Hook{Name: "1", Event: PreToolUse}, Hook{Name: "2", Event: PreToolUse}, Hook{Name: "3", Event: PreToolUse}))
		if d := decide(t, g, tool(PreToolUse)); d.Outcome != c.want || d.Reason != c.reason || len(d.Messages) != 0 {
			t.Errorf("%s %q %v, want %s %q", d.Outcome, d.Reason, d.Messages, c.want, c.reason)
		}
	}
}

func TestAzure49StartContextOnce(t *testing.T) {
	g := newGate(newMemory(), answers{"h": says(Verdict{Outcome: Block, Reason: "no", AdditionalContext: "house rules"})},
		agent(Hook{Name: "h", Event: Start}))
	ev := Event{Name: Start, Protocol: Native, Agent: "a", Session: "s"}
	d := decide(t, g, ev)
	if d.Outcome != Allow || !d.Hooks[0].Has(WouldBlock) || !cmp.Equal(d.Messages, []Message{{"user", "house rules"}}) {
		t.Errorf("first: %+v", d)
	}
	if d := decide(t, g, ev); len(d.Messages) != 0 || d.AdditionalContext != "" || d.Hooks[0].Injected {
		t.Errorf("second: %+v", d)
	}
}

func TestSubagentStopAsksItsOwnSpec(t *testing.T) {
	m := newMemory()
	sub := &Spec{Kind: AgentSpec, Name: "reviewer", Hooks: defaults([]Hook{{Name: "r", Level: CustomLevel}})}
	g := newGate(m, answers{"r": block("not reviewed"), "h": block("main")}, agent(Hook{Name: "h"}), sub)
	ev := stop("s")
	ev.Name, ev.AgentType, ev.SubAgent = SubagentStop, "reviewer", "sub1"
	if d := decide(t, g, ev); d.Reason != "not reviewed" || d.StopRejectionCount != 1 {
		t.Errorf("%+v", d)
	}
	if d := decide(t, g, stop("s")); d.StopRejectionCount != 1 {
		t.Errorf("main agent's count: %d", d.StopRejectionCount)
	}
	ev.AgentType = "unknown"
	if d := decide(t, g, ev); d.Outcome != Allow || len(d.Hooks) != 0 {
		t.Errorf("no such spec: %+v", d)
	}
	ev.AgentType = ""
	if d := decide(t, g, ev); d.Outcome != Block {
		t.Errorf("a native caller that names no type asks the agent itself: %+v", d)
	}
	ev.Protocol = "claude-code" // fault transcript-12: a host's internal sub-agent
	if d := decide(t, g, ev); d.Outcome != Allow || len(d.Hooks) != 0 {
		t.Errorf("internal sub-agent: %+v", d)
	}
}

// TestSubagentStopAsksTheMainAgentsAttachedHooks: also where the sub-agent has a
// spec and attached hooks of its own, which are about its own work.
func TestSubagentStopAsksTheMainAgentsAttachedHooks(t *testing.T) {
	sub := &Spec{Kind: AgentSpec, Name: "reviewer", Hooks: defaults([]Hook{{Name: "r", Level: CustomLevel}})}
	theirs := attached(ClaudeCode, Hook{Name: "reviewer's", Event: SubagentStop, Matcher: claudeMatcher(t, "")})
	theirs.Name = "reviewer"
	g := newGate(newMemory(), answers{}, agent(Hook{Name: "h"}), sub, theirs,
		attached(ClaudeCode, Hook{Name: "main's", Event: SubagentStop, Matcher: claudeMatcher(t, "")}))
	ev := stop("s")
	ev.Name, ev.AgentType, ev.SubAgent = SubagentStop, "reviewer", "sub1"
	var names []string
	for _, v := range decide(t, g, ev).Hooks {
		names = append(names, v.Name)
	}
	if diff := cmp.Diff([]string{"r", "main's"}, names); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
}

func TestStoreDown(t *testing.T) {
	for _, c := range []struct {
		name    string
		a       answers
		hooks   []Hook
		mode    FailMode
		want    Outcome
		message bool
	}{
		{"block leaves as a block", answers{"h": block("no")}, []Hook{{Name: "h"}}, FailAllow, Block, true},
		{"allow stays an allow", answers{}, []Hook{{Name: "h"}}, FailAllow, Allow, false},
		{"allow becomes a block", answers{}, []Hook{{Name: "h"}}, FailBlock, Block, true},
		{"no hook matched", answers{}, nil, FailBlock, Allow, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMemory()
			m.broken = errBroken
			g := newGate(m, c.a, agent(c.hooks...))
			g.OnGateError = c.mode
			var observed Record
			g.Observe = func(r Record) { observed = r }
			d := decide(t, g, stop("s"))
			if d.Outcome != c.want || !d.Degraded || d.GateError == nil || d.GateError.Code != StoreUnavailable {
				t.Errorf("%+v", d)
			}
			if (len(d.Messages) > 0) != c.message || (d.Reason != "") != c.message {
				t.Errorf("reason %q messages %v", d.Reason, d.Messages)
			}
			if observed.Outcome != d.Outcome {
				t.Errorf("observed %s", observed.Outcome)
			}
		})
	}
}

// Once the caller has gone its hooks are over, but what was decided is kept.
func TestCommitOutlivesTheCaller(t *testing.T) {
	m := newMemory()
	ctx, cancel := context.WithCancel(t.Context())
	g := newGate(m, answers{"h": func(Input) Verdict { cancel(); return Verdict{Outcome: Block, Reason: "r"} }}, agent(Hook{Name: "h"}))
	g.Store = checksContext{m}
	if d, err := g.Decide(ctx, stop("s"), Options{}); err != nil || d.GateError != nil || len(m.records) != 1 {
		t.Errorf("%+v %v, %d records", d, err, len(m.records))
	}
}

type checksContext struct{ *memory }

func (c checksContext) Commit(ctx context.Context, commit Commit) error {
	if err := ctx.Err(); err != nil {
		return errors.New("commit under an ended context")
	}
	return c.memory.Commit(ctx, commit)
}

func TestNoProgressIsNoted(t *testing.T) { // fault loop-03, fault G01
	g := newGate(newMemory(), answers{"h": block("same words")}, agent(Hook{Name: "h"}))
	for i := range 5 {
		if d := decide(t, g, stop("s")); d.Hooks[0].Has(NoProgress) != (i >= 2) {
			t.Errorf("rejection %d: notes %v", i+1, d.Hooks[0].Notes)
		}
	}
	words := ""
	g = newGate(newMemory(), answers{"h": func(Input) Verdict { return Verdict{Outcome: Block, Reason: words} }}, agent(Hook{Name: "h"}))
	for i, said := range []string{"a", "a", "b", "a", "a", "a"} {
		words = said
		if d := decide(t, g, stop("s")); d.Hooks[0].Has(NoProgress) != (i == 5) {
			t.Errorf("rejection %d, %q: notes %v", i+1, said, d.Hooks[0].Notes)
		}
	}
}

func TestLongReasonIsCut(t *testing.T) {
	g := newGate(newMemory(), answers{"h": block(strings.Repeat("é", MaxReasonBytes))}, agent(Hook{Name: "h"}))
	d := decide(t, g, stop("s"))
	if len(d.Reason) > MaxReasonBytes || !d.Hooks[0].Has(ReasonCut) || strings.ContainsRune(d.Reason, '\uFFFD') {
		t.Errorf("%d bytes, notes %v", len(d.Reason), d.Hooks[0].Notes)
	}
}

// A host that joins its answers is judged by the newest (spec/claude-code.md 10).
func TestClaudeCode10JoinedAnswers(t *testing.T) {
	var judged []string
	reject := true
	g := newGate(newMemory(), answers{"h": func(in Input) Verdict {
		var c struct {
			FinalOutput string `json:"final_output"`
		}
		if err := json.Unmarshal(in.Context, &c); err != nil {
			t.Error(err)
		}
		judged = append(judged, c.FinalOutput)
		if reject {
			return Verdict{Outcome: Block, Reason: "again"}
		}
		return Verdict{Outcome: Allow}
	}}, agent(Hook{Name: "h"}))
	ask := func(joined string) {
		ev := stop("s")
		ev.Protocol, ev.AnswersJoined, ev.FinalOutput = "gemini-cli", true, joined
		decide(t, g, ev)
	}
	ask("A1")
	ask("A1\nA2\nsecond line")
	ask("A1\nA2\nsecond line\nA3")
	ask("something else")
	reject = false
	ask("something else\nlast")
	ask("something else\nlast") // a new loop: nothing is taken away
	want := []string{"A1", "A2\nsecond line", "A3", "something else", "last", "something else\nlast"}
	if diff := cmp.Diff(want, judged); diff != "" {
		t.Errorf("judged (-want +got)\n%s", diff)
	}
}

func TestClaudeCode10UnknownAnswerIsNoVerdict(t *testing.T) {
	g := newGate(newMemory(), answers{}, agent(Hook{Name: "h", FailMode: FailBlock}))
	ev := stop("s")
	ev.AnswerUnknown = true
	if d := decide(t, g, ev); d.Outcome != Block || d.Hooks[0].Failure.Code != TranscriptUnreadable {
		t.Errorf("%+v", d)
	}
}

func TestMatcherTriesAliases(t *testing.T) { // DESIGN §7, fault gx-013
	m, err := CompileMatcher("Write|Bash")
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(newMemory(), answers{"h": block("no")}, agent(Hook{Name: "h", Event: PreToolUse, Matcher: m}))
	ev := tool(PreToolUse)
	ev.ToolName = "apply_patch"
	if d := decide(t, g, ev); d.Outcome != Allow {
		t.Errorf("without aliases: %s", d.Outcome)
	}
	ev.ToolAliases = []string{"Write", "Edit"}
	if d := decide(t, g, ev); d.Outcome != Block {
		t.Errorf("with aliases: %s", d.Outcome)
	}
}
