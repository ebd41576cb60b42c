package gate

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestProbeAsksNobodyAndBlocks(t *testing.T) {
	asked := 0
	count := func(Input) Verdict { asked++; return Verdict{Outcome: Allow} }
	m := newMemory()
	g := newGate(m, answers{"tests": count, "audit": count}, agent(Hook{Name: "tests"}, Hook{Name: "audit", Event: PostToolUse}))
	ev := stop("s")
	ev.Probe = "mark-1"
	d := decide(t, g, ev)
	if d.Outcome != Block || !strings.Contains(d.Reason, "mark-1") || !strings.Contains(d.Reason, "tests") {
		t.Errorf("%s %q", d.Outcome, d.Reason)
	}
	if asked != 0 || len(m.counts) != 0 || d.StopRejectionCount != 0 {
		t.Errorf("%d hooks were asked, counts are %v", asked, m.counts)
	}
	if rec := m.records[len(m.records)-1]; !rec.DryRun || rec.Hooks[0].Outcome != Skipped {
		t.Errorf("recorded as %+v", rec)
	}

	after := tool(PostToolUse)
	after.Probe = "mark-2"
	if d := decide(t, g, after); d.Outcome != Block || !strings.Contains(d.Reason, "mark-2") {
		t.Errorf("after a tool: %s %q", d.Outcome, d.Reason)
	}
}

func TestProbeWithoutHooksIsNoBlock(t *testing.T) {
	g := newGate(newMemory(), answers{}, agent(Hook{Name: "audit", Event: PostToolUse}), global(Hook{Name: "off", Activation: OnDemand}))
	ev := stop("s")
	ev.Probe = "mark"
	if d := decide(t, g, ev); d.Outcome != Allow || strings.Contains(d.Reason, "mark") {
		t.Errorf("%s %q", d.Outcome, d.Reason)
	}
	ev.Agent = "nobody"
	if _, err := g.Decide(t.Context(), ev, Options{}); CodeOf(err) != CodeNotFound {
		t.Errorf("an unknown agent: %v", err)
	}
}

// A Stop while the agent's own tasks run is judged, unless its spec says to
// put it off (fault loop-05).
func TestClaudeCode11StopsAreDeferred(t *testing.T) {
	m := newMemory()
	var seen map[string]any
	a := answers{"tests": func(in Input) Verdict {
		_ = json.Unmarshal(in.Context, &seen)
		return Verdict{Outcome: Block, Reason: "no"}
	}}
	spec := agent(Hook{Name: "tests", Type: PromptHook})
	g := newGate(m, a, spec)
	ev := stop("s")
	ev.Background = []json.RawMessage{json.RawMessage(`{"id":"b1","status":"running"}`)}

	if d := decide(t, g, ev); d.Outcome != Block || d.StopRejectionCount != 1 {
		t.Fatalf("judged by default: %s, count %d", d.Outcome, d.StopRejectionCount)
	}
	if tasks, _ := seen["background_tasks"].([]any); len(tasks) != 1 {
		t.Errorf("the hook was told %v", seen)
	}

	spec.DeferForBackground = true
	before := m.counts[ev.ledgerKey()]
	for range 5 {
		if d := decide(t, g, ev); d.Outcome != Allow || d.Forced || !d.Hooks[0].Has(Deferred) || d.StopRejectionCount != 1 || !d.StopHookActive {
			t.Fatalf("deferred: %+v", d)
		}
	}
	if m.counts[ev.ledgerKey()] != before {
		t.Errorf("counts went from %+v to %+v", before, m.counts[ev.ledgerKey()])
	}
	ev.Background = nil
	if d := decide(t, g, ev); d.Outcome != Block || d.StopRejectionCount != 2 {
		t.Errorf("when they have ended: %s, count %d", d.Outcome, d.StopRejectionCount)
	}
}
