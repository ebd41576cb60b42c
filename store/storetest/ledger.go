package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// counts holds the ledger's compare-and-set (spec/azure.md 38).
func counts(t *testing.T, s gate.Store) {
	key := gate.LedgerKey{Agent: "builder", Session: "s1"}
	t.Run("nothing yet is zero", func(t *testing.T) { wantCounts(t, s, key, gate.Counts{}) })

	t.Run("every field is kept", func(t *testing.T) {
		full := gate.Counts{StopRejections: 3, PromptRejections: 2, Started: true, LastPromptID: "p\x001", LastReason: "nein, \xff\"'", LastContext: "ab", LastAnswer: "5:ab", SameReason: 4}
		wantNoError(t, s.Commit(t.Context(), gate.Commit{Key: key, Settle: func(gate.Counts) (gate.Counts, gate.Record) { return full, Record(1) }}))
		wantCounts(t, s, key, full)
		for _, other := range []gate.LedgerKey{{Agent: "other", Session: "s1"}, {Agent: "builder", Session: "s2"},
			{Agent: "builder", Session: "s1", SubAgent: "x"}, {Agent: "builder"}} {
			wantCounts(t, s, other, gate.Counts{})
		}
	})

	t.Run("stale counts are settled again", func(t *testing.T) {
		key := gate.LedgerKey{Agent: "builder", Session: "stale"}
		wantNoError(t, s.Commit(t.Context(), rejection(key, gate.Counts{}, 10)))
		var asked []int
		c := rejection(key, gate.Counts{}, 11) // somebody else counted meanwhile
		settle := c.Settle
		c.Settle = func(now gate.Counts) (gate.Counts, gate.Record) {
			asked = append(asked, now.StopRejections)
			return settle(now)
		}
		wantNoError(t, s.Commit(t.Context(), c))
		if diff := cmp.Diff([]int{0, 1}, asked); diff != "" {
			t.Errorf("Settle was asked with (-want +got):\n%s", diff)
		}
		wantCounts(t, s, key, gate.Counts{StopRejections: 2})
		r, err := s.Record(t.Context(), ID(11))
		wantNoError(t, err)
		if r.StopRejectionCount != 2 {
			t.Errorf("record has the count %d of the first settlement, want 2", r.StopRejectionCount)
		}
	})

	t.Run("a stale evaluation is not stored", func(t *testing.T) {
		key := gate.LedgerKey{Agent: "builder", Session: "refused"}
		wantNoError(t, s.Commit(t.Context(), rejection(key, gate.Counts{}, 12)))
		c := rejection(key, gate.Counts{}, 13)
		c.Idempotency = gate.Request{Key: gate.IdempotencyKey{Credential: "c", Key: "stale"}}
		var asked []gate.Counts
		stale := true
		c.Stale = func(now gate.Counts) bool { asked = append(asked, now); return stale }
		if err := s.Commit(t.Context(), c); !errors.Is(err, gate.ErrStale) {
			t.Errorf("commit: %v, want ErrStale", err)
		}
		wantCounts(t, s, key, gate.Counts{StopRejections: 1})
		_, err := s.Record(t.Context(), ID(13))
		wantCode(t, err, gate.CodeNotFound)
		stale = false
		wantNoError(t, s.Commit(t.Context(), c)) // the key was not used up
		if diff := cmp.Diff([]gate.Counts{{StopRejections: 1}, {StopRejections: 1}}, asked); diff != "" {
			t.Errorf("Stale was asked with (-want +got):\n%s", diff)
		}
		c = rejection(key, gate.Counts{StopRejections: 2}, 14) // nothing has changed
		c.Stale = func(gate.Counts) bool { t.Error("Stale was asked of the counts that were seen"); return true }
		wantNoError(t, s.Commit(t.Context(), c))
		c = rejection(gate.LedgerKey{Agent: "builder"}, gate.Counts{StopRejections: 2}, 15) // no ledger
		c.Stale = func(gate.Counts) bool { t.Error("Stale was asked without a session"); return true }
		wantNoError(t, s.Commit(t.Context(), c))
	})

	t.Run("any changed field is a change", func(t *testing.T) {
		for i, n := range []gate.Counts{{StopRejections: 1}, {PromptRejections: 1}, {Started: true}, {LastPromptID: "p"}, {LastReason: "r"}, {LastContext: "c"}, {LastAnswer: "1:a"}, {SameReason: 1}} {
			key := gate.LedgerKey{Agent: "builder", Session: fmt.Sprintf("field-%d", i)}
			wantNoError(t, s.Commit(t.Context(), gate.Commit{Key: key, Settle: func(gate.Counts) (gate.Counts, gate.Record) { return n, Record(20 + i) }}))
			var last gate.Counts
			wantNoError(t, s.Commit(t.Context(), gate.Commit{Key: key, Settle: func(now gate.Counts) (gate.Counts, gate.Record) {
				last = now
				return now, Record(30 + i)
			}}))
			if last != n {
				t.Errorf("Settle was last asked with %+v, want %+v", last, n)
			}
		}
	})

	t.Run("zero again", func(t *testing.T) {
		key := gate.LedgerKey{Agent: "builder", Session: "zero"}
		wantNoError(t, s.Commit(t.Context(), rejection(key, gate.Counts{}, 40)))
		wantNoError(t, s.Commit(t.Context(), gate.Commit{Key: key, Seen: gate.Counts{StopRejections: 1},
			Settle: func(gate.Counts) (gate.Counts, gate.Record) { return gate.Counts{}, Record(41) }}))
		wantCounts(t, s, key, gate.Counts{})
	})

	t.Run("without a session Settle gets Seen", func(t *testing.T) {
		seen := gate.Counts{StopRejections: 5}
		var asked []gate.Counts
		wantNoError(t, s.Commit(t.Context(), gate.Commit{Key: gate.LedgerKey{Agent: "builder"}, Seen: seen,
			Settle: func(now gate.Counts) (gate.Counts, gate.Record) {
				asked = append(asked, now)
				return gate.Counts{StopRejections: 6}, Record(50)
			}}))
		if diff := cmp.Diff([]gate.Counts{seen}, asked); diff != "" {
			t.Errorf("Settle was asked with (-want +got):\n%s", diff)
		}
		wantCounts(t, s, gate.LedgerKey{Agent: "builder"}, gate.Counts{})
	})
}

