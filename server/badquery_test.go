package server

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"stopgate/gate"
)

// TestABadQuerySwitchesNoHookOff: with on_gate_error at its default what is wrong in
// a URL would otherwise be a way round the gate. Where the agent is named once its
// hooks are asked; else those of the agent level, which are every agent's.
func TestABadQuerySwitchesNoHookOff(t *testing.T) {
	for _, c := range []struct {
		query, refuses string // refuses: the hook that does
		asked          []string
		want           string
		agent          string
	}{
		{"agent=marker&utm=1", "ends", []string{"ends", "level"}, "block", "marker"},
		{"agent=marker&utm=1", "level", []string{"ends", "level"}, "block", "marker"},
		{"agent=marker&deadline=5s", "ends", []string{"ends", "level"}, "block", "marker"},
		{"agent=marker&utm=1", "", []string{"ends", "level"}, "allow", "marker"},
		{"agnet=marker", "level", []string{"level"}, "block", "default"},
		{"agent=marker&agent=marker", "level", []string{"level"}, "block", "default"},
		{"agent=", "level", []string{"level"}, "block", "default"},
		{"agent=marker;deadline=1", "level", []string{"level"}, "block", "default"},
		{"agent=%zz", "level", []string{"level"}, "block", "default"},
	} {
		t.Run(c.query+" "+c.refuses, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true } })
			w.agent(t, "marker", gate.Stop, "ends")
			w.must(t, 202, "PUT", "/api/v2/extendedAgent/hooks/level", `{"name":"level","type":"GlobalHook","properties":{"eventType":"Stop"}}`)
			var mu sync.Mutex
			var asked []string
			w.judge = func(_ context.Context, in gate.Input) gate.Verdict {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, in.Hook.Name)
				if in.Hook.Name == c.refuses {
					return gate.Verdict{Outcome: gate.Block, Reason: "no"}
				}
				return gate.Verdict{Outcome: gate.Allow}
			}
			got := w.must(t, 200, "POST", "/v1/hooks/plain?session=s&"+c.query, "{}").Body.String()
			if want := `{"decision":"` + c.want + `"}`; got != want {
				t.Errorf("answer %s, want %s", got, want)
			}
			slices.Sort(asked)
			if !slices.Equal(asked, c.asked) {
				t.Errorf("asked were %q, want %q", asked, c.asked)
			}
			if len(w.store.records) != 1 {
				t.Fatalf("%d records", len(w.store.records))
			}
			rec := w.store.records[0]
			if rec.GateError == nil || rec.GateError.Code != gate.BadQuery || !rec.Degraded || rec.Agent != c.agent {
				t.Errorf("recorded is %+v", rec)
			}
			if metrics := w.must(t, 200, "GET", "/metrics", "").Body.String(); !strings.Contains(metrics, `stopgate_gate_errors_total{code="bad_query"} 1`) {
				t.Error("it is not counted")
			}
			if !strings.Contains(w.log.String(), "bad_query") {
				t.Errorf("it is not logged: %s", w.log)
			}
		})
	}
}
