package main

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// otlp is a collector that keeps what it gets.
type otlp struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*v1.Span
	raw     []byte // every request's body, inflated
	headers []http.Header
}

func newOTLP(t testing.TB) *otlp {
	t.Helper()
	o := &otlp{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := gzip.NewReader(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			http.Error(w, "not OTLP", http.StatusBadRequest)
			return
		}
		raw, _ := io.ReadAll(body)
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(raw, &request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.raw = append(o.raw, raw...)
		o.headers = append(o.headers, r.Header)
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				o.spans = append(o.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(o.Close)
	return o
}

// wait is the spans once there are that many, by their names; those of one name
// in the order of their start.
func (o *otlp) wait(t *testing.T, n int) map[string][]*v1.Span {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		o.mu.Lock()
		spans := slices.Clone(o.spans)
		o.mu.Unlock()
		if len(spans) < n && time.Now().Before(end) {
			continue
		}
		if len(spans) != n {
			t.Fatalf("%d spans, want %d: %v", len(spans), n, spans)
		}
		slices.SortFunc(spans, func(a, b *v1.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
		named := map[string][]*v1.Span{}
		for _, s := range spans {
			named[s.Name] = append(named[s.Name], s)
		}
		return named
	}
}

// attributesOf is a span's attributes as text.
func attributesOf(s *v1.Span) map[string]string {
	m := map[string]string{}
	for _, kv := range s.Attributes {
		switch text := kv.Value.String(); {
		case kv.Value.GetArrayValue() != nil:
			var list []string
			for _, v := range kv.Value.GetArrayValue().Values {
				list = append(list, v.GetStringValue())
			}
			m[kv.Key] = strings.Join(list, ",")
		default:
			_, value, _ := strings.Cut(text, ":")
			m[kv.Key] = strings.Trim(value, `"`)
		}
	}
	return m
}

const (
	traceID  = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentID = "00f067aa0ba902b7"
	// secretive is a text that every place of a conversation is filled with: none of
	// it may be in a trace.
	secretive = "sk-do-not-tell"
)

const tracedSpec = `{"name":"traced","properties":{"hooks":{"Stop":[
	{"type":"prompt","prompt":"Is it done? ` + secretive + `","name":"judge"},
	{"type":"command","script":"#!/bin/bash\necho ` + secretive + ` >&2; exit 2","name":"script"}]}}}`

func tracedService(t *testing.T, o *otlp, more string) *service {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stopgate.yaml")
	text := fmt.Sprintf("sandbox: {mode: process}\ntelemetry: {endpoint: %q%s}\n", o.URL, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServiceWith(t, t.TempDir(), file)
	if status, answer := s.do(http.MethodPut, agents+"traced", "application/json", []byte(tracedSpec)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	return s
}

// stopOf asks about a Stop, with a trace of the caller's unless that is empty.
func (s *service) stopOf(t *testing.T, traceparent string) {
	t.Helper()
	body := `{"hook_event_name":"Stop","agent_name":"traced","session_id":"s1","final_output":"` + secretive + `","transcript":"user: ` + secretive + `\n"}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/evaluate", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if traceparent != "" {
		req.Header.Set("Traceparent", traceparent)
		req.Header.Set("Tracestate", "vendor="+secretive)
		req.Header.Set("Baggage", "user="+secretive)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
}

func TestTraces(t *testing.T) {
	o := newOTLP(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := tracedService(t, o, fmt.Sprintf(", headers: {X-Key: abc}, header_files: {X-Scope: %q}", key))
	s.answer = func(string) string {
		return `{"ok":false,"reason":"` + secretive + `"}`
	}
	s.stopOf(t, "00-"+traceID+"-"+parentID+"-01")
	spans := o.wait(t, 4)
	evaluation, judge, script, model := spans["evaluate Stop"], spans["hook prompt"], spans["hook command"], spans["generate_content gemini-3.6-flash"]
	if len(evaluation)*len(judge)*len(script)*len(model) != 1 {
		t.Fatalf("spans: %v", spans)
	}
	t.Run("the caller's trace", func(t *testing.T) {
		for _, c := range []struct{ span, parent string }{
			{"evaluate Stop", parentID}, {"hook prompt", hex.EncodeToString(evaluation[0].SpanId)}, {"hook command", hex.EncodeToString(evaluation[0].SpanId)},
			{"generate_content gemini-3.6-flash", hex.EncodeToString(judge[0].SpanId)},
		} {
			got := spans[c.span][0]
			if hex.EncodeToString(got.TraceId) != traceID || hex.EncodeToString(got.ParentSpanId) != c.parent {
				t.Errorf("%s is in trace %x under %x, want %s under %s", c.span, got.TraceId, got.ParentSpanId, traceID, c.parent)
			}
		}
	})
	for _, c := range []struct {
		span *v1.Span
		want map[string]string
	}{
		{evaluation[0], map[string]string{"stopgate.event": "Stop", "stopgate.protocol": "native", "gen_ai.agent.name": "traced", "gen_ai.conversation.id": "s1",
			"stopgate.dry_run": "false", "stopgate.decision": "block", "stopgate.forced": "false", "stopgate.degraded": "false", "stopgate.hooks": "2", "stopgate.stop_rejection_count": "1"}},
		{judge[0], map[string]string{"stopgate.hook.name": "judge", "stopgate.hook.type": "prompt", "stopgate.hook.level": "custom", "stopgate.hook.dialect": "azure",
			"stopgate.hook.fail_mode": "allow", "stopgate.hook.outcome": "block"}},
		{script[0], map[string]string{"stopgate.hook.name": "script", "stopgate.hook.type": "command", "stopgate.hook.level": "custom", "stopgate.hook.dialect": "azure",
			"stopgate.hook.fail_mode": "allow", "stopgate.hook.outcome": "block", "process.exit.code": "2"}},
		{model[0], map[string]string{"gen_ai.operation.name": "generate_content", "gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "gemini-3.6-flash",
			"gen_ai.usage.input_tokens": "100", "gen_ai.usage.output_tokens": "7", "gen_ai.usage.cache_read.input_tokens": "0", "gen_ai.response.finish_reasons": "stop"}},
	} {
		t.Run(c.span.Name, func(t *testing.T) {
			got := attributesOf(c.span)
			if c.span == evaluation[0] && got["stopgate.evaluation_id"] == "" {
				t.Error("the evaluation has no id")
			}
			delete(got, "stopgate.evaluation_id")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if c.span.Status.GetCode() == v1.Status_STATUS_CODE_ERROR {
				t.Error("a no is an error")
			}
		})
	}
	t.Run("no text of the conversation's", func(t *testing.T) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if strings.Contains(string(o.raw), secretive) {
			t.Errorf("the collector was told it:\n%q", o.raw)
		}
	})
	t.Run("headers", func(t *testing.T) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if h := o.headers[0]; h.Get("X-Key") != "abc" || h.Get("X-Scope") != "from-a-file" {
			t.Errorf("headers are %v", h)
		}
	})
}

// TestTracesSample: a caller that keeps no trace is heeded, one that sends
// nonsense begins a new one.
func TestTracesSample(t *testing.T) {
	o := newOTLP(t)
	s := tracedService(t, o, "")
	s.stopOf(t, "00-"+traceID+"-"+parentID+"-00")
	s.stopOf(t, "00-"+strings.Repeat("0", 32)+"-"+parentID+"-01")
	evaluations := o.wait(t, 4)["evaluate Stop"] // of the second alone
	if len(evaluations) != 1 || len(evaluations[0].ParentSpanId) != 0 {
		t.Errorf("evaluations: %v", evaluations)
	}
}

// TestTracesOfAHost: the failure of a script is an error of its span, and an
// unknown agent one of the evaluation's.
func TestTracesOfAHost(t *testing.T) {
	o := newOTLP(t)
	s := tracedService(t, o, "")
	spec := strings.ReplaceAll(tracedSpec, "exit 2", "exit 7")
	if status, answer := s.do(http.MethodPut, agents+"traced", "application/json", []byte(spec)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	payload := `{"hook_event_name":"Stop","session_id":"s","cwd":"/","last_assistant_message":"` + secretive + `"}`
	for _, agent := range []string{"traced", "nobody"} {
		if status, answer := s.do(http.MethodPost, "/v1/hooks/claude-code?agent="+agent, "application/json", []byte(payload)); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
	}
	spans := o.wait(t, 5)
	for what, c := range map[string]struct {
		span *v1.Span
		want string
	}{
		"the script":           {spans["hook command"][0], "nonzero_exit"},
		"the evaluation":       {spans["evaluate Stop"][0], ""},
		"of an unknown agent":  {spans["evaluate Stop"][1], "unknown_agent"},
		"the judge's question": {spans["generate_content gemini-3.6-flash"][0], ""},
	} {
		failed := c.span.Status.GetCode() == v1.Status_STATUS_CODE_ERROR
		if got := attributesOf(c.span)["error.type"]; got != c.want || failed != (c.want != "") || c.span.Status.GetMessage() != "" {
			t.Errorf("%s: error.type %q, status %v, want %q", what, got, c.span.Status, c.want)
		}
	}
}

// TestTracesAreLostNotDecisions: a collector that is dead, or takes all the time in
// the world, changes no answer, and what it does not get is counted.
func TestTracesAreLostNotDecisions(t *testing.T) {
	lost := func(t *testing.T, s *service, series string) {
		t.Helper()
		var metrics []byte
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if _, metrics = s.do(http.MethodGet, "/metrics", "", nil); strings.Contains(string(metrics), series+"\n") {
				return
			}
		}
		t.Errorf("metrics lack %s:\n%s", series, metrics)
	}
	t.Run("dead", func(t *testing.T) {
		o := newOTLP(t)
		o.Close()
		s := tracedService(t, o, "")
		s.stopOf(t, "")
		lost(t, s, `stopgate_spans_dropped_total{reason="not_taken"} 4`)
	})
	t.Run("slow", func(t *testing.T) {
		o, over := &otlp{}, make(chan struct{})
		o.Server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
		t.Cleanup(o.Close)
		t.Cleanup(func() { close(over) })
		s := tracedService(t, o, ", queue: 1")
		s.stopOf(t, "")
		lost(t, s, `stopgate_spans_dropped_total{reason="queue_full"} 3`)
	})
}

func TestTracesAreRefusedAtTheStart(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"no file of a header":   {"telemetry: {endpoint: \"http://127.0.0.1:1\", header_files: {X-Key: /nowhere}}\n", "telemetry.header_files.X-Key"},
		"a header of two lines": {"telemetry: {endpoint: \"http://127.0.0.1:1\", header_files: {X-Key: stopgate.yaml}}\nhttp: {}\n", "a header may not have"},
		"no certificate":        {"telemetry: {endpoint: \"http://127.0.0.1:1\", ca_file: stopgate.yaml}\n", "telemetry.ca_file"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stopgate.yaml")
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			p := process{ctx: t.Context(), getenv: func(string) string { return "" }}
			cfg, err := loadConfig(p, file, overrides{data: t.TempDir(), sandbox: "off"})
			if err != nil {
				t.Fatal(err)
			}
			_, app, err := newServer(p, cfg, nil, "127.0.0.1:1")
			if err == nil {
				_ = app.close()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q lacks %q", err, c.want)
			}
		})
	}
}

func TestProfilesAreForThisMachine(t *testing.T) {
	for _, c := range []struct {
		name, host, path, origin string
		want                     int
	}{
		{"its address", "127.0.0.1:6060", "/debug/pprof/heap", "", 200},
		{"its name", "localhost:6060", "/debug/pprof/", "", 200},
		{"without a port", "[::1]", "/debug/pprof/symbol", "", 200},
		{"another name that leads here", "rebound.example:6060", "/debug/pprof/heap", "", 403},
		{"a web page", "127.0.0.1:6060", "/debug/pprof/heap", "http://127.0.0.1:8000", 403},
		{"the command line", "127.0.0.1:6060", "/debug/pprof/cmdline", "", 404},
		{"nothing else", "127.0.0.1:6060", "/", "", 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, c.path, nil)
			r.Host = c.host
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			w := httptest.NewRecorder()
			profiles().ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%d, want %d", w.Code, c.want)
			}
		})
	}
	t.Run("served", func(t *testing.T) {
		web, err := serveProfiles("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := web.Close(); err != nil {
			t.Error(err)
		}
	})
}
