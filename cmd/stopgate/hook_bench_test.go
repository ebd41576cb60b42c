package main

import (
	"bytes"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkHook runs `stopgate hook` as a host does, a process for each call,
// against a local server, in turns with the least client there could be.
// hook-p50-ms is a cold call with its round trip.
func BenchmarkHook(b *testing.B) {
	s := newService(b)
	spec := `{"name":"bench","properties":{"hooks":{"PostToolUse":[{"type":"command","matcher":"Write","command":"true"}]}}}`
	if status, answer := s.do(http.MethodPut, agents+"bench", "application/json", []byte(spec)); status != http.StatusAccepted {
		b.Fatalf("%d %s", status, answer)
	}
	dir := b.TempDir()
	for name, pkg := range map[string]string{"stopgate": ".", "minimal": "./testdata/minimal"} {
		if out, err := exec.CommandContext(b.Context(), "go", "build", "-ldflags", "-s -w", "-o", filepath.Join(dir, name), pkg).CombinedOutput(); err != nil {
			b.Fatalf("%v %s", err, out)
		}
	}
	payload := []byte(`{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"},"tool_response":{"stdout":"a"}}`)
	call := func(name string, args ...string) time.Duration {
		cmd := exec.CommandContext(b.Context(), filepath.Join(dir, name), args...)
		cmd.Stdin = bytes.NewReader(payload)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v %s", err, out)
		}
		return time.Since(began)
	}
	var hook, minimal []time.Duration
	for b.Loop() {
		hook = append(hook, call("stopgate", "hook", "--protocol", "claude-code", "--agent", "bench", "--server", s.url))
		minimal = append(minimal, call("minimal", s.url+"/v1/hooks/claude-code?agent=bench"))
	}
	b.ReportMetric(p50(hook), "hook-p50-ms")
	b.ReportMetric(p50(minimal), "minimal-p50-ms")
	b.ReportMetric(p50(hook)/p50(minimal), "ratio")
}

// p50 is the median in milliseconds.
func p50(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds()) / 1000
}
