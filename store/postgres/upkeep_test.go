package postgres

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/postgres/postgrestest"
	"stopgate/store/record"
	"stopgate/store/storetest"
)

// TestRetention: what is older goes, hooks included, though two replicas sweep at
// once; what is younger stays. Ages are by the database's clock.
func TestRetention(t *testing.T) {
	const stored, records = 20, 1100 // which is more than two drops
	for _, c := range []struct {
		name      string
		retention time.Duration
		youngest  time.Duration // age of the youngest; each is a minute older than the next
		kept      int
	}{
		{"for ever", 0, 10000 * time.Hour, records},
		{"young", 72 * time.Hour, time.Hour, records},
		{"some", 72 * time.Hour, 72*time.Hour - 250*time.Minute - 30*time.Second, 251},
		{"old", 72 * time.Hour, 73 * time.Hour, 0},
		{"less than a day is a day", time.Hour, 24*time.Hour - 10*time.Minute - 30*time.Second, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := postgrestest.Database(t)
			s := openForTest(t, url)
			now := time.Now()
			for n := range stored {
				r := storetest.Full(n)
				r.Time = now.Add(-c.youngest - time.Duration(n)*time.Minute)
				if err := s.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}); err != nil {
					t.Fatal(err)
				}
			}
			postgrestest.Exec(t, url, fmt.Sprintf(`WITH more AS (
					INSERT INTO stopgate.evaluations (seq, id, agent, session, event, decision, dry_run, head)
					SELECT seq - n * 60000000000, id || n::text::bytea, agent, session, event, decision, dry_run, head
					FROM (SELECT * FROM stopgate.evaluations ORDER BY seq LIMIT 1) AS oldest, generate_series(1, %d) AS n RETURNING seq)
				INSERT INTO stopgate.evaluation_hooks SELECT seq, hook FROM more, (SELECT DISTINCT hook FROM stopgate.evaluation_hooks) AS hooks`, records-stored))
			both := []*Store{s, openForTest(t, url)}
			var sweeping sync.WaitGroup
			for _, s := range both {
				s.retention = c.retention
				sweeping.Go(func() {
					if err := s.sweep(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			sweeping.Wait()
			if err := s.sweep(t.Context()); err != nil { // what one left to the other
				t.Fatal(err)
			}
			for _, f := range []gate.RecordFilter{{}, {Hook: "judge"}} {
				found := 0
				f.Limit = 1000
				for {
					items, next, err := s.Records(t.Context(), f)
					if err != nil {
						t.Fatal(err)
					}
					found += len(items)
					if f.Cursor = next; next == "" {
						break
					}
				}
				if found != c.kept {
					t.Errorf("%d records by hook %q, want %d", found, f.Hook, c.kept)
				}
			}
		})
	}
}

// TestKeysLast24Hours: an answered key is kept for its day and then forgotten;
// one that is still running is not.
func TestKeysLast24Hours(t *testing.T) {
	url := postgrestest.Database(t)
	s := openForTest(t, url)
	reserve := func(key string, body byte) (gate.Reservation, error) {
		return s.Reserve(t.Context(), gate.Request{Key: gate.IdempotencyKey{Key: key}, Body: [32]byte{body}}, time.Minute)
	}
	for _, key := range []string{"running", "abandoned"} {
		if _, err := reserve(key, 1); err != nil {
			t.Fatal(err)
		}
	}
	w := rejecting(gate.LedgerKey{}, gate.Counts{}, 1)
	w.Idempotency = gate.Request{Key: gate.IdempotencyKey{Key: "answered"}, Body: [32]byte{1}}
	if err := s.Commit(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	age := func(by string) {
		postgrestest.Exec(t, url, `UPDATE stopgate.idempotency SET reserved = reserved - `+by)
		postgrestest.Exec(t, url, fmt.Sprintf(`UPDATE stopgate.idempotency SET lease = 0 WHERE id = '\x%x'`, record.KeyID(gate.IdempotencyKey{Key: "abandoned"})))
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	age(`(23 * 3600 * 1000)`)
	if held, err := reserve("answered", 1); err != nil || held.Evaluation != storetest.ID(1) {
		t.Errorf("after 23 hours the key answers %q (%v)", held.Evaluation, err)
	}
	age(`(3600 * 1000)`)
	if _, err := reserve("running", 1); gate.CodeOf(err) != gate.CodeConflict {
		t.Errorf("a key that is still running: %v, want a conflict", err)
	}
	for _, key := range []string{"answered", "abandoned"} {
		if held, err := reserve(key, 2); err != nil || held.Evaluation != "" {
			t.Errorf("after a day the key %q is not free: %q, %v", key, held.Evaluation, err)
		}
	}
}

// TestOutlivedKey: a key that no sweep has met yet is free all the same.
func TestOutlivedKey(t *testing.T) {
	url := postgrestest.Database(t)
	s := openForTest(t, url)
	r := gate.Request{Key: gate.IdempotencyKey{Key: "k"}}
	w := rejecting(gate.LedgerKey{}, gate.Counts{}, 1)
	w.Idempotency = r
	if err := s.Commit(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	postgrestest.Exec(t, url, `UPDATE stopgate.idempotency SET reserved = reserved - 24 * 3600 * 1000`)
	r.Body[0]++
	if held, err := s.Reserve(t.Context(), r, time.Minute); err != nil || held.Evaluation != "" {
		t.Errorf("reserve: %q, %v; want the key", held.Evaluation, err)
	}
}
