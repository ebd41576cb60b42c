package gate

import (
	"context"
	"testing"
)

// partly is a ledger of which some reads fail while everything else works: a
// read pool that times out, a lock that ends between two statements.
type partly struct {
	*memory
	counts, active error
}

func (p partly) Counts(ctx context.Context, k LedgerKey) (Counts, Erasure, error) {
	if p.counts != nil {
		return Counts{}, NeverErased, p.counts
	}
	return p.memory.Counts(ctx, k)
}

func (p partly) Active(ctx context.Context, session string) (map[string]bool, error) {
	if p.active != nil {
		return nil, p.active
	}
	return p.memory.Active(ctx, session)
}

// DESIGN §5: with a session the caller's stop_rejection_count is never used.
// While the store cannot be read an agent must not talk its judge away by
// claiming that the cap is reached.
func TestClaimedCountsDoNotSkipTheJudgeWhenTheStoreIsDown(t *testing.T) {
	for name, readOnly := range map[string]bool{"whole store": false, "only the read": true} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			asked := false
			g := newGate(m, answers{"judge": func(Input) Verdict { asked = true; return Verdict{Outcome: Block, Reason: "no tests were run"} }},
				agent(Hook{Name: "judge", Type: PromptHook}))
			if readOnly {
				g.Store = partly{memory: m, counts: errBroken}
			} else {
				m.broken = errBroken
			}
			ev := stop("s")
			ev.ClaimedRejections = 99
			if d := decide(t, g, ev); !asked || d.Outcome != Block {
				t.Errorf("asked %v, decision %s forced %v hooks %+v; want the judge asked and its block", asked, d.Outcome, d.Forced, d.Hooks)
			}
		})
	}
}

// A hook that a person switched on in this thread is not "no hook matched"
// because the store could not say so.
func TestActivatedHookIsNotSilentlyInactiveWhenTheStoreIsDown(t *testing.T) {
	for name, readOnly := range map[string]bool{"whole store": false, "only the read": true} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			g := newGate(m, answers{"approval": block("not approved")}, agent(), global(Hook{Name: "approval", Activation: OnDemand}))
			if err := m.SetActive(t.Context(), "s", "approval", true, Actor{}); err != nil {
				t.Fatal(err)
			}
			g.OnGateError = FailBlock
			g.Store = partly{memory: m, active: errBroken}
			if !readOnly {
				m.broken = errBroken
			}
			if d := decide(t, g, stop("s")); d.Outcome != Block {
				t.Errorf("decision %s, gate error %v, hooks %+v; want block: the hook itself, or on_gate_error", d.Outcome, d.GateError, d.Hooks)
			}
		})
	}
}

// on_gate_error: block holds whenever the gate itself failed (the answer
// carries gate_error), not only where the commit was what failed.
func TestOnGateErrorBlocksWhateverPartOfTheStoreFailed(t *testing.T) {
	m := newMemory()
	g := newGate(m, answers{}, agent(Hook{Name: "h"}))
	g.OnGateError = FailBlock
	g.Store = partly{memory: m, counts: errBroken}
	if d := decide(t, g, stop("s")); d.GateError != nil && d.Outcome != Block {
		t.Errorf("decision %s with gate error %v; want block", d.Outcome, d.GateError)
	}
}

// What the gate itself could not store or read of the conversation is not
// "there was none": the judge rules without having seen it, and nothing but a
// note tells.
func TestLostTranscriptIsNotAPlainAllow(t *testing.T) {
	m := newMemory()
	g := newGate(m, answers{}, agent(Hook{Name: "judge", Type: PromptHook, FailMode: FailBlock}))
	g.OnGateError = FailBlock
	g.Transcripts = transcriptsFunc(func(*Event) (Transcript, error) {
		return nil, &Failure{Code: TranscriptUnreadable, Message: "the transcript could not be stored: no space left on device"}
	})
	ev := stop("s")
	ev.InlineTranscript = []byte(`"user: deploy only with tests\nassistant: skipped the tests"`)
	if d := decide(t, g, ev); d.Outcome == Allow && !d.Degraded {
		t.Errorf("decision %s, degraded %v, hooks %+v; want a block by failMode or on_gate_error, or at least degraded", d.Outcome, d.Degraded, d.Hooks)
	}
}

