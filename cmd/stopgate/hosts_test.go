package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
	"stopgate/internal/contract"
	"stopgate/server"
)

// A host's own payload goes in and its own answer comes out: one rejection, one
// allow, for each host that can be stopped (spec/claude-code.md 7).
func TestHostsAreStopped(t *testing.T) {
	s := newService(t)
	spec := `{"name":"marker","properties":{"hooks":{
		"Stop":[{"type":"command","command":"grep -q 'Task complete' || { echo 'say Task complete' >&2; exit 2; }"}],
		"PostToolUse":[{"type":"command","matcher":"Bash","command":"echo '{\"hookSpecificOutput\":{\"additionalContext\":\"[AUDIT]\"}}'"}],
		"PreToolUse":[{"type":"command","matcher":"Write","command":"echo no writing >&2; exit 2"}]}}}`
	if status, answer := s.do(http.MethodPut, agents+"marker", "application/json", []byte(spec)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	for _, c := range []struct{ name, url, payload, want string }{
		{"claude-code stop", "claude-code?agent=marker", `{"hook_event_name":"Stop","session_id":"c","prompt_id":"p","last_assistant_message":"Done.","added":1}`, `{"decision":"block","reason":"say Task complete"}`},
		{"claude-code allowed", "claude-code?agent=marker", `{"hook_event_name":"Stop","session_id":"c","prompt_id":"p","last_assistant_message":"Task complete."}`, ``},
		{"claude-code tool", "claude-code?agent=marker", `{"hook_event_name":"PostToolUse","session_id":"c","tool_name":"Bash","tool_input":{"command":"ls"},"tool_response":{"stdout":"a"}}`,
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"[AUDIT]"}}`},
		{"claude-code denied", "claude-code?agent=marker", `{"hook_event_name":"PreToolUse","session_id":"c","tool_name":"Write","tool_input":{}}`,
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no writing"}}`},
		{"codex stop", "codex?agent=marker", `{"hook_event_name":"Stop","session_id":"x","last_assistant_message":"Done."}`, `{"decision":"block","reason":"say Task complete"}`},
		{"codex tool by its own name", "codex?agent=marker", `{"hook_event_name":"PostToolUse","session_id":"x","tool_name":"exec_command","tool_input":{"cmd":"ls"},"tool_response":"a"}`,
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"[AUDIT]"}}`},
		{"codex patch is Write", "codex?agent=marker", `{"hook_event_name":"PreToolUse","session_id":"x","tool_name":"apply_patch","tool_input":{}}`,
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no writing"}}`},
		{"gemini-cli stop", "gemini-cli?agent=marker", `{"hook_event_name":"AfterAgent","session_id":"g","prompt_response":"Done."}`, `{"decision":"block","reason":"say Task complete"}`},
		{"gemini-cli allowed", "gemini-cli?agent=marker", `{"hook_event_name":"AfterAgent","session_id":"g","prompt_response":"Done.\nTask complete."}`, `{}`},
		{"qwen-code stop", "qwen-code?agent=marker", `{"hook_event_name":"Stop","session_id":"q","last_assistant_message":"Done."}`, `{"decision":"block","reason":"say Task complete"}`},
		{"an event nobody knows", "claude-code?agent=marker", `{"hook_event_name":"Sneeze","session_id":"c"}`, ``},
		{"an unknown agent", "claude-code?agent=nobody", `{"hook_event_name":"Stop","session_id":"c","last_assistant_message":"x"}`, ``},
		{"copilot without a transcript", "copilot?agent=marker", `{"hook_event_name":"Stop","session_id":"p","transcript_path":""}`, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, answer := s.do(http.MethodPost, "/v1/hooks/"+c.url, "application/json", []byte(c.payload))
			if status != http.StatusOK || string(answer) != c.want {
				t.Errorf("%d %s\nwant %s", status, answer, c.want)
			}
		})
	}
	t.Run("what is wrong with the request is 4xx", func(t *testing.T) {
		for _, c := range []struct {
			url, payload string
			want         int
		}{
			{"nobody", `{}`, 404}, {"claude-code", `{"hook_event_name":`, 400}, {"claude-code", `{}`, 400},
			{"antigravity", `{"tool_call":{}}`, 400},
		} {
			if status, answer := s.do(http.MethodPost, "/v1/hooks/"+c.url, "application/json", []byte(c.payload)); status != c.want {
				t.Errorf("%s %s: %d %s, want %d", c.url, c.payload, status, answer, c.want)
			}
		}
	})
	t.Run("a URL that is wrong is the gate's to answer, and recorded", func(t *testing.T) {
		for url, payload := range map[string]string{"claude-code?agnet=marker": `{"hook_event_name":"Stop"}`, "claude-code?deadline=NaN": `{"hook_event_name":"Stop"}`,
			"antigravity?event=pre_tool_executoin": `{"tool_call":{"name":"code_execution"}}`} {
			status, answer := s.do(http.MethodPost, "/v1/hooks/"+url, "application/json", []byte(payload))
			if status != http.StatusOK || strings.Contains(string(answer), "block") || strings.Contains(string(answer), "deny") {
				t.Errorf("%s: %d %s", url, status, answer)
			}
		}
		_, metrics := s.do(http.MethodGet, "/metrics", "", nil)
		if !strings.Contains(string(metrics), `stopgate_gate_errors_total{code="bad_query"} 3`) {
			t.Error("they are not counted")
		}
	})
	t.Run("a failure of the gate's is recorded and degraded", func(t *testing.T) {
		_, list := s.do(http.MethodGet, "/v1/evaluations?agent=nobody", "", nil)
		var got struct{ Value []gate.RecordSummary }
		if err := json.Unmarshal(list, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Value) != 1 || !got.Value[0].Degraded || got.Value[0].Event != gate.Stop || got.Value[0].Protocol != "claude-code" {
			t.Errorf("%s", list)
		}
	})
	t.Run("a hook that still runs at the deadline has timed out", func(t *testing.T) {
		slow := `{"name":"slow","properties":{"hooks":{"Stop":[{"type":"command","command":"sleep 60","timeout":60,"failMode":"block"}]}}}`
		s.do(http.MethodPut, agents+"slow", "application/json", []byte(slow))
		_, answer := s.do(http.MethodPost, "/v1/hooks/claude-code?agent=slow&deadline=0.5", "application/json",
			[]byte(`{"hook_event_name":"Stop","session_id":"c","last_assistant_message":"x"}`))
		if !strings.Contains(string(answer), `"decision":"block"`) || !strings.Contains(string(answer), "timeout") {
			t.Errorf("%s", answer)
		}
	})
}

