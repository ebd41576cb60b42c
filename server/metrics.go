package server

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"stopgate/gate"
)

// Metrics counts what the gate and the server do, for Prometheus. It is made
// before the gate, whose Observe it is, and before the server, which shows it.
type Metrics struct {
	registry *prometheus.Registry
	policies *gate.Policies
	inFlight atomic.Int64
	limit    prometheus.Gauge
	build    *prometheus.GaugeVec

	forced       *prometheus.CounterVec
	overridden   *prometheus.CounterVec
	hooks        *prometheus.CounterVec
	hookSeconds  *prometheus.CounterVec
	modelCost    *prometheus.CounterVec
	requestTime  *prometheus.HistogramVec
	storeTime    *prometheus.HistogramVec
	decisions    *prometheus.CounterVec
	hookDuration *prometheus.HistogramVec
	hooksFailed  *prometheus.CounterVec
	modelTokens  *prometheus.CounterVec
	gateErrors   *prometheus.CounterVec
	requests     *prometheus.CounterVec
	spansDropped *prometheus.CounterVec

	models bounded[string]
	named  bounded[hookOf]
}

// NewMetrics makes the metrics with a registry of their own. policies says
// which agents are known: a label never comes from a caller.
func NewMetrics(policies *gate.Policies) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), policies: policies,
		limit:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "stopgate_evaluations_limit", Help: "Evaluations that may run at once; more are refused."}),
		build:       prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "stopgate_build_info", Help: "1, with the version."}, []string{"version"}),
		forced:      counter("stopgate_forced_total", "Allows that no hook gave: the loop was at its cap or its last turn, or the session has an override. Dry runs left out.", "agent", "event"),
		overridden:  counter("stopgate_overridden_total", "Stops that were let go unasked, by an override of their session.", "agent", "event"),
		hooks:       counter("stopgate_hooks_total", "Hooks of decisions, dry runs left out, by outcome before their failMode.", "agent", "hook", "type", "outcome"),
		hookSeconds: counter("stopgate_hook_seconds_total", "Time that hooks took, dry runs left out.", "agent", "hook"),
		modelCost:   counter("stopgate_model_cost_total", "What judges cost by the server file's prices, in their currency.", "model"),
		requestTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stopgate_http_request_duration_seconds", Help: "From a request's headers to the end of its answer, hooks and models included.",
			// The gate's own part is 10 ms at most; the last is more than a host waits.
			Buckets: []float64{.001, .0025, .005, .01, .025, .1, .5, 1, 5, 25, 60},
		}, []string{"route"}),
		storeTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stopgate_store_duration_seconds", Help: "How long the store took for an evaluation: commit, counts, activations or override; result is ok or error.",
			// A commit is one sync of a disk, shared; seconds are a store that hangs.
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .1, .5, 1, 5},
		}, []string{"operation", "result"}),
		decisions:    counter("stopgate_decisions_total", "Decisions, dry runs left out.", "agent", "event", "decision"),
		hooksFailed:  counter("stopgate_hooks_failed_total", "Hooks that gave no verdict, by what their failMode made of it.", "mode", "code"),
		modelTokens:  counter("stopgate_model_tokens_total", "Tokens that judges used; kind is prompt (cached ones included), cached or output.", "model", "kind"),
		gateErrors:   counter("stopgate_gate_errors_total", "Decisions during which the gate itself failed.", "code"),
		requests:     counter("stopgate_http_requests_total", "HTTP requests.", "route", "method", "status"),
		spansDropped: counter("stopgate_spans_dropped_total", "Spans of traces that the collector did not get.", "reason"),
		hookDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stopgate_hook_duration_seconds", Help: "How long one hook took.",
			// From a warm script to the longest timeout without a warning.
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}, []string{"type", "outcome"}),
	}
	for _, code := range gate.FailureCodes { // what alerts look for begins at 0: a first failure is a rise
		m.gateErrors.WithLabelValues(string(code))
		m.hooksFailed.WithLabelValues("open", string(code))
		m.hooksFailed.WithLabelValues("closed", string(code))
	}
	m.models.most, m.named.most = maxModels, maxHooks
	m.registry.MustRegister(m.decisions, m.hookDuration, m.hooksFailed, m.modelTokens, m.gateErrors, m.requests, m.spansDropped,
		m.limit, m.build, m.forced, m.overridden, m.hooks, m.hookSeconds, m.modelCost, m.requestTime, m.storeTime,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "stopgate_evaluations_in_flight", Help: "Evaluations that run now."},
			func() float64 { return float64(m.inFlight.Load()) }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

