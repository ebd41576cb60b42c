package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"stopgate/gate"
)

// Hooks of the Gemini API's environment gate the agents of any host, by its own
// rules.
func TestAntigravityHooksBehindAnyHost(t *testing.T) {
	s := newService(t)
	status, answer := s.do(http.MethodPut, "/v1/agents/coder/hooks?dialect=antigravity", "application/json", []byte(`{"g": {
		"pre_tool_execution": [{"matcher": "code_execution", "hooks": [
			{"type": "command", "command": "exit 2"},
			{"type": "command", "command": "jq -c '{decision: \"deny\", reason: (.tool_call.name + \" in \" + .environment_id + \": \" + .tool_call.args.command)}'"},
			{"type": "command", "command": "echo '{\"decision\":\"deny\",\"reason\":\"a second one\"}'"}]}],
		"post_tool_execution": [{"matcher": "*", "hooks": [{"type": "command", "command": "echo '{\"decision\":\"deny\"}'"}]}]}}`))
	if status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	for _, c := range []struct{ name, path, payload, want string }{
		{"claude-code", "claude-code?agent=coder", `{"session_id":"s1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`, `"permissionDecisionReason":"code_execution in s1: ls"`},
		{"gemini-cli", "gemini-cli?agent=coder", `{"session_id":"s2","hook_event_name":"BeforeTool","tool_name":"run_shell_command","tool_input":{"command":"ls"}}`, `"reason":"code_execution in s2: ls"`},
		{"antigravity", "antigravity?agent=coder&event=pre_tool_execution", `{"tool_call":{"name":"code_execution","args":{"command":"ls"}},"environment_id":"s3"}`, `{"decision":"deny","reason":"code_execution in s3: ls"}`},
		{"another tool", "antigravity?agent=coder&event=pre_tool_execution", `{"tool_call":{"name":"read_file","args":{}},"environment_id":"s4"}`, `{"decision":"allow"}`},
		{"after a tool", "antigravity?agent=coder&event=post_tool_execution", `{"tool_call":{"name":"code_execution","args":{}},"environment_id":"s5","error":"no"}`, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if status, answer := s.do(http.MethodPost, "/v1/hooks/"+c.path, "application/json", []byte(c.payload)); status != http.StatusOK || !strings.Contains(string(answer), c.want) {
				t.Errorf("%d %s, want %s", status, answer, c.want)
			}
		})
	}
	t.Run("the record has what failed open", func(t *testing.T) {
		var list struct {
			Value []struct {
				ID string `json:"evaluation_id"`
			}
		}
		var record gate.Record
		_, body := s.do(http.MethodGet, "/v1/evaluations?session=s3", "", nil)
		if err := json.Unmarshal(body, &list); err != nil || len(list.Value) != 1 {
			t.Fatalf("%v: %s", err, body)
		}
		_, body = s.do(http.MethodGet, "/v1/evaluations/"+list.Value[0].ID, "", nil)
		if err := json.Unmarshal(body, &record); err != nil || len(record.Hooks) != 3 {
			t.Fatalf("%v: %s", err, body)
		}
		first := record.Hooks[0]
		if first.Failure == nil || first.Failure.Code != gate.NonzeroExit || !first.Has(gate.FailedOpen) || !record.Degraded {
			t.Errorf("%+v", first)
		}
		if second, third := record.Hooks[1], record.Hooks[2]; second.Outcome != gate.Block || third.Outcome != gate.Block || record.Reason != second.Reason {
			t.Errorf("reason %q of %+v and %+v", record.Reason, second, third)
		}
	})
	t.Run("a file that does not load is refused", func(t *testing.T) {
		status, answer := s.do(http.MethodPut, "/v1/agents/coder/hooks?dialect=antigravity", "application/json", []byte(`{"g":{"Stop":[]}}`))
		if status != http.StatusBadRequest || !strings.Contains(string(answer), `"Stop\" is no event of these hooks`) {
			t.Errorf("%d %s", status, answer)
		}
	})
}
