package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// condition is a [Condition] as a test wants it.
type condition func(Input) (bool, *Failure)

func (c condition) Holds(_ context.Context, in Input) (bool, *Failure) { return c(in) }
func (c condition) String() string                                     { return "a condition" }

func is(holds bool) condition { return func(Input) (bool, *Failure) { return holds, nil } }

func unanswered(Input) (bool, *Failure) {
	return false, &Failure{Code: BadExpression, Message: "no such key"}
}

func TestWhen(t *testing.T) {
	for _, tt := range []struct {
		name     string
		when     Condition
		failMode FailMode
		shadow   bool
		asked    bool
		decision Outcome
		outcome  Outcome
		notes    []Note
	}{
		{"none", nil, FailAllow, false, true, Block, Block, []Note{}},
		{"true", is(true), FailAllow, false, true, Block, Block, []Note{}},
		{"false", is(false), FailBlock, false, false, Allow, Skipped, []Note{WhenFalse}},
		{"unanswered, fails open", condition(unanswered), FailAllow, false, false, Allow, NoVerdict, []Note{FailedOpen}},
		{"unanswered, fails closed", condition(unanswered), FailBlock, false, false, Block, NoVerdict, []Note{FailedClosed}},
		{"a shadow, true", is(true), FailAllow, true, true, Allow, Block, []Note{WouldBlock}},
		{"a shadow, false", is(false), FailBlock, true, false, Allow, Skipped, []Note{WhenFalse}},
		{"one that panics", condition(func(Input) (bool, *Failure) { panic("x") }), FailBlock, false, false, Block, NoVerdict, []Note{FailedClosed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := prompt("judge", 0)
			h.When, h.FailMode, h.Shadow = tt.when, tt.failMode, tt.shadow
			asked := false
			g := newGate(newMemory(), answers{"judge": func(Input) Verdict { asked = true; return Verdict{Outcome: Block, Reason: "no"} }}, agent(h))
			d := decide(t, g, stop("s"))
			if asked != tt.asked || d.Outcome != tt.decision || d.Hooks[0].Outcome != tt.outcome {
				t.Errorf("asked %v, %s, %s", asked, d.Outcome, d.Hooks[0].Outcome)
			}
			if diff := cmp.Diff(tt.notes, d.Hooks[0].Notes); diff != "" {
				t.Error(diff)
			}
			if f := d.Hooks[0].Failure; tt.outcome == NoVerdict && !strings.HasPrefix(tt.name, "one") && (f.Code != BadExpression || f.Message != "when: no such key") {
				t.Errorf("%+v", f)
			}
			if d.Forced {
				t.Error("it is forced")
			}
		})
	}
}

// A hook that is not about an event does not make it the loop's forced end, and
// one that cannot tell is let go at the cap like any other.
func TestWhenAtTheCap(t *testing.T) {
	for _, tt := range []struct {
		name   string
		last   Condition
		note   Note
		forced bool
	}{
		{"true", is(true), Capped, true}, {"false", is(false), WhenFalse, false}, {"unanswered", condition(unanswered), Capped, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := prompt("judge", 1)
			h.FailMode = FailBlock
			first := true
			h.When = condition(func(in Input) (bool, *Failure) {
				if first {
					first = false
					return true, nil
				}
				return tt.last.Holds(t.Context(), in)
			})
			g := newGate(newMemory(), answers{"judge": block("no")}, agent(h))
			if d := decide(t, g, stop("s")); d.Outcome != Block {
				t.Fatalf("%+v", d)
			}
			if d := decide(t, g, stop("s")); d.Outcome != Allow || d.Forced != tt.forced || !d.Hooks[0].Has(tt.note) {
				t.Errorf("%s, forced %v, %v", d.Outcome, d.Forced, d.Hooks[0].Notes)
			}
		})
	}
}

// A condition is asked about the answer that the hook is told.
func TestWhenSeesTheNewestAnswer(t *testing.T) {
	h := prompt("judge", 0)
	var seen []string
	h.When = condition(func(in Input) (bool, *Failure) { seen = append(seen, in.Event.FinalOutput); return true, nil })
	g := newGate(newMemory(), answers{"judge": block("no")}, agent(h))
	for _, answer := range []string{"First.", "First.\nSecond."} {
		ev := stop("s")
		ev.Protocol, ev.FinalOutput, ev.AnswersJoined = "gemini-cli", answer, true
		decide(t, g, ev)
	}
	if diff := cmp.Diff([]string{"First.", "Second."}, seen); diff != "" {
		t.Error(diff)
	}
}
