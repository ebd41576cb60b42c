package server

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stopgate/gate"
)

func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	w.judge = needsMarker
	w.agent(t, "marker", gate.Stop, "ends")
	const key = "Idempotency-Key: ~turn-1!"

	first := w.must(t, 200, "POST", "/v1/evaluate", stop, key)
	again := w.must(t, 200, "POST", "/v1/evaluate", stop, key)
	if first.Body.String() != again.Body.String() {
		t.Errorf("answers differ:\n%s\n%s", first.Body, again.Body)
	}
	if strings.Contains(again.Body.String(), "secret evidence") {
		t.Error("a replayed answer has the evidence")
	}
	if a, b := first.Header().Get("Idempotency-Replayed"), again.Header().Get("Idempotency-Replayed"); a != "" || b != "true" {
		t.Errorf("Idempotency-Replayed: first %q, again %q", a, b)
	}
	if n := w.store.counts[gate.LedgerKey{Agent: "marker", Session: "s1"}].StopRejections; n != 1 {
		t.Errorf("counted %d times", n)
	}
	if code, _ := errorOf(t, w.must(t, 422, "POST", "/v1/evaluate", stop+" ", key)); code != "idempotency_mismatch" {
		t.Errorf("another body: code %s", code)
	}
	w.must(t, 200, "POST", "/v1/evaluate", stop, "Idempotency-Key: "+strings.Repeat("k", 255))

	w.store.records = nil // as retention, or the session's erasure, does
	if code, _ := errorOf(t, w.must(t, 409, "POST", "/v1/evaluate", stop, key)); code != "conflict" {
		t.Errorf("erased: code %s", code)
	}
}

func TestIdempotencyKeyIsGivenBackWithoutAnEvaluation(t *testing.T) {
	w := newWorld(t)
	const key = "Idempotency-Key: k"
	ghost := `{"hook_event_name":"Stop","agent_name":"ghost"}`
	w.must(t, 404, "POST", "/v1/evaluate", ghost, key)
	w.agent(t, "ghost", gate.Stop)
	w.must(t, 200, "POST", "/v1/evaluate", ghost, key)
	if w.store.released != 1 {
		t.Errorf("released %d times, want once", w.store.released)
	}
	w.must(t, 400, "POST", "/v1/evaluate", `{"hook`, "Idempotency-Key: unused")
	if w.store.keys[gate.IdempotencyKey{Key: "unused"}] != nil {
		t.Error("a body that cannot be read holds its key")
	}
}

func TestIdempotencyLeaseIsRenewedWhileHooksRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.judge = func(ctx context.Context, _ gate.Input) gate.Verdict {
			time.Sleep(35 * time.Second)
			return gate.Verdict{Outcome: gate.Allow}
		}
		w.agent(t, "marker", gate.Stop, "ends")
		var caller sync.WaitGroup
		caller.Go(func() { w.do("POST", "/v1/evaluate", stop, "Idempotency-Key: k") })
		time.Sleep(time.Second)
		if code, _ := errorOf(t, w.do("POST", "/v1/evaluate", stop, "Idempotency-Key: k")); code != "conflict" {
			t.Errorf("while the first runs: code %s", code)
		}
		caller.Wait()
		if w.store.renewals != 3 {
			t.Errorf("renewed %d times in 35 s, want every 10 s", w.store.renewals)
		}
		time.Sleep(time.Minute)
		if w.store.renewals != 3 {
			t.Error("renewed after the answer")
		}
	})
}

func TestCallerThatGoesAwayIsCountedOnce(t *testing.T) {
	w := newWorld(t)
	w.judge = func(ctx context.Context, in gate.Input) gate.Verdict {
		if ctx.Err() != nil {
			t.Error("the hook was ended with its caller")
		}
		return needsMarker(ctx, in)
	}
	w.agent(t, "marker", gate.Stop, "ends")
	r := newRequest("POST", "/v1/evaluate", stop)
	r.Header.Set("Idempotency-Key", "k")
	gone, cancel := context.WithCancel(r.Context())
	cancel()
	serve(w.Server, r.WithContext(gone))
	again := fields(t, w.must(t, 200, "POST", "/v1/evaluate", stop, "Idempotency-Key: k"))
	if again["stop_rejection_count"] != 1.0 || again["hooks"].([]any)[0].(map[string]any)["outcome"] != "block" {
		t.Errorf("got %v", again)
	}
}

