package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
