package server

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// metric is the value of one series, as text; empty if there is none.
func (w *world) metric(t *testing.T, series string) string {
	t.Helper()
	for line := range strings.Lines(w.must(t, 200, "GET", "/metrics", "").Body.String()) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.agent(t, "marker", gate.Stop, "ends")
	w.judge = func(context.Context, gate.Input) gate.Verdict {
		return gate.Verdict{Outcome: gate.Block, Reason: "no", Model: "m", Usage: &gate.Usage{Calls: 1, PromptTokens: 900, CachedTokens: 100, OutputTokens: 40, Cost: 0.5}}
	}
	w.must(t, 200, "POST", "/v1/evaluate", stop)
	w.judge = func(context.Context, gate.Input) gate.Verdict {
		if got := w.metric(t, "stopgate_evaluations_in_flight"); got != "1" {
			t.Errorf("in flight: %s", got)
		}
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Timeout, Message: "slow"}}
	}
	w.must(t, 200, "POST", "/v1/evaluate", stop)
	w.must(t, 200, "POST", "/v1/dry-run", `{"hook_event_name":"Stop","spec":{"name":"marker"}}`)
	w.must(t, 200, "POST", "/v1/evaluate", `{"hook_event_name":"Start"}`)
	w.store.down = errors.New("locked")
	w.must(t, 200, "POST", "/v1/evaluate", `{"hook_event_name":"Start"}`)
	w.must(t, 404, "GET", "/v1/nowhere/at/all", "")
	w.do("BREW", "/healthz", "")

	for series, want := range map[string]string{
		`stopgate_decisions_total{agent="marker",decision="block",event="Stop"}`:             "1",
		`stopgate_decisions_total{agent="marker",decision="allow",event="Stop"}`:             "1", // not the dry run
		`stopgate_decisions_total{agent="default",decision="allow",event="Start"}`:           "2",
		`stopgate_hook_duration_seconds_count{outcome="block",type="rule"}`:                  "1",
		`stopgate_hook_duration_seconds_count{outcome="no_verdict",type="rule"}`:             "1",
		`stopgate_hooks_failed_total{code="timeout",mode="open"}`:                            "1",
		`stopgate_model_tokens_total{kind="prompt",model="m"}`:                               "900",
		`stopgate_model_tokens_total{kind="cached",model="m"}`:                               "100",
		`stopgate_model_tokens_total{kind="output",model="m"}`:                               "40",
		`stopgate_hooks_total{agent="marker",hook="ends",outcome="block",type="rule"}`:       "1",
		`stopgate_hooks_total{agent="marker",hook="ends",outcome="no_verdict",type="rule"}`:  "1",
		`stopgate_model_cost_total{model="m"}`:                                               "0.5",
		`stopgate_forced_total{agent="marker",event="Stop"}`:                                 "",
		`stopgate_evaluations_limit`:                                                         "20000",
		`stopgate_build_info{version="v0"}`:                                                  "1",
		`stopgate_http_request_duration_seconds_count{route="/v1/evaluate"}`:                 "4",
		`stopgate_gate_errors_total{code="store_unavailable"}`:                               "1",
		`stopgate_evaluations_in_flight`:                                                     "0",
		`stopgate_http_requests_total{method="POST",route="/v1/evaluate",status="200"}`:      "4",
		`stopgate_http_requests_total{method="other",route="/healthz",status="405"}`:         "1",
		`stopgate_http_requests_total{method="GET",route="/v1/nowhere/at/all",status="404"}`: "",
	} {
		if got := w.metric(t, series); got != want {
			t.Errorf("%s is %q, want %q", series, got, want)
		}
	}
}

func TestMetricLabelsAreBounded(t *testing.T) {
	m := NewMetrics(&gate.Policies{})
	if got := m.agent("whatever a caller says"); got != other {
		t.Errorf("agent label %q", got)
	}
	if got := eventLabel("AfterAgent"); got != other {
		t.Errorf("event label %q", got)
	}
	for i := range maxHooks + 10 {
		m.hook("a", &gate.Verdict{Name: strconv.Itoa(i), Outcome: gate.Allow})
	}
	if got := series(t, m, "stopgate_hooks_total"); got != maxHooks+1 {
		t.Errorf("%d series of hooks, want %d and one of the others", got, maxHooks)
	}
	for i := range maxModels {
		m.model(strings.Repeat("m", i+1))
	}
	if got := m.model("one too many"); got != other {
		t.Errorf("model label %q", got)
	}
	if got := m.model("m"); got != "m" {
		t.Errorf("a known model's label %q", got)
	}
}