func TestIdempotencyStoreDownIsStillAnswered(t *testing.T) {
	w := newWorld(t)
	w.store.down = errors.New("locked")
	got := fields(t, w.must(t, 200, "POST", "/v1/evaluate", `{"hook_event_name":"Stop"}`, "Idempotency-Key: k"))
	if got["decision"] != "allow" || got["degraded"] != true {
		t.Errorf("got %v", got)
	}
}

// A store that was locked when the key was to be reserved, and works again when
// the decision is committed: the retry gets the stored answer and counts no
// second time.
func TestIdempotencyRetryAfterAFailedReservationCountsOnce(t *testing.T) {
	w := newWorld(t)
	w.judge = needsMarker
	w.agent(t, "marker", gate.Stop, "ends")
	const key = "Idempotency-Key: k"
	w.store.unreserving = errors.New("locked")
	first := w.must(t, 200, "POST", "/v1/evaluate", stop, key)
	if got := fields(t, first); got["degraded"] != false || got["decision"] != "block" {
		t.Errorf("stored under its key, yet the answer is %v", got)
	}
	w.store.unreserving = nil
	again := w.must(t, 200, "POST", "/v1/evaluate", stop, key)
	if first.Body.String() != again.Body.String() || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("answers differ:\n%s\n%s", first.Body, again.Body)
	}
	if n := w.store.counts[gate.LedgerKey{Agent: "marker", Session: "s1"}].StopRejections; n != 1 {
		t.Errorf("counted %d times", n)
	}
	w.must(t, 422, "POST", "/v1/evaluate", stop+" ", key)

	// And when it is the retry that cannot reserve, the commit knows the key.
	w.store.unreserving = errors.New("locked")
	w.judge = func(ctx context.Context, in gate.Input) gate.Verdict {
		w.store.unreserving = nil // by the time the hooks have run
		return needsMarker(ctx, in)
	}
	late := w.must(t, 200, "POST", "/v1/evaluate", stop, key)
	if first.Body.String() != late.Body.String() || late.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("answers differ:\n%s\n%s", first.Body, late.Body)
	}
	w.store.unreserving = errors.New("locked")
	w.must(t, 422, "POST", "/v1/evaluate", stop+" ", key)
	if n := w.store.counts[gate.LedgerKey{Agent: "marker", Session: "s1"}].StopRejections; n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// The key is held while the hooks run, though the caller has gone: its retry
// must find it taken.
func TestCallerThatGoesAwayHoldsItsKey(t *testing.T) {
	w := newWorld(t)
	held := false
	w.judge = func(context.Context, gate.Input) gate.Verdict {
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		held = w.store.keys[gate.IdempotencyKey{Key: "k"}] != nil
		return gate.Verdict{Outcome: gate.Allow}
	}
	w.agent(t, "marker", gate.Stop, "ends")
	r := newRequest("POST", "/v1/evaluate", stop)
	r.Header.Set("Idempotency-Key", "k")
	gone, cancel := context.WithCancel(r.Context())
	cancel()
	serve(w.Server, r.WithContext(gone))
	if !held {
		t.Error("nobody held the key while the hook ran")
	}
}

// A decision that could not be stored is no answer to its key: a retry may try
// again at once.
func TestIdempotencyKeyIsGivenBackWhenTheCommitFails(t *testing.T) {
	w := newWorld(t)
	down := func(err error) {
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		w.store.down = err
	}
	w.judge = func(ctx context.Context, in gate.Input) gate.Verdict {
		down(errors.New("disk is full"))
		return needsMarker(ctx, in)
	}
	w.agent(t, "marker", gate.Stop, "ends")
	w.must(t, 200, "POST", "/v1/evaluate", stop, "Idempotency-Key: k")
	down(nil)
	w.judge = needsMarker
	again := w.must(t, 200, "POST", "/v1/evaluate", stop, "Idempotency-Key: k")
	if got := fields(t, again); got["degraded"] != false || again.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("got %v", got)
	}
}
