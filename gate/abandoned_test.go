package gate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A caller that goes away takes its judges with it. What was never answered
// counts nothing, and the record says so.
func TestCallerThatGoesAway(t *testing.T) {
	waits := func(ctx context.Context, in Input) Verdict {
		select {
		case <-ctx.Done():
			return failed(Timeout, "stopped")
		case <-time.After(10 * time.Second):
			return Verdict{Outcome: Block, Reason: "no"}
		}
	}
	leaves := func(t *testing.T, hooks ...Hook) (*memory, time.Duration, error) {
		m := newMemory()
		g := newGate(m, EvaluatorFunc(waits), agent(hooks...))
		key := LedgerKey{Agent: "a", Session: "s"}
		m.counts[key] = Counts{StopRejections: 1, PromptRejections: 1, LastReason: MarkHead("no"), SameReason: 1}
		caller, leave := context.WithCancel(t.Context())
		defer time.AfterFunc(time.Second, leave).Stop()
		began := time.Now()
		_, err := g.Decide(t.Context(), stop("s"), Options{Caller: caller})
		return m, time.Since(began), err
	}
	key := LedgerKey{Agent: "a", Session: "s"}
	synctest.Test(t, func(t *testing.T) {
		m, took, err := leaves(t, prompt("p", 0), Hook{Name: "p2", Type: PromptHook, FailMode: FailBlock})
		if !errors.Is(err, ErrAbandoned) || took != time.Second {
			t.Errorf("%v after %s", err, took)
		}
		if c := m.counts[key]; c.StopRejections != 1 {
			t.Errorf("counted: %+v", c)
		}
		if len(m.records) != 1 || m.records[0].GateError == nil || m.records[0].GateError.Code != Timeout || !m.records[0].Degraded {
			t.Errorf("records %+v", m.records)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a script's effects stand, so its verdict does
		m, took, err := leaves(t, Hook{Name: "c"})
		if err != nil || took != 10*time.Second || m.counts[key].StopRejections != 2 {
			t.Errorf("%v after %s, counts %+v", err, took, m.counts[key])
		}
	})
	synctest.Test(t, func(t *testing.T) { // nothing is given up for a shadow's sake
		m, _, err := leaves(t, Hook{Name: "c"}, Hook{Name: "p", Type: PromptHook, Shadow: true})
		if err != nil || m.counts[key].StopRejections != 2 || m.records[0].Hooks[1].Outcome != NoVerdict {
			t.Errorf("%v, counts %+v", err, m.counts[key])
		}
	})
}
