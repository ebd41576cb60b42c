package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// Dry runs are nobody's work, from wherever the evaluations are.
func TestReplayLeavesDryRunsOut(t *testing.T) {
	s, data := pastWorld(t)
	s.evaluate(bash)
	dry := `{"spec":` + judgedSpec + `,` + strings.TrimPrefix(bash, "{")
	if status, body := s.do(http.MethodPost, "/v1/dry-run", "application/json", []byte(dry)); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	all := s.export()
	if n := strings.Count(all, "\n"); n != 2 {
		t.Fatalf("%d evaluations are recorded, want 2", n)
	}
	draft := fileOf(t, "draft.json", judgedSpec)
	for name, from := range map[string][]string{"server": nil, "data directory": {"--data", data}, "export": {"--from", fileOf(t, "export.ndjson", all)}} {
		if r := s.report(append(from, "-f", draft)...); r.Found != 1 || r.Replayed != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// On-demand hooks are asked where the session had them switched on, with
// --all-active everywhere.
func TestReplayAllActive(t *testing.T) {
	s, _ := pastWorld(t)
	hook := `{"type":"GlobalHook","name":"strict","properties":{"eventType":"PreToolUse","activationMode":"onDemand",
	"hook":{"type":"rule","matcher":"Bash","rules":[{"if":"true","then":"block","reason":"no"}]}}}`
	if status, body := s.do(http.MethodPut, "/api/v2/extendedAgent/hooks/strict", "application/json", []byte(hook)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	s.evaluate(bash)
	draft := fileOf(t, "draft.json", hook)
	if r := s.report("-f", draft); r.Replayed != 1 || len(r.Decisions) > 0 {
		t.Errorf("not switched on: %+v", r)
	}
	if r := s.report("-f", draft, "--all-active"); r.Decisions["allow→block"] != 1 {
		t.Errorf("--all-active: %+v", r)
	}
	if status, body := s.do(http.MethodPost, "/api/v1/threads/s/hooks/strict/activate", "application/json", nil); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	s.evaluate(bash)
	if r := s.report("-f", draft, "--limit", "1"); r.Replayed != 1 || r.Hooks["strict"] == nil || len(r.Decisions) > 0 {
		t.Errorf("switched on: %+v", r)
	}
}

// A server's budget for a day is not about what is asked again.
func TestReplayHasNoDailyBudget(t *testing.T) {
	s, _ := pastWorld(t)
	s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","final_output":"x"}`)
	draft := fileOf(t, "draft.json", `{"name":"a","properties":{"hooks":{"Stop":[{"name":"one","prompt":"Is it done?"},{"name":"two","prompt":"Is it right?"}]}}}`)
	cfg := fileOf(t, "stopgate.yaml", "limits: {agent_daily_tokens: 1, parallel_hooks: 1}\n") // one judge after the other
	s.asked()
	r := s.report("-f", draft, "--config", cfg)
	if n := len(s.asked()); n != 2 || r.Replayed != 1 || len(r.Obstacles) > 0 {
		t.Errorf("the model was asked %d times: %+v", n, r)
	}
}

// What an old record does not say of the moment before it is taken from what came
// of it.
func TestPastOfOldRecords(t *testing.T) {
	hooks := []gate.Verdict{{Name: "everyone's", Level: gate.AgentLevel}, {Name: "its own", Level: gate.CustomLevel}}
	record := func(event gate.EventName, outcome gate.Outcome, next int) gate.Record {
		var r gate.Record
		r.Event, r.Outcome, r.StopRejectionCount, r.Hooks = event, outcome, next, hooks
		return r
	}
	for _, tt := range []struct {
		name   string
		record gate.Record
		counts gate.Counts
	}{
		{"the second rejection", record(gate.Stop, gate.Block, 2), gate.Counts{StopRejections: 1, PromptRejections: 1}},
		{"the first", record(gate.Stop, gate.Block, 1), gate.Counts{}},
		{"one that was not counted", record(gate.Stop, gate.Block, 0), gate.Counts{}},
		{"of a sub-agent", record(gate.SubagentStop, gate.Block, 3), gate.Counts{StopRejections: 2, PromptRejections: 2}},
		{"an allow", record(gate.Stop, gate.Allow, 0), gate.Counts{}},
		{"a tool that was refused between rejections", record(gate.PreToolUse, gate.Block, 2), gate.Counts{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPast(tt.record)
			counts, _, err := p.Counts(t.Context(), gate.LedgerKey{})
			if diff := cmp.Diff(tt.counts, counts); diff != "" || err != nil {
				t.Error(err, diff)
			}
			switched, err := p.Active(t.Context(), "s")
			if diff := cmp.Diff(map[string]bool{"everyone's": true}, switched); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

// Rows whose hooks saw marks in the place of secrets say so, and no others.
func TestReplayMarksRedactedRows(t *testing.T) {
	s, _ := pastWorld(t)
	s.evaluate(strings.Replace(bash, "ls", "echo ghp_abcdefghijklmnopqrstuvwxyz0123456789 -delete", 1))
	s.evaluate(strings.Replace(bash, "ls", "find / -delete", 1))
	code, out, errs := s.replayed(t.Context(), "-f", fileOf(t, "draft.json", stricterSpec), "--redacted")
	for _, want := range []string{"PreToolUse Bash  allow→block (redacted)\n", "PreToolUse Bash  allow→block\n", "in 1 of them hooks saw marks"} {
		if !strings.Contains(out, want) {
			t.Errorf("exit %d: no %q in\n%s%s", code, want, out, errs)
		}
	}
}

// A file that is no export is not printed line by line.
func TestReplayNamesTheFirstBadLines(t *testing.T) {
	s, _ := pastWorld(t)
	s.evaluate(bash)
	export, draft := fileOf(t, "export.ndjson", strings.Repeat("{\n", maxBadLines+3)+s.export()), fileOf(t, "draft.json", judgedSpec)
	_, out, _ := s.replayed(t.Context(), "-f", draft, "--from", export)
	last := fmt.Sprintf("Not replayed for bad_line, line %d: ", maxBadLines)
	if n := strings.Count(out, "Not replayed for bad_line"); n != maxBadLines || !strings.Contains(out, last) || !strings.Contains(out, "\nand 3 lines more\n") {
		t.Errorf("%d lines are named:\n%s", n, out)
	}
	_, out, _ = s.replayed(t.Context(), "-f", draft, "--from", export, "--json")
	var r replayReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Obstacles[badLine] != maxBadLines+3 {
		t.Errorf("%v: --json has not all: %s", err, out)
	}
}

// What a server's list has and the server has not any more is gone; the rest is
// replayed.
func TestReplayOfWhatWasErasedMeanwhile(t *testing.T) {
	s, _ := pastWorld(t)
	erased := s.evaluate(bash)
	s.evaluate(bash)
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		if r.In.URL.Path == "/v1/evaluations/"+erased.EvaluationID {
			r.Out.URL.Path = "/v1/evaluations/another"
		}
	}})
	t.Cleanup(front.Close)
	code, out, errs := s.replayed(t.Context(), "-f", fileOf(t, "draft.json", judgedSpec), "--server", front.URL)
	if code != exitDone || !strings.Contains(out, "1 evaluation replayed, 0 changed; 1 could not be replayed (1 gone)\n") ||
		!strings.Contains(out, "Not replayed for gone, the first "+erased.EvaluationID+": it was erased meanwhile\n") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
