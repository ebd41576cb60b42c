package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
)

// A caller that hangs up stops its judge, and its Stop counts as if it had never
// been asked; one with an Idempotency-Key will ask again, and its judge goes on.
func TestCallerThatHangsUpStopsItsJudge(t *testing.T) {
	judged := &gate.Spec{Kind: gate.AgentSpec, Name: "judged", Hooks: []gate.Hook{{Name: "h", Dialect: gate.Azure, Level: gate.CustomLevel,
		Event: gate.Stop, Type: gate.PromptHook, Timeout: time.Minute, FailMode: gate.FailAllow}}}
	w := newWorld(t, func(o *Options) {
		o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true }
		o.ReadAny = func(string, []byte) (*gate.Spec, []gate.Finding, error) { return judged, nil, nil }
	})
	judging, ended := make(chan struct{}, 1), make(chan error, 1)
	finish := make(chan struct{})
	w.Server.opt.Gate.Evaluators[gate.PromptHook] = gate.EvaluatorFunc(func(ctx context.Context, _ gate.Input) gate.Verdict {
		judging <- struct{}{}
		select {
		case <-ctx.Done():
		case <-finish:
		}
		ended <- ctx.Err()
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Timeout, Message: "stopped"}}
	})
	w.Server.opt.Gate.Policies.Put(judged)
	web := httptest.NewServer(w.Handler())
	defer web.Close()
	release := sync.OnceFunc(func() { close(finish) })
	defer release() // or the server would wait for a judge that nothing stopped
	const stop = `"hook_event_name":"Stop","agent_name":"judged","session_id":"s"`
	ask := func(route, body, key string) (hangUp func()) {
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, web.URL+route, strings.NewReader(body))
		r.Header.Set("Content-Type", typeJSON)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		go func() {
			if answer, err := http.DefaultClient.Do(r); err == nil {
				answer.Body.Close()
			}
		}()
		<-judging
		return cancel
	}
	for _, c := range []struct{ route, body string }{
		{"/v1/evaluate", "{" + stop + "}"},
		{"/v1/dry-run", "{" + stop + `,"spec":{}}`},
		{"/v1/hooks/plain?agent=judged&session=s", "{}"},
	} {
		ask(c.route, c.body, "")()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%s: the judge ended by itself", c.route)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the judge was not stopped", c.route)
		}
	}
	ask("/v1/evaluate", "{"+stop+"}", "k")()
	select {
	case err := <-ended:
		t.Errorf("with a key the judge was stopped: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	release()
	if err := <-ended; err != nil {
		t.Errorf("with a key: %v", err)
	}
}
