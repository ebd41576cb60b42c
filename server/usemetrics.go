package server

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"stopgate/gate"
)

// Ledger is what a [gate.Gate] needs of a store.
type Ledger interface {
	gate.Ledger
	gate.Activations
	gate.Overrides
}

// Timed is a store that is measured.
func (m *Metrics) Timed(s Ledger) Ledger { return timed{s, m.storeTime} }

type timed struct {
	Ledger
	took *prometheus.HistogramVec
}

// Counts implements [gate.Ledger].
func (t timed) Counts(ctx context.Context, key gate.LedgerKey) (c gate.Counts, last gate.Erasure, err error) {
	defer t.observe("counts", time.Now(), &err)
	return t.Ledger.Counts(ctx, key)
}

// Commit implements [gate.Ledger].
func (t timed) Commit(ctx context.Context, c gate.Commit) (err error) {
	defer t.observe("commit", time.Now(), &err)
	return t.Ledger.Commit(ctx, c)
}

// Active implements [gate.Activations].
func (t timed) Active(ctx context.Context, session string) (switched map[string]bool, err error) {
	defer t.observe("activations", time.Now(), &err)
	return t.Ledger.Active(ctx, session)
}

// Override implements [gate.Overrides].
func (t timed) Override(ctx context.Context, session string) (o gate.Override, err error) {
	defer t.observe("override", time.Now(), &err)
	return t.Ledger.Override(ctx, session)
}

// observe takes a refusal, which is a [*gate.Error], for an answer: the store
// works.
func (t timed) observe(operation string, began time.Time, err *error) {
	result := "ok"
	if _, refused := errors.AsType[*gate.Error](*err); *err != nil && !refused {
		result = "error"
	}
	t.took.WithLabelValues(operation, result).Observe(time.Since(began).Seconds())
}

// ScriptUse is what command hooks take of the machine: how many have a slot, wait
// for one (Queued) and may have one, and how many were started, or could not be, since the start; how many of
// these had a sandbox that was started ahead (Warm), and what such sandboxes wait
// now, with how many bytes.
type ScriptUse struct {
	Running, Queued int
	Limit           int
	Started, Failed uint64
	Warm            uint64
	Waiting         int
	WaitingBytes    int64
}

// Scripts shows what command hooks take. It is called once.
func (m *Metrics) Scripts(use func() ScriptUse) {
	starts := func(result string, count func() uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "stopgate_script_starts_total",
			Help:        "Scripts whose process was started, in the sandbox where there is one, or failed to.",
			ConstLabels: prometheus.Labels{"result": result}}, func() float64 { return float64(count()) })
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	sandboxes := func(start string, count func(ScriptUse) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "stopgate_script_sandboxes_total",
			Help:        "Scripts that were started, by whether their sandbox was started ahead (warm) or for them (cold).",
			ConstLabels: prometheus.Labels{"start": start}}, func() float64 { return float64(count(use())) })
	}
	m.registry.MustRegister(
		gauge("stopgate_scripts_running", "Scripts that run now.", func() int { return use().Running }),
		gauge("stopgate_scripts_queued", "Scripts that wait for their turn, inside their own timeout.", func() int { return use().Queued }),
		gauge("stopgate_scripts_limit", "Scripts that may run at once.", func() int { return use().Limit }),
		sandboxes("warm", func(u ScriptUse) uint64 { return u.Warm }), sandboxes("cold", func(u ScriptUse) uint64 { return u.Started - u.Warm }),
		gauge("stopgate_script_sandboxes_waiting", "Sandboxes that were started ahead and have no script yet.", func() int { return use().Waiting }),
		gauge("stopgate_script_sandboxes_waiting_bytes", "Memory that these hold.", func() int { return int(use().WaitingBytes) }),
		starts("started", func() uint64 { return use().Started }), starts("failed", func() uint64 { return use().Failed }))
}
