package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/sqlite"
	"stopgate/store/storetest"
)

// gated is a gate on a store, with one prompt hook on Stop that always rejects
// at most limit times.
func gated(t *testing.T, s *sqlite.Store, limit int) *gate.Gate {
	t.Helper()
	policies := &gate.Policies{}
	policies.Put(&gate.Spec{Kind: gate.AgentSpec, Name: "builder", Hooks: []gate.Hook{{Name: "judge", Level: gate.CustomLevel,
		Dialect: gate.Azure, Event: gate.Stop, Type: gate.PromptHook, Timeout: time.Minute, FailMode: gate.FailAllow, MaxRejections: limit}}})
	var mu sync.Mutex
	n := 0
	return &gate.Gate{Policies: policies, Store: s, Transcripts: noTranscripts{}, Parallel: 2, Now: time.Now, OnGateError: gate.FailAllow,
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			n++
			return fmt.Sprintf("%p-%d", policies, n)
		},
		Evaluators: map[gate.HookType]gate.Evaluator{gate.PromptHook: gate.EvaluatorFunc(func(context.Context, gate.Input) gate.Verdict {
			return gate.Verdict{Outcome: gate.Block, Reason: "run the tests"}
		})}}
}

type noTranscripts struct{}

func (noTranscripts) Attach(context.Context, *gate.Event) (gate.Transcript, error) { return nil, nil }

func stop(t *testing.T, g *gate.Gate, r gate.Request) gate.Decision {
	t.Helper()
	d, err := g.Decide(context.Background(), gate.Event{Name: gate.Stop, Protocol: gate.Native, Agent: "builder", Session: "s1"},
		gate.Options{Idempotency: r})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAzure38CountsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	for n := 1; n <= 3; n++ {
		s := open(t, sqlite.Options{Dir: dir, Lock: true})
		d := stop(t, gated(t, s, 25), gate.Request{})
		if d.Outcome != gate.Block || d.StopRejectionCount != n || d.GateError != nil {
			t.Errorf("stop %d: %s with count %d (%v)", n, d.Outcome, d.StopRejectionCount, d.GateError)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, sqlite.Options{Dir: dir, Lock: true})
	want := gate.Counts{StopRejections: 3, PromptRejections: 3, LastReason: gate.MarkHead("run the tests"), SameReason: 3}
	if got, _, err := s.Counts(t.Context(), gate.LedgerKey{Agent: "builder", Session: "s1"}); err != nil || got != want {
		t.Errorf("counts are %+v (%v), want %+v", got, err, want)
	}
}

func TestAzure38SameIdempotencyKeyCountsOnce(t *testing.T) {
	s := open(t, sqlite.Options{Dir: t.TempDir(), Lock: true})
	g := gated(t, s, 25)
	key := gate.Request{Key: gate.IdempotencyKey{Credential: "c", Key: "k"}, Body: [32]byte{1}}
	if held, err := s.Reserve(t.Context(), key, time.Minute); err != nil || held.Evaluation != "" {
		t.Fatalf("reserve: %q, %v", held.Evaluation, err)
	}
	d := stop(t, g, key)
	held, err := s.Reserve(t.Context(), key, time.Minute)
	if err != nil || held.Evaluation != d.EvaluationID {
		t.Errorf("the key answers %q (%v), want %q", held.Evaluation, err, d.EvaluationID)
	}
	// Whoever goes on without the key all the same is not counted.
	ev := gate.Event{Name: gate.Stop, Protocol: gate.Native, Agent: "builder", Session: "s1"}
	if _, err := g.Decide(t.Context(), ev, gate.Options{Idempotency: key}); gate.CodeOf(err) != gate.CodeConflict {
		t.Errorf("a second decision for the key: %v, want a conflict", err)
	}
	other := key
	other.Body[0]++
	if _, err := g.Decide(t.Context(), ev, gate.Options{Idempotency: other}); gate.CodeOf(err) != gate.CodeIdempotencyMismatch {
		t.Errorf("the key with another body: %v, want a mismatch", err)
	}
	if got, _, err := s.Counts(t.Context(), gate.LedgerKey{Agent: "builder", Session: "s1"}); err != nil || got.StopRejections != 1 {
		t.Errorf("counted %d times (%v), want once", got.StopRejections, err)
	}
	r, err := s.Record(t.Context(), held.Evaluation)
	if err != nil || r.StopRejectionCount != 1 || r.Reason != "run the tests" {
		t.Errorf("the stored answer is %+v (%v)", r.Decision, err)
	}
}

// TestAzure38TwoAtOnceCountTwo, and never pass the cap; the decisions that were
// answered are the ones recorded.
func TestAzure38TwoAtOnceCountTwo(t *testing.T) {
	for _, c := range []struct {
		name                   string
		limit, stops, rejected int
	}{
		{"two", 25, 2, 2},
		{"fault loop-04: the cap is exact", 5, 6, 5},
		{"fault gx-018: no more than the cap in a row", 1, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, sqlite.Options{Dir: t.TempDir(), Lock: true})
			g := gated(t, s, c.limit)
			decisions := make([]gate.Decision, c.stops)
			var running sync.WaitGroup
			for i := range decisions {
				running.Go(func() { decisions[i] = stop(t, g, gate.Request{}) })
			}
			running.Wait()
			counted := map[int]bool{}
			rejected := 0
			for _, d := range decisions {
				if d.GateError != nil {
					t.Errorf("gate error: %v", d.GateError)
				}
				if d.Outcome == gate.Block {
					rejected++
					if counted[d.StopRejectionCount] {
						t.Errorf("two rejections have the count %d", d.StopRejectionCount)
					}
					counted[d.StopRejectionCount] = true
				} else if !d.Forced {
					t.Error("an allow at the cap is not forced")
				}
				r, err := s.Record(t.Context(), d.EvaluationID)
				if err != nil || r.Outcome != d.Outcome || r.StopRejectionCount != d.StopRejectionCount || r.Forced != d.Forced {
					t.Errorf("answered %s %d, recorded %s %d (%v)", d.Outcome, d.StopRejectionCount, r.Outcome, r.StopRejectionCount, err)
				}
			}
			if rejected != c.rejected {
				t.Errorf("%d of %d at once were rejected, want %d", rejected, c.stops, c.rejected)
			}
		})
	}
}

