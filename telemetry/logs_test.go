package telemetry

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	v1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"stopgate/gate"
)

// logCollector answers each request with answer.
func logCollector(t *testing.T, answer func(http.ResponseWriter)) (*Logs, *[]*collector.ExportLogsServiceRequest) {
	t.Helper()
	got := &[]*collector.ExportLogsServiceRequest{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/logs" || r.Header.Get("X-Key") != "secret" {
			t.Errorf("%s with key %q", r.URL.Path, r.Header.Get("X-Key"))
		}
		zipped, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(zipped)
		var said collector.ExportLogsServiceRequest
		if err != nil || proto.Unmarshal(body, &said) != nil {
			t.Errorf("request cannot be read (%v)", err)
		}
		*got = append(*got, &said)
		answer(w)
	}))
	t.Cleanup(s.Close)
	l, err := OpenLogs(t.Context(), LogOptions{Endpoint: s.URL + "/v1/logs", Headers: map[string]string{"X-Key": "secret"}, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, got
}

func partial(rejected int64) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		body, _ := proto.Marshal(&collector.ExportLogsServiceResponse{PartialSuccess: &collector.ExportLogsPartialSuccess{RejectedLogRecords: rejected, ErrorMessage: "too old"}})
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(body)
	}
}

func TestRecordsAreLogs(t *testing.T) {
	at := time.Date(2026, 5, 1, 2, 3, 4, 5, time.UTC)
	long := strings.Repeat("é", 400)
	records := []gate.Record{
		{Decision: gate.Decision{EvaluationID: "e1", Outcome: gate.Block}, Time: at, Agent: "builder", Session: long, Event: gate.Stop, Protocol: "native"},
		{Decision: gate.Decision{EvaluationID: "e2", Outcome: gate.Allow, Degraded: true}, Time: at, Event: gate.PreToolUse, Tool: "Bash", DryRun: true},
	}
	l, got := logCollector(t, func(http.ResponseWriter) {})
	for range 2 { // what was sent is not sent with the next
		if err := l.Send(t.Context(), records, [][]byte{[]byte(`{"evaluation_id":"e1"}` + "\n"), []byte(`{"evaluation_id":"e2"}` + "\n")}); err != nil {
			t.Fatal(err)
		}
	}
	type entry struct {
		Body, Event, Severity string
		At                    uint64
		Attributes            map[string]string
	}
	for _, request := range *got {
		var entries []entry
		for _, r := range request.ResourceLogs[0].ScopeLogs[0].LogRecords {
			e := entry{r.Body.GetStringValue(), r.EventName, r.SeverityText, r.TimeUnixNano, map[string]string{}}
			for _, a := range r.Attributes {
				e.Attributes[a.Key] = a.Value.GetStringValue()
				if b, is := a.Value.Value.(*v1.AnyValue_BoolValue); is && b.BoolValue {
					e.Attributes[a.Key] = "true"
				}
			}
			entries = append(entries, e)
		}
		want := []entry{
			{`{"evaluation_id":"e1"}`, "stopgate.evaluation", "INFO", uint64(at.UnixNano()), map[string]string{"stopgate.evaluation_id": "e1", "stopgate.decision": "block",
				"stopgate.event": "Stop", "stopgate.protocol": "native", "gen_ai.agent.name": "builder", "gen_ai.conversation.id": strings.Repeat("é", textLength/2),
				"stopgate.dry_run": "", "stopgate.forced": "", "stopgate.degraded": ""}},
			{`{"evaluation_id":"e2"}`, "stopgate.evaluation", "WARN", uint64(at.UnixNano()), map[string]string{"stopgate.evaluation_id": "e2", "stopgate.decision": "allow",
				"stopgate.event": "PreToolUse", "gen_ai.tool.name": "Bash", "stopgate.dry_run": "true", "stopgate.forced": "", "stopgate.degraded": "true"}},
		}
		if diff := cmp.Diff(want, entries); diff != "" {
			t.Errorf("logs (-want +got):\n%s", diff)
		}
	}
	if len(*got) != 2 {
		t.Errorf("%d requests, want 2", len(*got))
	}
}

// TestOnlyWhatTheCollectorHasIsConfirmed: a part that it did not take is a
// failure, whatever the status.
func TestOnlyWhatTheCollectorHasIsConfirmed(t *testing.T) {
	status := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(code) }
	}
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter)
		want   string // in the error; empty: none
	}{
		{"all of it", status(200), ""},
		{"accepted", status(202), ""},
		{"all of it, with a warning", partial(0), ""},
		{"not one of them", partial(1), "did not take 1 of the records"},
		{"too many requests", status(429), "429"},
		{"refused", status(400), "400"},
		{"down", status(503), "503"},
		{"elsewhere", func(w http.ResponseWriter) {
			w.Header().Set("Location", "/v1/logs")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "307"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, got := logCollector(t, c.answer)
			err := l.Send(t.Context(), []gate.Record{{Decision: gate.Decision{EvaluationID: "e"}}}, [][]byte{[]byte("{}\n")})
			if (err != nil) != (c.want != "") {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			var refusal interface{ RecordsAtFault() bool }
			if fault := errors.As(err, &refusal) && refusal.RecordsAtFault(); fault != (c.name == "refused" || c.name == "not one of them") {
				t.Errorf("the records are at fault: %v", fault)
			}
			if len(*got) != 1 {
				t.Errorf("%d requests, want 1: whoever sends tries again", len(*got))
			}
		})
	}
}
