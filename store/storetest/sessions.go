package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// idempotency: a request counts once (DESIGN §5).
func idempotency(t *testing.T, s gate.Store) {
	key := gate.IdempotencyKey{Credential: "c", Key: "k"}
	body, other := [32]byte{1}, [32]byte{2}
	reserve := func(k gate.IdempotencyKey, body [32]byte, lease time.Duration) (string, error) {
		return s.Reserve(t.Context(), k, body, lease)
	}
	free := func(k gate.IdempotencyKey, body [32]byte, lease time.Duration) {
		t.Helper()
		if id, err := reserve(k, body, lease); err != nil || id != "" {
			t.Fatalf("reserve: %q, %v; want the key", id, err)
		}
	}
	t.Run("running, released, answered", func(t *testing.T) {
		free(key, body, time.Minute)
		_, err := reserve(key, body, time.Minute)
		wantCode(t, err, gate.CodeConflict)
		_, err = reserve(key, other, time.Minute)
		wantCode(t, err, gate.CodeIdempotencyMismatch)
		wantNoError(t, s.Release(t.Context(), key))
		free(key, other, time.Minute)
		c := plain(Record(1))
		c.Idempotency = key
		wantNoError(t, s.Commit(t.Context(), c))
		id, err := reserve(key, other, time.Minute)
		if err != nil || id != ID(1) {
			t.Errorf("reserve of an answered key: %q, %v; want %q", id, err, ID(1))
		}
		_, err = reserve(key, body, time.Minute)
		wantCode(t, err, gate.CodeIdempotencyMismatch)
		wantNoError(t, s.Release(t.Context(), key))
		if id, err := reserve(key, other, time.Minute); err != nil || id != ID(1) {
			t.Errorf("a release took the answer away: %q, %v", id, err)
		}
		wantCode(t, s.Renew(t.Context(), key, time.Minute), gate.CodeConflict)
	})
	t.Run("per credential", func(t *testing.T) {
		free(gate.IdempotencyKey{Credential: "d", Key: "k"}, body, time.Minute)
	})
	t.Run("the lease ends", func(t *testing.T) {
		k := gate.IdempotencyKey{Credential: "c", Key: "lease"}
		free(k, body, -time.Second)
		_, err := reserve(k, other, time.Minute)
		wantCode(t, err, gate.CodeIdempotencyMismatch)
		free(k, body, -time.Second)
		wantNoError(t, s.Renew(t.Context(), k, time.Minute))
		_, err = reserve(k, body, time.Minute)
		wantCode(t, err, gate.CodeConflict)
	})
	t.Run("one of many gets it", func(t *testing.T) {
		k := gate.IdempotencyKey{Credential: "c", Key: "many"}
		var got, refused atomic.Int32
		var running sync.WaitGroup
		for range 16 {
			running.Go(func() {
				switch _, err := reserve(k, body, time.Minute); {
				case err == nil:
					got.Add(1)
				case gate.CodeOf(err) == gate.CodeConflict:
					refused.Add(1)
				}
			})
		}
		running.Wait()
		if got.Load() != 1 || refused.Load() != 15 {
			t.Errorf("%d got the key, %d were refused; want 1 and 15", got.Load(), refused.Load())
		}
	})
}

// lostReservation: a key never counts twice, whatever became of its lease.
func lostReservation(t *testing.T, s gate.Store) {
	ledger := gate.LedgerKey{Agent: "builder", Session: "s1"}
	lost := func(name string, key gate.IdempotencyKey, n, counted int) {
		t.Helper()
		c := rejection(ledger, gate.Counts{StopRejections: counted}, n)
		c.Idempotency = key
		wantCode(t, s.Commit(t.Context(), c), gate.CodeConflict)
		wantCounts(t, s, ledger, gate.Counts{StopRejections: counted})
		_, err := s.Record(t.Context(), ID(n))
		if gate.CodeOf(err) != gate.CodeNotFound {
			t.Errorf("%s: the record was stored: %v", name, err)
		}
	}
	key := gate.IdempotencyKey{Credential: "c", Key: "k"}
	lost("never reserved", key, 1, 0)

	_, err := s.Reserve(t.Context(), key, [32]byte{}, -time.Second)
	wantNoError(t, err)
	_, err = s.Reserve(t.Context(), key, [32]byte{}, time.Minute) // taken over
	wantNoError(t, err)
	c := rejection(ledger, gate.Counts{}, 2)
	c.Idempotency = key
	wantNoError(t, s.Commit(t.Context(), c))
	lost("answered by another", key, 3, 1)

	gone := gate.IdempotencyKey{Credential: "c", Key: "released"}
	_, err = s.Reserve(t.Context(), gone, [32]byte{}, time.Minute)
	wantNoError(t, err)
	wantNoError(t, s.Release(t.Context(), gone))
	lost("released", gone, 4, 1)
	wantCode(t, s.Renew(t.Context(), gone, time.Minute), gate.CodeConflict)

	t.Run("failed commit leaves the reservation open", func(t *testing.T) {
		k := gate.IdempotencyKey{Credential: "c", Key: "open"}
		_, err := s.Reserve(t.Context(), k, [32]byte{}, time.Minute)
		wantNoError(t, err)
		c := plain(Record(2)) // the id is taken
		c.Idempotency = k
		if s.Commit(t.Context(), c) == nil {
			t.Fatal("an id was stored twice")
		}
		c = plain(Record(5))
		c.Idempotency = k
		wantNoError(t, s.Commit(t.Context(), c))
	})
}