// TestAzure38TwoAtOnceAtTheCap: however many Stops come at once, each forced
// allow is followed by as many rejections as the cap says before the next.
func TestAzure38TwoAtOnceAtTheCap(t *testing.T) {
	s := open(t, sqlite.Options{Dir: t.TempDir(), Lock: true})
	g := gated(t, s, 1)
	for round := range 10 {
		var running sync.WaitGroup
		outcomes := make([]gate.Outcome, 4)
		for i := range outcomes {
			running.Go(func() { outcomes[i] = stop(t, g, gate.Request{}).Outcome })
		}
		running.Wait()
		slices.Sort(outcomes)
		if want := []gate.Outcome{gate.Allow, gate.Allow, gate.Block, gate.Block}; !slices.Equal(outcomes, want) {
			t.Fatalf("round %d: %v, want every second one judged", round, outcomes)
		}
	}
}

// TestAzure38FaultGx001 is a host that always says stop_hook_active=false: the
// gate keeps its own count, across restarts too.
func TestAzure38FaultGx001(t *testing.T) {
	dir := t.TempDir()
	for n := range 4 {
		s := open(t, sqlite.Options{Dir: dir, Lock: true})
		d := stop(t, gated(t, s, 3), gate.Request{})
		if want := map[bool]gate.Outcome{true: gate.Block, false: gate.Allow}[n < 3]; d.Outcome != want || d.Forced != (n == 3) {
			t.Errorf("fault gx-001: stop %d is %s, forced %v; want %s", n+1, d.Outcome, d.Forced, want)
		}
		if n == 3 { // fault G06: the forced allow is in the record
			if r, err := s.Record(t.Context(), d.EvaluationID); err != nil || !r.Forced {
				t.Errorf("fault G06: record of the forced allow: %+v, %v", r.Decision, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAzure13OneOfManyWritersWins: of several who read the same version, one
// may write; the others are told.
func TestAzure13OneOfManyWritersWins(t *testing.T) {
	s := open(t, sqlite.Options{Dir: t.TempDir(), Lock: true})
	first, err := s.PutSpec(t.Context(), gate.StoredSpec{Kind: gate.AgentSpec, Name: "a", Document: []byte(`{}`)}, gate.Actor{}, "")
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 8)
	for i := range 8 {
		go func() {
			_, err := s.PutSpec(context.Background(), gate.StoredSpec{Kind: gate.AgentSpec, Name: "a", Document: fmt.Appendf(nil, `{"n":%d}`, i)}, gate.Actor{}, first.ETag)
			results <- err
		}()
	}
	won := 0
	for range 8 {
		if err := <-results; err == nil {
			won++
		} else if gate.CodeOf(err) != gate.CodePreconditionFailed {
			t.Errorf("a writer who lost: %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d writers won, want 1", won)
	}
	if now, err := s.Spec(t.Context(), gate.AgentSpec, "a"); err != nil || now.Version != 2 || now.ETag == first.ETag {
		t.Errorf("the spec is %+v (%v), want version 2 with another ETag", now, err)
	}
}

func TestAzure13ETagsDifferBetweenDirectories(t *testing.T) {
	tag := func(document string) string {
		s := open(t, sqlite.Options{Dir: t.TempDir()})
		spec, err := s.PutSpec(t.Context(), gate.StoredSpec{Kind: gate.HookSpec, Name: "h", Document: []byte(document)}, gate.Actor{}, "")
		if err != nil {
			t.Fatal(err)
		}
		return spec.ETag
	}
	if a, b := tag(`{"n":1}`), tag(`{"n":2}`); a == b {
		t.Errorf("first versions of two documents have the same ETag %s", a)
	}
}

func TestAzure12ActivationsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, sqlite.Options{Dir: dir, Lock: true})
	if err := errors.Join(s.SetActive(t.Context(), "t1", "on", true, gate.Actor{Name: "me"}), s.SetActive(t.Context(), "t1", "off", false, gate.Actor{})); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, sqlite.Options{Dir: dir, Lock: true})
	got, err := s.Active(t.Context(), "t1")
	if err != nil || len(got) != 2 || !got["on"] || got["off"] {
		t.Errorf("active in t1: %v (%v)", got, err)
	}
	if other, err := s.Active(t.Context(), "t2"); err != nil || len(other) != 0 {
		t.Errorf("active in another thread: %v (%v)", other, err)
	}
}

// TestEvaluationIDsAreOrderedByTime: the suite's own ids are what the gate's
// are, so that its laws on order mean what they say.
func TestEvaluationIDsAreOrderedByTime(t *testing.T) {
	for n := range 70000 {
		if storetest.ID(n) >= storetest.ID(n+1) {
			t.Fatalf("id %d is not before the next", n)
		}
	}
}
