package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
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

// The example's hooks.json, as it is, attached: its scripts lie at /.agents, as in its
// own environment, once the server shows the project that the URL names.
func TestAntigravity02ExampleAttached(t *testing.T) {
	project := filepath.Join(t.TempDir(), "project")
	if err := os.CopyFS(project, os.DirFS("../../examples/antigravity")); err != nil {
		t.Fatal(err)
	}
	for dir := project; filepath.Dir(dir) != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // a gate that is root runs hooks as somebody else
			t.Fatal(err)
		}
	}
	hooks, err := os.ReadFile(filepath.Join(project, ".agents", "hooks.json"))
	if err != nil {
		t.Fatal(err)
	}
	s := withServerFile(t, t.TempDir(), "sandbox: {workspace: read-only, workspace_roots: ['"+project+"']}")
	if answer := s.want(202, "PUT", "/v1/agents/a/hooks?dialect=antigravity", string(hooks)); strings.Contains(answer, "script_missing") {
		t.Errorf("warned of what is there: %s", answer)
	}
	const call = `{"tool_call":{"name":"code_execution","args":{"code":"rm -rf /"}},"environment_id":"e"}`
	answer := s.want(200, "POST", "/v1/hooks/antigravity?agent=a&event=pre_tool_execution&project="+url.QueryEscape(project), call)
	if !strings.Contains(answer, `"decision":"deny"`) {
		t.Errorf("answer %s, want a denial: %s", answer, s.want(200, "GET", "/v1/evaluations", ""))
	}
}