const other = "other"

// Observe counts one record. It is the Observe of a [gate.Gate].
func (m *Metrics) Observe(rec gate.Record) {
	if !rec.DryRun {
		m.decisions.WithLabelValues(m.agent(rec.Agent), eventLabel(rec.Event), string(rec.Outcome)).Inc()
		if rec.Forced {
			m.forced.WithLabelValues(m.agent(rec.Agent), eventLabel(rec.Event)).Inc()
		}
		if slices.ContainsFunc(rec.Hooks, func(v gate.Verdict) bool { return v.Has(gate.Overridden) }) {
			m.overridden.WithLabelValues(m.agent(rec.Agent), eventLabel(rec.Event)).Inc()
		}
	}
	if rec.GateError != nil {
		m.gateErrors.WithLabelValues(string(rec.GateError.Code)).Inc()
	}
	for i := range rec.Hooks {
		v := &rec.Hooks[i]
		if !rec.DryRun { // whose specs may name any hook
			m.hook(m.agent(rec.Agent), v)
		}
		if v.Outcome != gate.Skipped {
			m.hookDuration.WithLabelValues(string(v.Type), string(v.Outcome)).Observe(v.Duration.Seconds())
		}
		if v.Failure != nil {
			mode := "open"
			switch {
			case v.Shadow:
				mode = "shadow"
			case v.FailMode == gate.FailBlock:
				mode = "closed"
			}
			m.hooksFailed.WithLabelValues(mode, string(v.Failure.Code)).Inc()
		}
		if u := v.Usage; u != nil {
			model := m.model(v.Model)
			m.modelTokens.WithLabelValues(model, "prompt").Add(float64(u.PromptTokens))
			m.modelTokens.WithLabelValues(model, "cached").Add(float64(u.CachedTokens))
			m.modelTokens.WithLabelValues(model, "output").Add(float64(u.OutputTokens))
			m.modelCost.WithLabelValues(model).Add(max(u.Cost, 0))
		}
	}
}

// SpansDropped counts spans that were lost, by a reason of a short list.
func (m *Metrics) SpansDropped(reason string, spans int) {
	m.spansDropped.WithLabelValues(reason).Add(float64(spans))
}

// agent is the name if there is such an agent.
func (m *Metrics) agent(name string) string {
	if name == gate.DefaultAgent || m.policies.Find(gate.AgentSpec, name) != nil {
		return name
	}
	for _, d := range gate.Dialects {
		if m.policies.Find(gate.Attached(d), name) != nil {
			return name
		}
	}
	return other
}

func eventLabel(name gate.EventName) string {
	if name.Known() {
		return string(name)
	}
	return other
}

// hookOf is a hook as a series names it.
type hookOf struct{ agent, hook string }

// hook counts one hook of one agent.
func (m *Metrics) hook(agent string, v *gate.Verdict) {
	name := hookOf{agent, v.Name}
	if !m.named.has(name) {
		name = hookOf{other, other}
	}
	m.hooks.WithLabelValues(name.agent, name.hook, string(v.Type), string(v.Outcome)).Inc()
	if v.Outcome != gate.Skipped {
		m.hookSeconds.WithLabelValues(name.agent, name.hook).Add(v.Duration.Seconds())
	}
}

// How many models and hooks have series of their own, since the start: a spec may
// name any, and specs come and go.
const (
	maxModels = 100
	maxHooks  = 2000
)

func (m *Metrics) model(name string) string {
	if m.models.has(name) {
		return name
	}
	return other
}

// bounded is the first values of a label, so many and no more.
type bounded[V comparable] struct {
	most  int
	mu    sync.Mutex
	known map[V]bool
}

// has reports whether v is one of them, or becomes it.
func (b *bounded[V]) has(v V) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[v] || len(b.known) >= b.most {
		return b.known[v]
	}
	if b.known == nil {
		b.known = map[V]bool{}
	}
	b.known[v] = true
	return true
}

// request counts an answer. route is a pattern, empty where none matched.
func (m *Metrics) request(route, method string, status int, took time.Duration) {
	if route == "" {
		route = other
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions:
	default:
		method = other
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.requestTime.WithLabelValues(route).Observe(took.Seconds())
}

func (s *Server) getMetrics() echo.HandlerFunc {
	return echo.WrapHandler(promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
}
