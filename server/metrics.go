package server

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

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

	decisions    *prometheus.CounterVec
	hookDuration *prometheus.HistogramVec
	hooksFailed  *prometheus.CounterVec
	modelTokens  *prometheus.CounterVec
	gateErrors   *prometheus.CounterVec
	requests     *prometheus.CounterVec
	spansDropped *prometheus.CounterVec

	mu     sync.Mutex
	models map[string]bool // that have a series
}

// NewMetrics makes the metrics with a registry of their own. policies says
// which agents are known: a label never comes from a caller.
func NewMetrics(policies *gate.Policies) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), policies: policies, models: map[string]bool{},
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
	m.registry.MustRegister(m.decisions, m.hookDuration, m.hooksFailed, m.modelTokens, m.gateErrors, m.requests, m.spansDropped,
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
	}
	if rec.GateError != nil {
		m.gateErrors.WithLabelValues(string(rec.GateError.Code)).Inc()
	}
	for i := range rec.Hooks {
		v := &rec.Hooks[i]
		if v.Outcome != gate.Skipped {
			m.hookDuration.WithLabelValues(string(v.Type), string(v.Outcome)).Observe(v.Duration.Seconds())
		}
		if v.Failure != nil {
			mode := "open"
			if v.FailMode == gate.FailBlock {
				mode = "closed"
			}
			m.hooksFailed.WithLabelValues(mode, string(v.Failure.Code)).Inc()
		}
		if u := v.Usage; u != nil {
			model := m.model(v.Model)
			m.modelTokens.WithLabelValues(model, "prompt").Add(float64(u.PromptTokens))
			m.modelTokens.WithLabelValues(model, "cached").Add(float64(u.CachedTokens))
			m.modelTokens.WithLabelValues(model, "output").Add(float64(u.OutputTokens))
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

// maxModels bounds the series: a spec may name any model.
const maxModels = 100

func (m *Metrics) model(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.models[name] {
		if len(m.models) >= maxModels {
			return other
		}
		m.models[name] = true
	}
	return name
}

// request counts an answer. route is a pattern, empty where none matched.
func (m *Metrics) request(route, method string, status int) {
	if route == "" {
		route = other
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions:
	default:
		method = other
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
}

func (s *Server) getMetrics() echo.HandlerFunc {
	return echo.WrapHandler(promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
}
