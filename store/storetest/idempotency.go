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
	reserve := func(k gate.IdempotencyKey, body [32]byte, lease time.Duration) (gate.Reservation, error) {
		return s.Reserve(t.Context(), gate.Request{Key: k, Body: body}, lease)
	}
	free := func(k gate.IdempotencyKey, body [32]byte, lease time.Duration) gate.Reservation {
		t.Helper()
		held, err := reserve(k, body, lease)
		if err != nil || held.Evaluation != "" {
			t.Fatalf("reserve: %q, %v; want the key", held.Evaluation, err)
		}
		return held
	}
	t.Run("running, released, answered", func(t *testing.T) {
		held := free(key, body, time.Minute)
		_, err := reserve(key, body, time.Minute)
		wantCode(t, err, gate.CodeConflict)
		_, err = reserve(key, other, time.Minute)
		wantCode(t, err, gate.CodeIdempotencyMismatch)
		wantNoError(t, s.Release(t.Context(), held))
		held = free(key, other, time.Minute)
		c := plain(Record(1))
		c.Idempotency = gate.Request{Key: key, Body: other}
		wantNoError(t, s.Commit(t.Context(), c))
		got, err := reserve(key, other, time.Minute)
		if err != nil || got.Evaluation != ID(1) {
			t.Errorf("reserve of an answered key: %q, %v; want %q", got.Evaluation, err, ID(1))
		}
		_, err = reserve(key, body, time.Minute)
		wantCode(t, err, gate.CodeIdempotencyMismatch)
		wantNoError(t, s.Release(t.Context(), held))
		if got, err := reserve(key, other, time.Minute); err != nil || got.Evaluation != ID(1) {
			t.Errorf("a release took the answer away: %q, %v", got.Evaluation, err)
		}
		wantCode(t, s.Renew(t.Context(), held, time.Minute), gate.CodeConflict)
	})
	t.Run("per credential", func(t *testing.T) {
		free(gate.IdempotencyKey{Credential: "d", Key: "k"}, body, time.Minute)
	})
	t.Run("the lease ends", func(t *testing.T) {
		k := gate.IdempotencyKey{Credential: "c", Key: "lease"}
		free(k, body, -time.Second)
		_, err := reserve(k, other, time.Minute)
		wantCode(t, err, gate.CodeIdempotencyMismatch)
		late := free(k, body, -time.Second)
		wantNoError(t, s.Renew(t.Context(), late, time.Minute))
		_, err = reserve(k, body, time.Minute)
		wantCode(t, err, gate.CodeConflict)
	})
	t.Run("who was too slow has no say over its successor", func(t *testing.T) {
		k := gate.IdempotencyKey{Credential: "c", Key: "slow"}
		slow := free(k, body, -time.Second)
		time.Sleep(2 * time.Millisecond) // leases are longer
		next := free(k, body, time.Minute)
		wantNoError(t, s.Release(t.Context(), slow))
		wantCode(t, s.Renew(t.Context(), slow, -time.Second), gate.CodeConflict)
		_, err := reserve(k, body, time.Minute)
		wantCode(t, err, gate.CodeConflict)
		wantNoError(t, s.Renew(t.Context(), next, time.Minute))
		wantNoError(t, s.Release(t.Context(), next))
		free(k, body, time.Minute)
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

// lostReservation: a request is counted once, by its commit, whatever became of
// its reservation.
func lostReservation(t *testing.T, s gate.Store) {
	ledger := gate.LedgerKey{Agent: "builder", Session: "s1"}
	counted := 0
	commit := func(r gate.Request, n int) error {
		t.Helper()
		c := rejection(ledger, gate.Counts{StopRejections: counted}, n)
		c.Idempotency = r
		return s.Commit(t.Context(), c)
	}
	refused := func(name string, r gate.Request, n int, code gate.Code) {
		t.Helper()
		wantCode(t, commit(r, n), code)
		wantCounts(t, s, ledger, gate.Counts{StopRejections: counted})
		if _, err := s.Record(t.Context(), ID(n)); gate.CodeOf(err) != gate.CodeNotFound {
			t.Errorf("%s: the record was stored: %v", name, err)
		}
	}
	// once: the commit counts, a second is refused, the key has its answer, and
	// no other body gets it.
	once := func(name string, r gate.Request, n int) {
		t.Helper()
		if err := commit(r, n); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		counted++
		refused(name, r, n+1, gate.CodeConflict)
		held, err := s.Reserve(t.Context(), r, time.Minute)
		if err != nil || held.Evaluation != ID(n) {
			t.Errorf("%s: the key answers %q, %v; want %q", name, held.Evaluation, err, ID(n))
		}
		wantNoError(t, s.Release(t.Context(), held))
		other := r
		other.Body[31]++
		refused(name, other, n+2, gate.CodeIdempotencyMismatch)
	}
	request := func(key string) gate.Request {
		return gate.Request{Key: gate.IdempotencyKey{Credential: "c", Key: key}, Body: [32]byte{1}}
	}
	reserve := func(r gate.Request, lease time.Duration) gate.Request {
		t.Helper()
		_, err := s.Reserve(t.Context(), r, lease)
		wantNoError(t, err)
		return r
	}
	once("never reserved", request("unreserved"), 10)
	once("reserved", reserve(request("reserved"), time.Minute), 20)
	once("its lease is over", reserve(request("over"), -time.Second), 30)
	once("taken over", reserve(reserve(request("taken"), -time.Second), time.Minute), 40)

	released := request("released")
	held, err := s.Reserve(t.Context(), released, time.Minute)
	wantNoError(t, err)
	wantNoError(t, s.Release(t.Context(), held))
	wantCode(t, s.Renew(t.Context(), held, time.Minute), gate.CodeConflict)
	once("released", released, 50)

	t.Run("held by another body", func(t *testing.T) {
		held := reserve(request("held"), time.Minute)
		other := held
		other.Body[31]++
		refused("other body", other, 60, gate.CodeIdempotencyMismatch)
		once("the one that holds it", held, 61)
	})
	t.Run("failed commit leaves the reservation open", func(t *testing.T) {
		r := reserve(request("open"), time.Minute)
		c := plain(Record(10)) // the id is taken
		c.Idempotency = r
		if s.Commit(t.Context(), c) == nil {
			t.Fatal("an id was stored twice")
		}
		once("again", r, 70)
	})
	t.Run("failed commit claims nothing", func(t *testing.T) {
		c := plain(Record(10)) // the id is taken
		c.Idempotency = request("unclaimed")
		if s.Commit(t.Context(), c) == nil {
			t.Fatal("an id was stored twice")
		}
		if held, err := s.Reserve(t.Context(), c.Idempotency, time.Minute); err != nil || held.Evaluation != "" {
			t.Errorf("reserve: %q, %v; want the key", held.Evaluation, err)
		}
	})
	t.Run("one of many at once", func(t *testing.T) {
		var stored, conflicts atomic.Int32
		var running sync.WaitGroup
		for n := range 8 {
			c := plain(Record(80 + n))
			c.Idempotency = request("many")
			running.Go(func() {
				switch err := s.Commit(t.Context(), c); {
				case err == nil:
					stored.Add(1)
				case gate.CodeOf(err) == gate.CodeConflict:
					conflicts.Add(1)
				}
			})
		}
		running.Wait()
		if stored.Load() != 1 || conflicts.Load() != 7 {
			t.Errorf("%d were stored and %d refused, want 1 and 7", stored.Load(), conflicts.Load())
		}
	})
}
