package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
	"stopgate/internal/contract"
)

// TestAXCodeHooksBehindAnotherHost: hooks of AX Code, attached to an agent, gate
// Claude Code by their own names of its tools.
func TestAXCodeHooksBehindAnotherHost(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(contract.Dir(t, "spec/examples/ax-code"), ".ax-code", "hooks.json"))
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t)
	const route = "/v1/agents/marker/hooks?dialect=ax-code"
	if status, answer := s.do(http.MethodPut, route, "application/json", file); status/100 != 2 {
		t.Fatalf("PUT: %d %s", status, answer)
	}
	ask := func(event, members string) string {
		t.Helper()
		status, answer := s.do(http.MethodPost, "/v1/hooks/claude-code?agent=marker", "application/json",
			[]byte(`{"session_id":"s","cwd":"/tmp","hook_event_name":"`+event+`",`+members+`}`))
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", event, status, answer)
		}
		return string(answer)
	}
	for _, tt := range []struct{ name, event, members, want string }{
		{"23: a forced push is denied", "PreToolUse", `"tool_name":"Bash","tool_input":{"command":"cd d && git push -fu origin main"}`, "Blocked force push by block-force-push hook"},
		{"23: another push is not", "PreToolUse", `"tool_name":"Bash","tool_input":{"command":"git push && rm -f x"}`, ""},
		{"18: feedback after an edit", "PostToolUse", `"tool_name":"Edit","tool_input":{"file_path":"a.go"},"tool_response":"ok"`, "run the project's formatter"},
		{"18: none after a command", "PostToolUse", `"tool_name":"Bash","tool_input":{"command":"true"},"tool_response":"ok"`, ""},
		{"17: Stop is only watched", "Stop", `"stop_hook_active":false,"last_assistant_message":"done"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ask(tt.event, tt.members); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("answer %s, want %q", got, tt.want)
			}
		})
	}
	_, list := s.do(http.MethodGet, "/v1/evaluations?agent=marker&event=Stop", "", nil)
	var got struct{ Value []gate.RecordSummary }
	if err := json.Unmarshal(list, &got); err != nil || len(got.Value) != 1 || len(got.Value[0].Hooks) != 1 {
		t.Fatalf("%v: %s", err, list)
	}
	_, record := s.do(http.MethodGet, "/v1/evaluations/"+got.Value[0].EvaluationID, "", nil)
	if !strings.Contains(string(record), "see that the project's tests were run") {
		t.Errorf("the reminder is not in the record: %s", record)
	}

	// One invalid entry: nothing is put in force, and the finding says what AX
	// Code would do.
	status, answer := s.do(http.MethodPut, route, "application/json", []byte(`{"hooks":[{"event":"Stop"}]}`))
	if status != http.StatusBadRequest || !strings.Contains(string(answer), "AX Code ignores this whole file, because hooks[0] has no command") {
		t.Errorf("%d %s", status, answer)
	}
}

// TestAXCodeHooksGetNoOwnKeys: DESIGN §9, "stopgate's own keys never", whatever
// the variable is called that the server file takes one from, and also where the
// host wants hooks to get everything.
func TestAXCodeHooksGetNoOwnKeys(t *testing.T) {
	t.Setenv("CORP_LLM", "provider-key-12345")
	t.Setenv("LC_LLM", "Bearer provider-key-12345")
	t.Setenv("STAGE", "staging")
	for _, full := range []string{"", "1"} {
		t.Setenv("AX_CODE_HOOKS_FULL_ENV", full)
		s := withServerFile(t, filepath.Join(t.TempDir(), "data"), "models: {providers: {gemini: {api_key: provider-key-12345}}}")
		s.want(202, "PUT", "/v1/agents/a/hooks?dialect=ax-code", `{"hooks":[{"event":"PreToolUse","blockOnFailure":true,"command":"env >&2; exit 1"}]}`)
		d, _ := s.decide(`{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"bash","tool_input":{"command":"ls"}}`)
		if said, _ := d["reason"].(string); !strings.Contains(said, "STAGE=staging") || strings.Contains(said, "provider-key-12345") {
			t.Errorf("full environment %q: the hook was given %s", full, said)
		}
	}
}

// TestAXCodeEventsAreNobodyElses: a caller of its own cannot name them.
func TestAXCodeEventsAreNobodyElses(t *testing.T) {
	s := newService(t)
	for _, name := range []gate.EventName{gate.SessionEnd, gate.PreCompact, gate.PostCompact, gate.Interrupt} {
		if status, answer := s.do(http.MethodPost, "/v1/evaluate", "application/json", []byte(`{"hook_event_name":"`+string(name)+`","agent_name":"default"}`)); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
}
