package telemetry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"stopgate/gate"
)

// losses counts what was dropped.
type losses struct {
	mu sync.Mutex
	of map[Loss]int
}

func (l *losses) add(why Loss, spans int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[Loss]int{}
	}
	l.of[why] += spans
}

func (l *losses) are(t *testing.T, want map[Loss]int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, l.of); diff != "" {
		t.Errorf("lost: %s", diff)
	}
}

func open(t *testing.T, url string, queue int, l *losses) *Traces {
	t.Helper()
	traces, err := Open(t.Context(), Options{Endpoint: url + "/v1/traces", Sample: 1, Queue: queue, Dropped: l.add})
	if err != nil {
		t.Fatal(err)
	}
	return traces
}

// evaluated traces one event.
func (t *Traces) evaluated() {
	_, end := t.Evaluation(context.Background(), http.Header{}, &gate.Event{Name: gate.Stop, Agent: "a"})
	end(&gate.Decision{Outcome: gate.Allow}, nil)
}

// TestCloseIsBounded: the server's end does not wait for a collector that hangs, and
// what it did not get is counted once.
func TestCloseIsBounded(t *testing.T) {
	over, began := make(chan struct{}), make(chan struct{}, 8)
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { began <- struct{}{}; <-over }))
	defer collector.Close()
	defer close(over)
	var l losses
	traces := open(t, collector.URL, 4, &l)
	for range 4 {
		traces.evaluated()
	}
	<-began // all four, in one batch
	start := time.Now()
	if err := traces.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > flushTime+5*time.Second {
		t.Errorf("it took %s", took)
	}
	traces.evaluated()
	time.Sleep(100 * time.Millisecond) // for the request that was given up
	l.are(t, map[Loss]int{Stopped: 4}) // the SDK makes no span after its end
}

func TestCloseSendsWhatWaits(t *testing.T) {
	got := make(chan struct{}, 8)
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got <- struct{}{} }))
	defer collector.Close()
	var l losses
	traces := open(t, collector.URL, 100, &l)
	traces.evaluated()
	if err := traces.Close(); err != nil {
		t.Error(err)
	}
	if len(got) != 1 {
		t.Errorf("%d requests", len(got))
	}
	l.are(t, nil)
}

// TestSpansGoNowhereElse: neither the library's environment variables nor a redirect
// take spans and keys to another place.
func TestSpansGoNowhereElse(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s got %s", r.Host, r.URL) }))
	defer elsewhere.Close()
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": elsewhere.URL, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": elsewhere.URL,
		"OTEL_EXPORTER_OTLP_HEADERS": "x-other=1", "OTEL_TRACES_SAMPLER": "always_off", "HTTP_PROXY": elsewhere.URL} {
		t.Setenv(name, value)
	}
	got := make(chan http.Header, 8)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer collector.Close()
	var l losses
	traces := open(t, collector.URL, 100, &l)
	traces.evaluated()
	if err := traces.Close(); err != nil {
		t.Error(err)
	}
	if len(got) != 1 {
		t.Fatalf("%d requests", len(got))
	}
	if other := (<-got).Get("X-Other"); other != "" {
		t.Errorf("header of the environment: %q", other)
	}
	l.are(t, map[Loss]int{NotTaken: 1})
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{"no sample": {Queue: 1}, "too large a sample": {Sample: 2, Queue: 1}, "no queue": {Sample: 1}} {
		o.Endpoint = "http://127.0.0.1:1/v1/traces"
		if _, err := Open(t.Context(), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// recorded is what is traced without a collector.
func recorded() (*Traces, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))
	return &Traces{provider: provider, tracer: provider.Tracer("test")}, spans
}

// TestFailuresAreCodes: a span says by a code what went wrong, and nothing of the
// message.
func TestFailuresAreCodes(t *testing.T) {
	hook := &gate.Hook{Type: gate.RuleHook, Event: gate.Stop}
	for _, c := range []struct {
		name, want string
		do         func(*Traces)
	}{
		{"a hook without a verdict", "timeout", func(traces *Traces) {
			traces.Hooks(gate.EvaluatorFunc(func(context.Context, gate.Input) gate.Verdict {
				return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Timeout, Message: "said secretly"}}
			})).Evaluate(context.Background(), gate.Input{Hook: hook})
		}},
		{"a hook that panics", "internal", func(traces *Traces) {
			defer func() {
				if recover() == nil {
					t.Error("the panic is gone: the gate would not know")
				}
			}()
			traces.Hooks(gate.EvaluatorFunc(func(context.Context, gate.Input) gate.Verdict { panic("x") })).Evaluate(context.Background(), gate.Input{Hook: hook})
		}},
		{"a request that was wrong", "not_found", func(traces *Traces) {
			_, end := traces.Evaluation(context.Background(), http.Header{}, &gate.Event{})
			end(&gate.Decision{}, gate.Errorf(gate.CodeNotFound, "agent %q", "secret"))
		}},
		{"a caller that went away", "abandoned", func(traces *Traces) {
			_, end := traces.Evaluation(context.Background(), http.Header{}, &gate.Event{})
			end(&gate.Decision{}, gate.ErrAbandoned)
		}},
		{"an error of no kind", "internal", func(traces *Traces) {
			_, end := traces.Evaluation(context.Background(), http.Header{}, &gate.Event{})
			end(&gate.Decision{}, errors.New("secret"))
		}},
		{"a gate that panicked", "internal", func(traces *Traces) {
			_, end := traces.Evaluation(context.Background(), http.Header{}, &gate.Event{})
			end(&gate.Decision{}, nil)
		}},
		{"a store that is down", "store_unavailable", func(traces *Traces) {
			_, end := traces.Evaluation(context.Background(), http.Header{}, &gate.Event{})
			end(&gate.Decision{Outcome: gate.Allow, GateError: &gate.Failure{Code: gate.StoreUnavailable, Message: "secret"}}, nil)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			traces, spans := recorded()
			c.do(traces)
			ended := spans.Ended()
			if len(ended) != 1 {
				t.Fatalf("%d spans", len(ended))
			}
			var code string
			for _, kv := range ended[0].Attributes() {
				if kv.Key == "error.type" {
					code = kv.Value.AsString()
				}
			}
			if status := ended[0].Status(); code != c.want || status.Code != codes.Error || status.Description != "" || len(ended[0].Events()) > 0 {
				t.Errorf("code %q, status %v, events %v", code, status, ended[0].Events())
			}
		})
	}
}
