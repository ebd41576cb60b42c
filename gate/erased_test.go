package gate

import "testing"

// TestErasedWhileJudged: the erasure wins, and the answer leaves as after a commit
// that failed (DESIGN §2).
func TestErasedWhileJudged(t *testing.T) {
	for _, c := range []struct {
		name  string
		says  Verdict
		mode  FailMode
		want  Outcome
		hooks []Hook
	}{
		{"a block stays one", Verdict{Outcome: Block, Reason: "r"}, FailAllow, Block, []Hook{{Name: "h"}}},
		{"an allow is one by on_gate_error", Verdict{Outcome: Allow}, FailAllow, Allow, []Hook{{Name: "h"}}},
		{"or a block", Verdict{Outcome: Allow}, FailBlock, Block, []Hook{{Name: "h"}}},
		{"of shadows alone an allow", Verdict{Outcome: Allow}, FailBlock, Allow, []Hook{{Name: "h", Shadow: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMemory()
			var observed Record
			g := newGate(m, answers{"h": func(Input) Verdict {
				m.erased["s"]++
				return c.says
			}}, agent(c.hooks...))
			g.OnGateError, g.Observe = c.mode, func(r Record) { observed = r }
			d := decide(t, g, stop("s"))
			if d.Outcome != c.want || !d.Degraded || d.GateError == nil || d.GateError.Code != SessionErased {
				t.Errorf("%s, degraded %v, %v", d.Outcome, d.Degraded, d.GateError)
			}
			if len(m.records) > 0 || len(m.counts) > 0 {
				t.Errorf("the store has %d records and the counts %v", len(m.records), m.counts)
			}
			if observed.EvaluationID != d.EvaluationID {
				t.Error("it was not observed")
			}
		})
	}
	t.Run("with a key it is answered, too, and the key is free", func(t *testing.T) {
		m := newMemory()
		g := newGate(m, answers{"h": func(Input) Verdict {
			m.erased["s"]++
			return Verdict{Outcome: Block, Reason: "r"}
		}}, agent(Hook{Name: "h"}))
		d, err := g.Decide(t.Context(), stop("s"), Options{Idempotency: Request{Key: IdempotencyKey{"c", "k"}}})
		if err != nil || d.Outcome != Block || d.GateError == nil || d.GateError.Code != SessionErased {
			t.Errorf("%s, %v, %v", d.Outcome, d.GateError, err)
		}
	})
	t.Run("as its caller looked it up", func(t *testing.T) {
		m := newMemory()
		m.erased["s"] = 1
		g := newGate(m, answers{"h": block("r")}, agent(Hook{Name: "h"}))
		ev := stop("s")
		ev.Erasure = NeverErased
		if d := decide(t, g, ev); d.GateError == nil || d.GateError.Code != SessionErased || len(m.records) > 0 {
			t.Errorf("%v, %d records", d.GateError, len(m.records))
		}
	})
	t.Run("one that was erased before is a new one", func(t *testing.T) {
		m := newMemory()
		m.erased["s"] = 3
		g := newGate(m, answers{"h": block("r")}, agent(Hook{Name: "h"}))
		if d := decide(t, g, stop("s")); d.GateError != nil || len(m.records) != 1 {
			t.Errorf("%v, %d records", d.GateError, len(m.records))
		}
	})
}