func sessions(t *testing.T, s gate.Store) {
	_, err := s.Session(t.Context(), "s1")
	wantCode(t, err, gate.CodeNotFound)
	_, err = s.Session(t.Context(), "")
	wantCode(t, err, gate.CodeNotFound)

	key := gate.LedgerKey{Agent: "builder", Session: "s1", SubAgent: "x"}
	for n := range 25 {
		wantNoError(t, s.Commit(t.Context(), rejection(key, gate.Counts{StopRejections: n}, n+1)))
	}
	commit(t, s, with(Record(30), func(r *gate.Record) { r.Agent = "idle" }))
	wantNoError(t, s.SetActive(t.Context(), "s1", "h", true, "me"))
	commit(t, s, with(Record(31), func(r *gate.Record) { r.Session = "s2" }))

	got, err := s.Session(t.Context(), "s1")
	wantNoError(t, err)
	want := []gate.AgentCounts{{Agent: "builder", SubAgent: "x", StopHookActive: true, StopRejectionCount: 25},
		{Agent: "idle"}, {Agent: "builder"}} // the suite's rejections are recorded without sub-agent
	if diff := cmp.Diff(want, got.Agents); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"h": true}, got.ActiveHooks); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	if len(got.Last) != 20 || got.Last[0].EvaluationID != ID(30) || got.Last[1].EvaluationID != ID(25) || got.Session != "s1" {
		t.Errorf("last are %v of %q", ids(got.Last), got.Session)
	}
	t.Run("known by an activation alone", func(t *testing.T) {
		wantNoError(t, s.SetActive(t.Context(), "s3", "h", false, "me"))
		if _, err := s.Session(t.Context(), "s3"); err != nil {
			t.Error(err)
		}
	})
}

// eraseSession leaves nothing of the session, and everything else.
func eraseSession(t *testing.T, s gate.Store) {
	for i, session := range []string{"s1", "s2", ""} {
		key := gate.IdempotencyKey{Credential: "c", Key: session}
		_, err := s.Reserve(t.Context(), key, [32]byte{}, time.Minute)
		wantNoError(t, err)
		r := Full(i + 1)
		r.Session = session
		wantNoError(t, s.Commit(t.Context(), gate.Commit{Key: gate.LedgerKey{Agent: "builder", Session: session}, Idempotency: key,
			Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return gate.Counts{StopRejections: 1}, r }}))
		if session != "" {
			wantNoError(t, s.SetActive(t.Context(), session, "h", true, "me"))
		}
	}
	wantNoError(t, s.EraseSession(t.Context(), "s1"))
	_, err := s.Session(t.Context(), "s1")
	wantCode(t, err, gate.CodeNotFound)
	_, err = s.Record(t.Context(), ID(1))
	wantCode(t, err, gate.CodeNotFound)
	if diff := cmp.Diff([]string{ID(3), ID(2)}, list(t, s, gate.RecordFilter{Hook: "judge"})); diff != "" {
		t.Errorf("records by hook (-want +got):\n%s", diff)
	}
	wantCounts(t, s, gate.LedgerKey{Agent: "builder", Session: "s1"}, gate.Counts{})
	wantCounts(t, s, gate.LedgerKey{Agent: "builder", Session: "s2"}, gate.Counts{StopRejections: 1})
	if id, err := s.Reserve(t.Context(), gate.IdempotencyKey{Credential: "c", Key: "s1"}, [32]byte{9}, time.Minute); err != nil || id != "" {
		t.Errorf("the erased session's key still answers: %q, %v", id, err)
	}
	if id, err := s.Reserve(t.Context(), gate.IdempotencyKey{Credential: "c", Key: "s2"}, [32]byte{}, time.Minute); err != nil || id != ID(2) {
		t.Errorf("another session's key: %q, %v; want %q", id, err, ID(2))
	}
	wantNoError(t, s.EraseSession(t.Context(), "s1"))
	wantNoError(t, s.EraseSession(t.Context(), ""))
	if diff := cmp.Diff([]string{ID(3), ID(2)}, list(t, s, gate.RecordFilter{})); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}