// concurrency: many at once, none lost, none counted twice.
func concurrency(t *testing.T, s gate.Store) {
	const workers, each = 8, 25
	shared := gate.LedgerKey{Agent: "builder", Session: "shared"}
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for i := range each {
				seen, _, err := s.Counts(t.Context(), shared)
				if err == nil {
					err = s.Commit(t.Context(), rejection(shared, seen, 1+w*each+i))
				}
				if err != nil {
					t.Errorf("commit: %v", err)
				}
			}
		})
	}
	running.Wait()
	wantCounts(t, s, shared, gate.Counts{StopRejections: workers * each})
	seen := map[int]bool{}
	items, _, err := s.Records(t.Context(), gate.RecordFilter{Session: "shared", Limit: 1000})
	wantNoError(t, err)
	for _, i := range items {
		r, err := s.Record(t.Context(), i.EvaluationID)
		wantNoError(t, err)
		if seen[r.StopRejectionCount] {
			t.Errorf("two records have the count %d", r.StopRejectionCount)
		}
		seen[r.StopRejectionCount] = true
	}
	if len(items) != workers*each {
		t.Errorf("%d records, want %d", len(items), workers*each)
	}
}

// failures: one commit that goes wrong does not touch the others.
func failures(t *testing.T, s gate.Store) {
	commit(t, s, Record(1))
	t.Run("an id twice", func(t *testing.T) {
		again := Record(1)
		again.Time, again.Reason = again.Time.Add(time.Second), "again"
		if err := s.Commit(t.Context(), plain(again)); err == nil {
			t.Error("a second record with the same id was stored")
		}
		wantRecord(t, s, Record(1))
	})
	t.Run("beside others", func(t *testing.T) {
		var running sync.WaitGroup
		for i := range 20 {
			running.Go(func() {
				switch i % 4 {
				case 0:
					if err := s.Commit(t.Context(), plain(Record(1))); err == nil {
						t.Error("an id was stored twice")
					}
				case 1:
					c := rejection(gate.LedgerKey{Agent: "builder", Session: "panics"}, gate.Counts{StopRejections: 99}, 100+i)
					c.Settle = func(now gate.Counts) (gate.Counts, gate.Record) {
						if now.StopRejections != 99 {
							panic("no")
						}
						return now, Record(100 + i)
					}
					if err := s.Commit(t.Context(), c); err == nil {
						t.Error("a Settle that panicked was committed")
					}
				default:
					if err := s.Commit(t.Context(), plain(Record(200+i))); err != nil {
						t.Errorf("commit beside one that fails: %v", err)
					}
				}
			})
		}
		running.Wait()
		if got := len(list(t, s, gate.RecordFilter{})); got != 11 {
			t.Errorf("%d records, want 11", got)
		}
	})
	t.Run("ping", func(t *testing.T) { wantNoError(t, s.Ping(t.Context())) })
}

// cancelled: whoever leaves is told the truth, as is who asks later: an error
// means that nothing was stored.
func cancelled(t *testing.T, s gate.Store) {
	key := gate.LedgerKey{Agent: "builder", Session: "s1"}
	counted := 0
	for n := range 60 {
		ctx, cancel := context.WithCancel(t.Context())
		if n == 0 {
			cancel()
		} else { // somewhere in the middle
			time.AfterFunc(time.Duration(n)*20*time.Microsecond, cancel)
		}
		seen, _, err := s.Counts(t.Context(), key)
		wantNoError(t, err)
		err = s.Commit(ctx, rejection(key, seen, 1+n))
		cancel()
		_, missing := s.Record(t.Context(), ID(1+n))
		if (err == nil) != (missing == nil) {
			t.Fatalf("commit said %v, the record's look-up %v", err, missing)
		}
		if err == nil {
			counted++
		}
		wantCounts(t, s, key, gate.Counts{StopRejections: counted})
	}
}

// closing: what was acknowledged is in, what comes after fails.
func closing(t *testing.T, s gate.Store) {
	wantNoError(t, s.Commit(t.Context(), plain(Record(1))))
	wantNoError(t, s.Close())
	if err := s.Commit(t.Context(), plain(Record(2))); err == nil {
		t.Error("a closed store took a commit")
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("a closed store answered a ping")
	}
	if _, _, err := s.Counts(t.Context(), gate.LedgerKey{Session: "s1"}); err == nil {
		t.Error("a closed store read counts")
	}
}
