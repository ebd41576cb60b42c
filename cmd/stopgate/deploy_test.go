package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown is what a service shows on /metrics: each metric with the labels that its
// series have.
func shown(t *testing.T, s *service) map[string]map[string]bool {
	t.Helper()
	status, text := s.do(http.MethodGet, "/metrics", "", nil)
	if status != http.StatusOK {
		t.Fatalf("%d", status)
	}
	series, label := regexp.MustCompile(`(?m)^([a-z_]+)(\{.*\})? `), regexp.MustCompile(`[{,]([a-z_]+)="`)
	metrics := map[string]map[string]bool{}
	for _, m := range series.FindAllStringSubmatch(string(text), -1) {
		if metrics[m[1]] == nil {
			metrics[m[1]] = map[string]bool{"instance": true, "job": true} // a scrape adds them
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			metrics[m[1]][l[1]] = true
		}
	}
	return metrics
}

// everyMetric is a service that has counted something of everything.
func everyMetric(t *testing.T) map[string]map[string]bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stopgate.yaml")
	if err := os.WriteFile(file, []byte("sandbox: {mode: process}\ntelemetry: {endpoint: \"http://127.0.0.1:1\"}\nexport: {sinks: {archive: {kind: file, path: records.ndjson}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServiceWith(t, t.TempDir(), file)
	if status, answer := s.do(http.MethodPut, agents+"traced", "application/json", []byte(tracedSpec)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	for _, turn := range []int{1, 9} { // the second is the last: a forced allow
		s.evaluate(fmt.Sprintf(`{"hook_event_name":"Stop","agent_name":"traced","session_id":"s","current_turn":%d,"max_turns":9}`, turn))
	}
	return shown(t, s)
}

var (
	// ofExpr is a metric in an expression, with its matchers.
	ofExpr   = regexp.MustCompile(`\b((?:stopgate|process|go)_[a-z_]+)(?:\{([^}]*)\})?`)
	matchers = regexp.MustCompile(`(?:^|,)\s*([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// faultsOf is what of an expression no series has.
func faultsOf(expr string, metrics map[string]map[string]bool) (faults []string) {
	labels := map[string]bool{}
	for _, m := range ofExpr.FindAllStringSubmatch(expr, -1) {
		has, known := metrics[m[1]]
		if !known {
			faults = append(faults, "no metric "+m[1])
			continue
		}
		for label := range has {
			labels[label] = true
		}
		for _, l := range matchers.FindAllStringSubmatch(m[2], -1) {
			if !has[l[1]] {
				faults = append(faults, m[1]+" has no label "+l[1])
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			if label = strings.TrimSpace(label); !labels[label] {
				faults = append(faults, "none of its metrics has a label "+label)
			}
		}
	}
	return faults
}

// TestDashboardAndAlertsNameMetricsThatExist: a metric that was renamed would leave an
// empty panel, and an alert that never fires.
func TestDashboardAndAlertsNameMetricsThatExist(t *testing.T) {
	metrics := everyMetric(t)
	check := func(t *testing.T, where, expr string) {
		t.Helper()
		for _, fault := range faultsOf(expr, metrics) {
			t.Errorf("%s: %s", where, fault)
		}
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	t.Run("dashboard", func(t *testing.T) {
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
			Templating struct {
				List []struct{ Name, Definition string }
			}
		}
		if err := json.Unmarshal(read("grafana/stopgate.json"), &dashboard); err != nil {
			t.Fatal(err)
		}
		exprs := 0
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				exprs++
				check(t, p.Title, target.Expr)
			}
		}
		for _, v := range dashboard.Templating.List {
			check(t, v.Name, v.Definition)
		}
		if exprs < 20 {
			t.Errorf("%d expressions were looked at", exprs)
		}
	})
	t.Run("alerts", func(t *testing.T) {
		// An expression is the rest of its line, or the lines that are indented
		// further.
		expr := regexp.MustCompile(`(?m)^ {6}- alert: (\w+)\n {8}expr: ((?:\|\n(?: {10}.*\n)+)|.*\n)`)
		text := string(read("prometheus/stopgate.rules.yaml"))
		rules := expr.FindAllStringSubmatch(text, -1)
		if len(rules) != strings.Count(text, "- alert:") || len(rules) == 0 {
			t.Fatalf("%d of %d rules were found", len(rules), strings.Count(text, "- alert:"))
		}
		for _, m := range rules {
			check(t, m[1], m[2])
		}
	})
	t.Run("a fault is found", func(t *testing.T) {
		for expr, want := range map[string]int{
			`sum by (agent) (rate(stopgate_decisions_total{decision="block"}[5m]))`: 0,
			`rate(stopgate_decisons_total[5m])`:                                     1,
			`rate(stopgate_decisions_total{outcome!="block"}[5m])`:                  1,
			`sum by (agent, hook) (rate(stopgate_decisions_total[5m]))`:             1,
		} {
			if got := faultsOf(expr, metrics); len(got) != want {
				t.Errorf("%s: %q", expr, got)
			}
		}
	})
}

// TestAlertsFire has Prometheus' own tool play the rules against series.
func TestAlertsFire(t *testing.T) {
	promtool := tool(t, "promtool", "Debian: prometheus")
	cmd := exec.CommandContext(t.Context(), promtool, "test", "rules", "stopgate.rules.promtool.yaml")
	cmd.Dir = filepath.Join("..", "..", "deploy", "prometheus")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