// fault gx-019: Codex skips prompt hooks of its own; the gate's are asked for it
// as for every host.
func TestPromptHooksForHostsWithoutThem(t *testing.T) {
	s := newService(t)
	if status, answer := s.do(http.MethodPut, agents+"a", "application/json",
		[]byte(`{"name":"a","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"Was it tested?"}]}}}`)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	s.answer = func(string) string { return `{"ok":false,"reason":"run the tests"}` }
	_, answer := s.do(http.MethodPost, "/v1/hooks/codex?agent=a", "application/json", []byte(`{"hook_event_name":"Stop","session_id":"x","last_assistant_message":"Done."}`))
	if string(answer) != `{"decision":"block","reason":"run the tests"}` || len(s.requests) != 1 || !strings.Contains(s.requests[0], "Was it tested?") {
		t.Errorf("%s after %d requests", answer, len(s.requests))
	}
}

// fault transcript-01, fault transcript-10: the judge reads the host's own file.
func TestJudgeReadsTheHostsTranscript(t *testing.T) {
	captured := contract.Dir(t, "wire")
	s := newService(t)
	if status, _ := s.do(http.MethodPut, agents+"a", "application/json", []byte(`{"name":"a","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"p"}]}}}`)); status != http.StatusAccepted {
		t.Fatal(status)
	}
	s.answer = func(request string) string {
		if strings.Contains(request, "functionResponse") {
			return `{"ok":false,"reason":"read it"}`
		}
		return `call:{"name":"ReadFile","args":{"offset":1}}`
	}
	path := s.transcriptRoot + "/session.jsonl"
	s.copyFile(filepath.Join(captured, "claude-code", "transcript.jsonl"), path)
	payload, err := json.Marshal(map[string]string{"hook_event_name": "Stop", "session_id": "h", "last_assistant_message": "All done, believe me.", "transcript_path": path})
	if err != nil {
		t.Fatal(err)
	}
	_, answer := s.do(http.MethodPost, "/v1/hooks/claude-code?agent=a", "application/json", payload)
	if string(answer) != `{"decision":"block","reason":"read it"}` {
		t.Fatalf("%s", answer)
	}
	seen := s.requests[len(s.requests)-1]
	for _, want := range []string{"=== user ===", "=== assistant", "calls Bash", "All done, believe me."} {
		if !strings.Contains(strings.ReplaceAll(seen, `\u003d`, "="), want) {
			t.Errorf("the judge did not read %q in %s", want, seen)
		}
	}
}

// What the URL says reaches the protocol: here, that nobody can be asked.
func TestUnattendedReachesTheProtocol(t *testing.T) {
	p, _ := findProtocol("claude-code")
	for unattended, want := range map[bool]string{false: `"permissionDecision":"ask"`, true: `"permissionDecision":"deny"`} {
		ev, err := p.Decode([]byte(`{"hook_event_name":"PreToolUse","tool_name":"Bash"}`), server.HostQuery{Unattended: unattended})
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := p.Encode(ev, gate.Decision{Outcome: gate.Ask, Reason: "deletes data"}); !strings.Contains(string(body), want) {
			t.Errorf("unattended %t: %s, want %s", unattended, body, want)
		}
	}
}