// A host's event that names a conversation which may not be read is judged
// without, whatever the protocol (DESIGN §9); a caller of the API is told.
func TestConversationThatMayNotBeRead(t *testing.T) {
	g := newGate(newMemory(), answers{"h": block("no")}, agent(Hook{Name: "h"}))
	g.Transcripts = transcriptsFunc(func(*Event) (Transcript, error) { return nil, Errorf(CodeValidation, "outside the roots") })
	ev := stop("s")
	ev.TranscriptPath = "/etc/passwd"
	if d, _ := g.DecideForHost(t.Context(), ev, Options{}); d.Outcome != Block || d.Degraded || !d.Hooks[0].Has(TranscriptLost) {
		t.Errorf("for a host: %+v", d)
	}
	if _, err := g.Decide(t.Context(), ev, Options{}); CodeOf(err) != CodeValidation {
		t.Errorf("for a caller of the API: %v", err)
	}
}

// The answer that a host's payload lacks is looked for, and where it is not
// found a Stop has no verdict; a caller of the API says itself what is judged.
func TestAnswerIsLookedForForHosts(t *testing.T) {
	g := newGate(newMemory(), answers{"h": func(in Input) Verdict {
		if in.Event.FinalOutput != "found" {
			return Verdict{Outcome: Block, Reason: "judged " + in.Event.FinalOutput}
		}
		return Verdict{Outcome: Allow}
	}}, agent(Hook{Name: "h", FailMode: FailBlock}))
	g.FindAnswer = func(_ context.Context, ev *Event) { ev.FinalOutput = "found" }
	if d, _ := g.DecideForHost(t.Context(), stop("s"), Options{}); d.Outcome != Allow {
		t.Errorf("for a host: %s %q", d.Outcome, d.Reason)
	}
	if d := decide(t, g, stop("s")); d.Outcome != Block {
		t.Errorf("for a caller of the API: %s %q", d.Outcome, d.Reason)
	}
	g.FindAnswer = func(_ context.Context, ev *Event) { ev.AnswerUnknown = true }
	if d, _ := g.DecideForHost(t.Context(), stop("t"), Options{}); d.Outcome != Block || d.Hooks[0].Outcome != NoVerdict {
		t.Errorf("where there is none: %s, hook %s", d.Outcome, d.Hooks[0].Outcome)
	}
	g.FindAnswer = func(context.Context, *Event) { t.Error("an answer is looked for in an event that no hook is about") }
	if d, _ := g.DecideForHost(t.Context(), Event{}, Options{}); d.Outcome != Allow {
		t.Errorf("an event without a name: %s", d.Outcome)
	}
}

// A refusal of an event that the gate did not take on is no rejection of the
// loop: no hook saw the answer.
func TestFailCountsNothing(t *testing.T) {
	m := newMemory()
	g := newGate(m, answers{"judge": block("no")}, agent(prompt("judge", 3)))
	g.OnGateError = FailBlock
	decide(t, g, stop("s"))
	key := LedgerKey{Agent: "a", Session: "s"}
	before := m.counts[key]
	if d := g.Fail(t.Context(), stop("s"), &Failure{Code: Overloaded, Message: "too much"}); d.Outcome != Block {
		t.Errorf("decision %s", d.Outcome)
	}
	g.OnGateError = FailAllow
	if d := g.Fail(t.Context(), stop("s"), &Failure{Code: Overloaded, Message: "too much"}); d.Outcome != Allow {
		t.Errorf("decision %s", d.Outcome)
	}
	if now := m.counts[key]; now != before || before.StopRejections != 1 {
		t.Errorf("counts went from %+v to %+v", before, now)
	}
	if len(m.records) != 3 {
		t.Errorf("%d records, want all three", len(m.records))
	}
}
