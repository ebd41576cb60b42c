package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/prompthooks"
)

// Requests are wanted in any order, so whichever hook asked first changes nothing:
// what fits several is not taken from the only one that it fits.
func TestRequestsInAnyOrder(t *testing.T) {
	a := hookRequest{url: "https://a.example.com/v1", header: http.Header{"X-Team": {"a"}}, body: []byte(`{}`)}
	b := hookRequest{url: "https://b.example.com/v1", header: http.Header{"X-Team": {"a"}}, body: []byte(`{}`)}
	c := hookRequest{url: "https://c.example.com/v1", body: []byte(`{}`)}
	anyURL, teamA, ofA := config.RequestWant{}, config.RequestWant{Headers: map[string]string{"X-Team": "a"}}, config.RequestWant{URL: a.url}
	for _, tt := range []struct {
		name  string
		want  []config.RequestWant
		asked []hookRequest
		says  []string
	}{
		{"a general wish first", []config.RequestWant{anyURL, ofA}, []hookRequest{a, b}, nil},
		{"three, each moved", []config.RequestWant{anyURL, teamA, ofA}, []hookRequest{a, b, c}, nil},
		{"one is wanted twice", []config.RequestWant{ofA, ofA}, []hookRequest{a, b}, []string{`requests[1]: url is "https://b.example.com/v1", want "https://a.example.com/v1"`}},
		{"one is made twice", []config.RequestWant{anyURL, ofA}, []hookRequest{a, a}, nil},
		{"nobody asks twice", []config.RequestWant{anyURL, anyURL}, []hookRequest{a}, []string{"http hooks made 1 request, want 2", "requests[1]: no request is like it"}},
		{"one too many", []config.RequestWant{ofA}, []hookRequest{a, b}, []string{"http hooks made 2 requests, want 1"}},
		{"none is like either", []config.RequestWant{{URL: "x"}, {URL: "y"}}, []hookRequest{a, b}, []string{"requests[0]: no request is like it", "requests[1]: no request is like it"}},
	} {
		for order, asked := range map[string][]hookRequest{"in order": tt.asked, "the other way round": reversed(tt.asked)} {
			t.Run(tt.name+", "+order, func(t *testing.T) {
				var r caseResult
				checkRequests(&r, config.Want{Requests: tt.want}, asked)
				var says []string
				for _, f := range r.failures {
					says = append(says, f.Message)
				}
				if diff := cmp.Diff(tt.says, says); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func reversed[T any](list []T) []T {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// A recorded evaluation is asked about without the places of the machine of then,
// neither as the gate reads them nor as a hook of its host gets its payload.
func TestRecordedEventNamesNoPlaceOfThen(t *testing.T) {
	for name, tt := range map[string]struct{ protocol, payload string }{
		"native":      {"native", `{"hook_event_name":"Stop","agent_name":"a","final_output":"x","execution_summary":"/then/talk.txt","cwd":"/then"}`},
		"claude-code": {"claude-code", `{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"x","transcript_path":"/then/talk.jsonl","cwd":"/then"}`},
		"a sub-agent": {"claude-code", `{"hook_event_name":"SubagentStop","session_id":"s","agent_id":"i","agent_type":"a","transcript_path":"/then/talk.jsonl","agent_transcript_path":"/then/sub.jsonl","cwd":"/then"}`},
		"gemini-cli":  {"gemini-cli", `{"hook_event_name":"AfterAgent","session_id":"s","prompt_response":"x","transcript_path":"/then/talk.json","cwd":"/then"}`},
		"copilot":     {"copilot", `{"hookName":"agentStop","sessionId":"s","transcriptPath":"/then/talk.jsonl","cwd":"/then","stopReason":"end_turn"}`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "spec.json"), `{"name":"a","properties":{"hooks":{"Stop":[{"prompt":"x"}]}}}`)
			write(t, filepath.Join(dir, "record.json"), `{"evaluation_id":"1","decision":"allow","agent":"a","session_id":"s","event":"Stop","protocol":"`+
				tt.protocol+`","hooks":[],"payload":`+tt.payload+`}`)
			path := filepath.Join(dir, "spec.test.yaml")
			write(t, path, "tests: [{name: then, event_file: record.json, want: allow}]")
			s, err := loadSuite(t.Context(), path)
			if err != nil || len(s.findings) > 0 {
				t.Fatal(err, s.findings)
			}
			ev := s.cases[0].events[0]
			if ev.TranscriptPath != "" || ev.Cwd != "" {
				t.Errorf("transcript %q, working directory %q", ev.TranscriptPath, ev.Cwd)
			}
			if tt.protocol != "copilot" && strings.Contains(string(ev.Payload), "/then") { // which no hook gets as it is
				t.Errorf("payload %s", ev.Payload)
			}
		})
	}
}

// What the server file says of budgets, prices and fallbacks is no part of a case:
// with a fallback one failure of the scripted model would be two questions.
func TestCasesAreNotAboutTheServerFile(t *testing.T) {
	o := newScriptedJudges(prompthooks.Options{MaxRounds: 7, DailyTokens: 1, Fallback: func(string) []string { return []string{"b/c"} },
		Price: func(string) (gate.Price, bool) { return gate.Price{}, true }}).options
	if o.MaxRounds != 7 || o.DailyTokens != 0 || o.Fallback != nil || o.Price != nil {
		t.Errorf("%+v", o)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "judge.json"), `{"name":"a","properties":{"hooks":{"Stop":[{"name":"judge","prompt":"Is it done?"}]}}}`)
	write(t, filepath.Join(dir, "judge.test.yaml"), `tests:
  - name: the provider is busy
    event: {hook_event_name: Stop, final_output: x}
    model: [{error: model_rate_limited}]
    want: {decision: allow, hooks: {judge: {outcome: no_verdict, error: model_rate_limited}}}
`)
	file := filepath.Join(t.TempDir(), "stopgate.yaml")
	write(t, file, "models: {providers: {main: {kind: openai, base_url: 'http://127.0.0.1:1'}, spare: {kind: openai, base_url: 'http://127.0.0.1:1'}}, default: main,\n"+
		"  tiers: {ReasoningFast: main/a}, fallback: {ReasoningFast: [spare/b]}}\n")
	if out, code := runTests(t, t.Context(), testCommand{Paths: []string{dir}, Config: file, Sandbox: "off"}); code != exitDone {
		t.Errorf("exit %d\n%s", code, out)
	}
}
