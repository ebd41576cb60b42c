package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"stopgate/gate"
)

// SinkState is how far a sink of records is: what the store holds for it, and what
// this process has done.
type SinkState struct {
	gate.SinkState
	Delivered, Failures uint64
}

// Export shows how far the sinks are. It is called once; states has the same
// sinks each time.
func (m *Metrics) Export(states func() []SinkState) {
	m.registry.MustRegister(exported{states: states})
}

// exported collects the sinks' states as of one moment.
type exported struct{ states func() []SinkState }

var (
	exportDelivered = sinkSeries("delivered_total", "Records that the sink has taken from this process.")
	exportFailures  = sinkSeries("failures_total", "Times that the sink did not take a batch of records: they are sent again.")
	exportDropped   = sinkSeries("dropped_total", "Records that the retention deleted before the sink had them, over all replicas.")
	exportPending   = sinkSeries("pending", "Records that the sink does not have yet, over all replicas.")
	exportAside     = sinkSeries("set_aside", "Records that the sink refuses and that are set aside, over all replicas.")
	exportOldest    = sinkSeries("oldest_seconds", "Age of the oldest of them; 0: there is none.")
)

func sinkSeries(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("stopgate_export_"+name, help, []string{"sink"}, nil)
}

// Describe implements [prometheus.Collector].
func (exported) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{exportDelivered, exportFailures, exportDropped, exportPending, exportAside, exportOldest} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (e exported) Collect(to chan<- prometheus.Metric) {
	for _, s := range e.states() {
		show := func(d *prometheus.Desc, kind prometheus.ValueType, value float64) {
			to <- prometheus.MustNewConstMetric(d, kind, value, s.Name)
		}
		show(exportDelivered, prometheus.CounterValue, float64(s.Delivered))
		show(exportFailures, prometheus.CounterValue, float64(s.Failures))
		show(exportDropped, prometheus.CounterValue, float64(s.Dropped))
		show(exportPending, prometheus.GaugeValue, float64(s.Pending))
		show(exportAside, prometheus.GaugeValue, float64(s.Aside))
		age := 0.0
		if !s.Oldest.IsZero() {
			age = max(0, time.Since(s.Oldest).Seconds())
		}
		show(exportOldest, prometheus.GaugeValue, age)
	}
}