// series is how many series a metric has.
func series(t *testing.T, m *Metrics, name string) int {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return len(f.GetMetric())
		}
	}
	return 0
}

// TestDryRunsNameNoSeries: an inline spec may call its hooks anything.
func TestDryRunsNameNoSeries(t *testing.T) {
	m := NewMetrics(&gate.Policies{})
	hooks := []gate.Verdict{{Name: "h", Outcome: gate.Allow, Duration: 1500 * time.Millisecond}, {Name: "s", Outcome: gate.Skipped}}
	m.Observe(gate.Record{DryRun: true, Decision: gate.Decision{Outcome: gate.Allow, Forced: true, Hooks: hooks}})
	for _, name := range []string{"stopgate_hooks_total", "stopgate_hook_seconds_total", "stopgate_forced_total"} {
		if got := series(t, m, name); got != 0 {
			t.Errorf("a dry run has %d series of %s", got, name)
		}
	}
	m.Observe(gate.Record{Agent: gate.DefaultAgent, Event: gate.Stop, Decision: gate.Decision{Outcome: gate.Allow, Forced: true, Hooks: hooks}})
	for name, want := range map[string]int{"stopgate_hooks_total": 2, "stopgate_hook_seconds_total": 1, "stopgate_forced_total": 1} {
		if got := series(t, m, name); got != want {
			t.Errorf("%s has %d series, want %d", name, got, want)
		}
	}
}

func TestStoreIsTimed(t *testing.T) {
	w := newWorld(t)
	w.opt.Gate.Store = w.metrics.Timed(w.store)
	w.agent(t, "marker", gate.Stop, "ends")
	w.must(t, 200, "POST", "/v1/evaluate", stop)
	w.store.down = errors.New("locked")
	w.must(t, 200, "POST", "/v1/evaluate", stop)
	for series, want := range map[string]string{
		`stopgate_store_duration_seconds_count{operation="commit",result="ok"}`:    "1",
		`stopgate_store_duration_seconds_count{operation="commit",result="error"}`: "1",
		`stopgate_store_duration_seconds_count{operation="counts",result="error"}`: "1",
	} {
		if got := w.metric(t, series); got != want {
			t.Errorf("%s is %q, want %q", series, got, want)
		}
	}
}

func TestScriptsAreShown(t *testing.T) {
	w := newWorld(t)
	w.metrics.Scripts(func() ScriptUse {
		return ScriptUse{Running: 2, Queued: 5, Limit: 16, Started: 9, Failed: 1, Warm: 6, Waiting: 3, WaitingBytes: 1 << 20}
	})
	for series, want := range map[string]string{"stopgate_scripts_running": "2", "stopgate_scripts_queued": "5", "stopgate_scripts_limit": "16",
		`stopgate_script_starts_total{result="started"}`: "9", `stopgate_script_starts_total{result="failed"}`: "1",
		`stopgate_script_sandboxes_total{start="warm"}`: "6", `stopgate_script_sandboxes_total{start="cold"}`: "3",
		"stopgate_script_sandboxes_waiting": "3", "stopgate_script_sandboxes_waiting_bytes": "1.048576e+06"} {
		if got := w.metric(t, series); got != want {
			t.Errorf("%s is %q, want %q", series, got, want)
		}
	}
}

func TestClosedFailureIsCountedAsClosed(t *testing.T) {
	w := newWorld(t)
	w.opt.Metrics.Observe(gate.Record{Decision: gate.Decision{Outcome: gate.Block, Hooks: []gate.Verdict{{
		Type: gate.PromptHook, Outcome: gate.NoVerdict, FailMode: gate.FailBlock, Failure: &gate.Failure{Code: gate.ModelRefused, Message: "x"}}}}})
	if got := w.metric(t, `stopgate_hooks_failed_total{code="model_refused",mode="closed"}`); got != "1" {
		t.Errorf("got %q", got)
	}
}

