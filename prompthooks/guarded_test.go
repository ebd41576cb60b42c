package prompthooks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stopgate/gate"
)

func TestBreakerLeavesAFailingModelAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down, asked := true, 0
		m := Guarded(ModelFunc(func(_ context.Context, req Request) (Response, error) {
			asked++
			if down && req.Model == "bad" {
				return Response{}, Errorf(Unavailable, "status 503")
			}
			return says(yes)(req)
		}), 8)
		ask := func(deployment string) error {
			_, err := m.Generate(t.Context(), Request{Model: deployment})
			return err
		}
		for range breakAfter {
			if err := ask("bad"); err == nil || !strings.Contains(err.Error(), "503") {
				t.Fatal(err)
			}
		}
		before := asked
		err := ask("bad")
		bad, ok := errors.AsType[*Error](err)
		if !ok || bad.Kind != Unavailable || bad.RetryAfter <= 0 || bad.RetryAfter > breakFor || asked != before {
			t.Errorf("open: %v, asked %d more times", err, asked-before)
		}
		if err := ask("good"); err != nil {
			t.Errorf("another deployment: %v", err)
		}
		time.Sleep(breakFor)
		if err := ask("bad"); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("half-open: %v", err)
		}
		if before = asked; ask("bad") == nil || asked != before {
			t.Error("one failed try does not open it again")
		}
		down = false
		time.Sleep(breakFor)
		for range 3 {
			if err := ask("bad"); err != nil {
				t.Errorf("closed again: %v", err)
			}
		}
	})
}

// A judge that waits for the breaker and has the time for it gets its verdict;
// one that has not has none.
func TestJudgesWaitForTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := breakAfter
		m := Guarded(ModelFunc(func(_ context.Context, req Request) (Response, error) {
			if fail > 0 {
				fail--
				return Response{}, Errorf(Unavailable, "status 503")
			}
			return says(yes)(req)
		}), 8)
		for range breakAfter {
			_, _ = m.Generate(t.Context(), Request{})
		}
		j, err := New(Options{Model: func(string) (Model, string, error) { return m, "", nil }})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			timeout time.Duration
			want    gate.Outcome
		}{{5 * time.Second, gate.NoVerdict}, {30 * time.Second, gate.Allow}} {
			ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
			v := j.Evaluate(ctx, gate.Input{Hook: &gate.Hook{Event: gate.Stop, Prompt: "?", Timeout: c.timeout}, Event: &gate.Event{}, Context: []byte("{}")})
			cancel()
			if v.Outcome != c.want || c.want == gate.NoVerdict && v.Failure.Code != gate.ModelUnavailable {
				t.Errorf("%s: %s %v", c.timeout, v.Outcome, v.Failure)
			}
		}
	})
}

// What says no is there: it opens nothing.
func TestRefusalsDoNotOpenTheBreaker(t *testing.T) {
	for _, kind := range []ErrorKind{RateLimited, Rejected, Garbled} {
		m := Guarded(ModelFunc(func(context.Context, Request) (Response, error) { return Response{}, Errorf(kind, "no") }), 1)
		for range 3 * breakAfter {
			if _, err := m.Generate(t.Context(), Request{}); err == nil || err.Error() != "no" {
				t.Fatalf("%d: %v", kind, err)
			}
		}
	}
}

func TestGuardedHoldsRequestsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		m := Guarded(ModelFunc(func(_ context.Context, req Request) (Response, error) {
			running++
			most = max(most, running)
			time.Sleep(time.Second)
			running--
			return says(yes)(req)
		}), 1)
		done := make(chan error, 3)
		for range 3 {
			go func() { _, err := m.Generate(t.Context(), Request{}); done <- err }()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if most != 1 {
			t.Errorf("%d requests ran at once", most)
		}
		go func() { _, _ = m.Generate(t.Context(), Request{}) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := m.Generate(ctx, Request{}); !errors.Is(err, context.Canceled) {
			t.Errorf("one that waits to its end: %v", err)
		}
		time.Sleep(2 * time.Second)
	})
}

// An agent with many judges waiting does not keep another's waiting for all of them.
func TestAgentsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := Guarded(ModelFunc(func(_ context.Context, req Request) (Response, error) {
			time.Sleep(time.Second)
			return says(yes)(req)
		}), 1)
		j := judgeWith(t, Options{Model: oneModel(slow)})
		judge := func(ctx context.Context, agent string, n int) gate.Verdict {
			return j.Evaluate(ctx, gate.Input{Hook: &gate.Hook{Event: gate.Stop, Prompt: "?"}, Event: &gate.Event{Agent: agent},
				Context: fmt.Appendf(nil, `{"final_output":"%s %d"}`, agent, n)})
		}
		flood, end := context.WithCancel(t.Context())
		for n := range 20 {
			go judge(flood, "many", n)
		}
		synctest.Wait()
		began := time.Now()
		if v := judge(t.Context(), "few", 0); v.Outcome != gate.Allow || time.Since(began) > 3*time.Second {
			t.Errorf("%s %v after %s", v.Outcome, v.Failure, time.Since(began))
		}
		end()
		time.Sleep(2 * time.Second) // the one that runs does not look
	})
}

// A judge whose turn would come too late has no verdict at once, and does not try
// again; where another model may be asked, that one is.
func TestCrowdedJudgesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := Guarded(ModelFunc(func(_ context.Context, req Request) (Response, error) {
			time.Sleep(time.Second)
			return says(yes)(req)
		}), 1)
		models := map[string]Model{"slow": slow, "other": scripted(says(no))}
		fallback := []string(nil)
		j, err := New(Options{Model: func(name string) (Model, string, error) { return models[name], name, nil }, Fallback: func(string) []string { return fallback }})
		if err != nil {
			t.Fatal(err)
		}
		var questions atomic.Int64 // no two are the same, which would be asked once
		judge := func(timeout time.Duration) (gate.Verdict, time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			began := time.Now()
			v := j.Evaluate(ctx, gate.Input{Hook: &gate.Hook{Event: gate.Stop, Prompt: "?", Model: "slow"}, Event: &gate.Event{},
				Context: fmt.Appendf(nil, `{"final_output":"%d"}`, questions.Add(1))})
			return v, time.Since(began)
		}
		if v, _ := judge(time.Minute); v.Outcome != gate.Allow {
			t.Fatalf("%+v", v) // now it is known how long one takes
		}
		for range 10 {
			go judge(time.Minute)
		}
		synctest.Wait()
		if v, took := judge(5 * time.Second); v.Outcome != gate.NoVerdict || v.Failure.Code != gate.Overloaded || took != 0 {
			t.Errorf("%s %v after %s", v.Outcome, v.Failure, took)
		}
		fallback = []string{"other"}
		if v, took := judge(5 * time.Second); v.Outcome != gate.Block || v.Model != "other" || took != 0 {
			t.Errorf("%s %v after %s", v.Outcome, v.Failure, took)
		}
		fallback = nil
		if v, took := judge(time.Minute); v.Outcome != gate.Allow || took != 11*time.Second {
			t.Errorf("one that has the time: %s %v after %s", v.Outcome, v.Failure, took)
		}
	})
}
