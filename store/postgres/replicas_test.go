package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/postgres/postgrestest"
	"stopgate/store/storetest"
)

// replicas are stores on one database, opened at once, as a rollout does.
func replicas(t *testing.T, n int) []*Store {
	t.Helper()
	url := postgrestest.Database(t)
	all := make([]*Store, n)
	var opening sync.WaitGroup
	for i := range all {
		opening.Go(func() {
			s, err := Open(context.Background(), Options{URL: url})
			if err != nil {
				t.Errorf("replica %d: %v", i, err)
				return
			}
			all[i] = s
			t.Cleanup(func() { s.Close() })
		})
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

type noTranscripts struct{}

func (noTranscripts) Attach(context.Context, *gate.Event) (gate.Transcript, error) { return nil, nil }

// gated is a gate on a store, with one prompt hook on Stop that always rejects
// at most limit times.
func gated(s *Store, replica string, limit int) *gate.Gate {
	policies := &gate.Policies{}
	policies.Put(&gate.Spec{Kind: gate.AgentSpec, Name: "builder", Hooks: []gate.Hook{{Name: "judge", Level: gate.CustomLevel,
		Dialect: gate.Azure, Event: gate.Stop, Type: gate.PromptHook, Timeout: time.Minute, FailMode: gate.FailAllow, MaxRejections: limit}}})
	var n atomic.Int64
	return &gate.Gate{Policies: policies, Store: s, Transcripts: noTranscripts{}, Parallel: 2, Now: time.Now, OnGateError: gate.FailAllow,
		NewID: func() string { return fmt.Sprintf("%s-%d", replica, n.Add(1)) },
		Evaluators: map[gate.HookType]gate.Evaluator{gate.PromptHook: gate.EvaluatorFunc(func(context.Context, gate.Input) gate.Verdict {
			return gate.Verdict{Outcome: gate.Block, Reason: "run the tests"}
		})}}
}

func stop(t *testing.T, g *gate.Gate) gate.Decision {
	t.Helper()
	d, err := g.Decide(context.Background(), gate.Event{Name: gate.Stop, Protocol: gate.Native, Agent: "builder", Session: "s1"}, gate.Options{})
	if err != nil || d.GateError != nil {
		t.Errorf("stop: %v, %v", err, d.GateError)
	}
	return d
}

// TestAzure38ReplicasNeverPassTheCap: however many Stops of one session come at
// once, on whatever replica, each count is given once, the cap is exact, and what
// was answered is what is recorded.
func TestAzure38ReplicasNeverPassTheCap(t *testing.T) {
	const limit, stops = 5, 6
	all := replicas(t, 3)
	var gates []*gate.Gate
	for i, s := range all {
		gates = append(gates, gated(s, fmt.Sprint(i), limit))
	}
	decisions := make([]gate.Decision, stops)
	var running sync.WaitGroup
	for i := range decisions {
		running.Go(func() { decisions[i] = stop(t, gates[i%len(gates)]) })
	}
	running.Wait()
	var counted []int
	for _, d := range decisions {
		if d.Outcome == gate.Block {
			counted = append(counted, d.StopRejectionCount)
		} else if !d.Forced {
			t.Error("an allow at the cap is not forced")
		}
		r, err := all[0].Record(t.Context(), d.EvaluationID)
		if err != nil || r.Outcome != d.Outcome || r.StopRejectionCount != d.StopRejectionCount || r.Forced != d.Forced {
			t.Errorf("answered %s %d, recorded %s %d (%v)", d.Outcome, d.StopRejectionCount, r.Outcome, r.StopRejectionCount, err)
		}
	}
	if slices.Sort(counted); !slices.Equal(counted, []int{1, 2, 3, 4, 5}) {
		t.Errorf("the rejections' counts are %v, want 1 to %d", counted, limit)
	}
}

// TestReplicasCount: none lost, none doubled, also where there was no row yet and
// where it goes away.
func TestReplicasCount(t *testing.T) {
	const each = 20
	all := replicas(t, 3)
	key := gate.LedgerKey{Agent: "builder", Session: "shared"}
	var running sync.WaitGroup
	for i, s := range all {
		running.Go(func() {
			for n := range each {
				w := rejecting(key, gate.Counts{}, 1+i*each+n)
				settle := w.Settle
				w.Settle = func(now gate.Counts) (gate.Counts, gate.Record) {
					next, r := settle(now)
					if next.StopRejections == 7 { // an allow
						next = gate.Counts{}
					}
					return next, r
				}
				if err := s.Commit(t.Context(), w); err != nil {
					t.Errorf("commit: %v", err)
				}
			}
		})
	}
	running.Wait()
	counts, _, err := all[0].Counts(t.Context(), key)
	if want := len(all) * each % 7; err != nil || counts.StopRejections != want {
		t.Errorf("%d are counted (%v), want %d", counts.StopRejections, err, want)
	}
	seen := map[int]int{}
	items, _, err := all[1].Records(t.Context(), gate.RecordFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range items {
		r, err := all[2].Record(t.Context(), i.EvaluationID)
		if err != nil {
			t.Fatal(err)
		}
		seen[r.StopRejectionCount]++
	}
	for n := 1; n <= 7; n++ {
		want := len(all) * each / 7
		if n <= len(all)*each%7 {
			want++
		}
		if seen[n] != want {
			t.Errorf("%d records have the count %d, want %d", seen[n], n, want)
		}
	}
}

// TestReplicasOneMoment: records of one nanosecond from several replicas all get
// a place, and keep their time.
func TestReplicasOneMoment(t *testing.T) {
	const each = 15
	all := replicas(t, 3)
	var running sync.WaitGroup
	for i, s := range all {
		running.Go(func() {
			for n := range each {
				r := storetest.Full(1 + i*each + n)
				r.Time = storetest.Record(0).Time
				if err := s.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}); err != nil {
					t.Errorf("commit: %v", err)
				}
			}
		})
	}
	running.Wait()
	items, _, err := all[0].Records(t.Context(), gate.RecordFilter{Hook: "judge", Limit: 1000})
	if err != nil || len(items) != len(all)*each {
		t.Fatalf("%d records (%v), want %d", len(items), err, len(all)*each)
	}
	for _, i := range items {
		if !i.Time.Equal(storetest.Record(0).Time) {
			t.Errorf("a record's time is %v", i.Time)
		}
	}
}

// TestReplicasReserve: a key that one replica holds is held everywhere, and
// whoever answers it answers it for all.
func TestReplicasReserve(t *testing.T) {
	all := replicas(t, 2)
	r := gate.Request{Key: gate.IdempotencyKey{Credential: "c", Key: "k"}}
	held, err := all[0].Reserve(t.Context(), r, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all[1].Reserve(t.Context(), r, time.Minute); gate.CodeOf(err) != gate.CodeConflict {
		t.Errorf("the other replica's reservation: %v, want a conflict", err)
	}
	if err := all[1].Release(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if _, err := all[1].Reserve(t.Context(), r, time.Minute); err != nil {
		t.Errorf("after the release: %v", err)
	}
	w := rejecting(gate.LedgerKey{}, gate.Counts{}, 1)
	w.Idempotency = r
	if err := all[0].Commit(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if held, err := all[1].Reserve(t.Context(), r, time.Minute); err != nil || held.Evaluation != storetest.ID(1) {
		t.Errorf("the key answers %q (%v)", held.Evaluation, err)
	}
}

// TestCloseLeavesOthersReservations: what runs elsewhere goes on when a replica
// starts or ends.
func TestCloseLeavesOthersReservations(t *testing.T) {
	url := postgrestest.Database(t)
	s := openForTest(t, url)
	r := gate.Request{Key: gate.IdempotencyKey{Key: "k"}}
	if _, err := s.Reserve(t.Context(), r, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := openForTest(t, url).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reserve(t.Context(), r, time.Minute); gate.CodeOf(err) != gate.CodeConflict {
		t.Errorf("the reservation is gone: %v", err)
	}
}