func TestShadowsFailureIsNobodysFailure(t *testing.T) {
	w := newWorld(t)
	w.opt.Metrics.Observe(gate.Record{Decision: gate.Decision{Outcome: gate.Allow, Hooks: []gate.Verdict{{Shadow: true,
		Type: gate.PromptHook, Outcome: gate.NoVerdict, FailMode: gate.FailBlock, Failure: &gate.Failure{Code: gate.Timeout, Message: "x"}}}}})
	if got := w.metric(t, `stopgate_hooks_failed_total{code="timeout",mode="shadow"}`); got != "1" {
		t.Errorf("got %q", got)
	}
}

func TestReady(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Ready = func(context.Context) map[string]Check {
			return map[string]Check{"sandbox": {OK: true}, "models": {Reason: "no model key"}}
		}
		o.StoreName = "memory"
	})
	sameJSON(t, "store works", w.must(t, 200, "GET", "/readyz", "").Body.Bytes(),
		`{"status":"ready","version":"v0","checks":{"store":{"ok":true,"reason":"memory"},"sandbox":{"ok":true},"models":{"ok":false,"reason":"no model key"}}}`)
	w.store.down = errors.New("disk is full")
	sameJSON(t, "store down", w.must(t, 503, "GET", "/readyz", "").Body.Bytes(),
		`{"status":"not_ready","version":"v0","checks":{"store":{"ok":false,"reason":"disk is full"},"sandbox":{"ok":true},"models":{"ok":false,"reason":"no model key"}}}`)
	w.must(t, 200, "GET", "/healthz", "")
	t.Run("fault G69: a sandbox that does not work is told at once", func(t *testing.T) {
		w := newWorld(t, func(o *Options) {
			o.Ready = func(context.Context) map[string]Check {
				return map[string]Check{"sandbox": {Reason: "user namespaces are restricted"}}
			}
		})
		sameJSON(t, "readyz", w.must(t, 200, "GET", "/readyz", "").Body.Bytes(),
			`{"status":"ready","version":"v0","checks":{"store":{"ok":true},"sandbox":{"ok":false,"reason":"user namespaces are restricted"}}}`)
	})
}

func TestOverload(t *testing.T) {
	t.Run("evaluations", func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Limits.InFlight = 1 })
		w.agent(t, "marker", gate.Stop, "ends")
		w.judge = func(context.Context, gate.Input) gate.Verdict {
			for _, route := range []string{"/v1/evaluate", "/v1/dry-run"} {
				rec := w.do("POST", route, stop)
				if code, _ := errorOf(t, rec); rec.Code != 503 || code != "overloaded" || rec.Header().Get("Retry-After") == "" {
					t.Errorf("%s: %d %s", route, rec.Code, rec.Body)
				}
			}
			return gate.Verdict{Outcome: gate.Allow}
		}
		w.must(t, 200, "POST", "/v1/evaluate", stop)
		w.must(t, 200, "POST", "/v1/evaluate", stop) // the place is free again
	})
	t.Run("large bodies", func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Limits.BufferedBytes = 1 << 20 })
		large := func(n int) string {
			return `{"hook_event_name":"Stop","final_output":"` + strings.Repeat("x", n) + `"}`
		}
		w.must(t, 503, "POST", "/v1/evaluate", large(2<<20))
		w.must(t, 200, "POST", "/v1/evaluate", large(100<<10))
		if held := w.rooms.held; held != (amounts{}) {
			t.Errorf("%v is still held", held)
		}
	})
}

func TestLogOfDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		verdict gate.Verdict
		level   string // empty: not logged at info
	}{
		"allow":       {gate.Verdict{Outcome: gate.Allow}, ""},
		"block":       {gate.Verdict{Outcome: gate.Block, Reason: "no"}, "INFO"},
		"failed open": {gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Timeout, Message: "slow"}}, "WARN"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.judge = func(context.Context, gate.Input) gate.Verdict { return c.verdict }
			w.agent(t, "marker", gate.Stop, "ends")
			w.must(t, 200, "POST", "/v1/evaluate", stop)
			log := w.log.String()
			if (log == "") != (c.level == "") {
				t.Fatalf("log %q", log)
			}
			for _, word := range []string{"level=" + c.level, "evaluation_id=ev-0001", "agent=marker", "session=s1", "event=Stop"} {
				if c.level != "" && !strings.Contains(log, word) {
					t.Errorf("log lacks %q: %s", word, log)
				}
			}
		})
	}
}
