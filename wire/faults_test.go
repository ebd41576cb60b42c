package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// What users of other gates reported about payloads and answers (docs/faults.md).
func TestReportedFaultsOfPayloads(t *testing.T) {
	t.Run("fault transcript-01, transcript-04, transcript-08: the payload's own text is judged, no file is waited for", func(t *testing.T) {
		ev := decode(t, "claude-code", `{"hook_event_name":"Stop","transcript_path":"/behind.jsonl","last_assistant_message":"I am awaiting the hook"}`, Options{})
		if _, sought := AnswerSought(ev); sought || ev.FinalOutput != "I am awaiting the hook" {
			t.Errorf("%+v", ev)
		}
	})
	t.Run("fault transcript-02: a wait is bounded, and only where the payload has no text", func(t *testing.T) {
		for _, host := range hosts {
			p, _ := Find(host)
			ev := gate.Event{Protocol: p.Name, Name: gate.Stop, TranscriptPath: "/t", Payload: []byte(`{"timestamp":1}`)}
			if s, _ := AnswerSought(ev); s.Within.Seconds() > 1 {
				t.Errorf("%s waits %s", host, s.Within)
			}
		}
	})
	t.Run("fault loop-05: running background tasks can be seen", func(t *testing.T) {
		ev := decode(t, "claude-code", `{"hook_event_name":"Stop","background_tasks":[{"type":"subagent","status":"running"}]}`, Options{})
		if len(ev.Background) != 1 {
			t.Errorf("%s", ev.Background)
		}
	})
	t.Run("fault gx-001: the host's stop_hook_active is only its claim", func(t *testing.T) {
		for _, active := range []string{"true", "false"} {
			ev := decode(t, "gemini-cli", `{"hook_event_name":"AfterAgent","session_id":"s","prompt_response":"x","stop_hook_active":`+active+`}`, Options{})
			if ev.ClaimedActive != (active == "true") || ev.ClaimedRejections != 0 || ev.Session == "" {
				t.Errorf("%+v", ev) // with a session gate counts by itself: TestAzure35MaxRejections
			}
		}
	})
	t.Run("fault gx-002: an empty prompt is tolerated and resets nothing", func(t *testing.T) {
		for _, prompt := range []string{`""`, `" \n"`, `null`} {
			ev := decode(t, "gemini-cli", `{"hook_event_name":"BeforeAgent","session_id":"s","prompt":`+prompt+`}`, Options{})
			if ev.Name != gate.UserPromptSubmit || ev.ByPerson {
				t.Errorf("%s: %+v", prompt, ev)
			}
		}
	})
	t.Run("fault gx-013: Codex's patch tool answers to Write and Edit", func(t *testing.T) {
		if diff := cmp.Diff([]string{"Write", "Edit"}, Aliases("codex", "apply_patch")); diff != "" {
			t.Error(diff)
		}
		if ev := decode(t, "codex", `{"hook_event_name":"PreToolUse","tool_name":"apply_patch"}`, Options{}); !slices.Equal(ev.ToolAliases, []string{"Write", "Edit"}) {
			t.Error(ev.ToolAliases)
		}
	})
	t.Run("fault gx-021: copilot's end of turn is a Stop", func(t *testing.T) {
		if ev := decode(t, "copilot", `{"sessionId":"s"}`, Options{Event: "agentStop"}); ev.Name != gate.Stop {
			t.Error(ev.Name)
		}
	})
	t.Run("fault gx-083: a codex call that says nothing of failure has succeeded, its text is shown", func(t *testing.T) {
		ev := decode(t, "codex", `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":"bash: foo: command not found"}`, Options{})
		if !ev.ToolSucceeded || ev.ToolResult != "bash: foo: command not found" {
			t.Errorf("%+v", ev)
		}
	})
	t.Run("fault gx-090: SessionEnd of gemini-cli gates nothing, AfterAgent does", func(t *testing.T) {
		for event, want := range map[string]gate.EventName{"SessionEnd": "", "AfterAgent": gate.Stop, "Stop": ""} {
			if ev := decode(t, "gemini-cli", `{"hook_event_name":"`+event+`"}`, Options{}); ev.Name != want {
				t.Errorf("%s is %q", event, ev.Name)
			}
		}
	})
}

func TestReportedFaultsOfAnswers(t *testing.T) {
	block := gate.Decision{Outcome: gate.Block, Reason: "why"}
	both := gate.Decision{Outcome: gate.Block, Reason: "why", AdditionalContext: "hint"}
	context := gate.Decision{Outcome: gate.Allow, AdditionalContext: "hint"}
	for _, c := range []struct {
		name, host string
		event      gate.EventName
		decision   gate.Decision
		want       string
	}{
		{"fault schema-03: a Stop is blocked by decision and reason, which old clients take", "claude-code", gate.Stop, block, `{"decision":"block","reason":"why"}`},
		{"fault schema-08: a deny always has its reason field", "claude-code", gate.PreToolUse, gate.Decision{Outcome: gate.Block},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"` + defaultReason + `"}}`},
		{"fault schema-10: no objection is nothing, never suppressOutput", "codex", gate.PostToolUse, gate.Decision{Outcome: gate.Allow}, ``},
		{"fault schema-12: Codex gets no context on Stop", "codex", gate.Stop, both, `{"decision":"block","reason":"why"}`},
		{"fault exit-08: a block is JSON with a reason that is never empty", "claude-code", gate.Stop, gate.Decision{Outcome: gate.Block, Reason: "\n"}, `{"decision":"block","reason":"` + defaultReason + `"}`},
		{"fault decide-01: an allow is no objection, not the host's permission", "claude-code", gate.PreToolUse, gate.Decision{Outcome: gate.Allow, Reason: "fine"}, ``},
		{"fault context-02: a context after a tool, in the exact shape", "claude-code", gate.PostToolUse, context, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"hint"}}`},
		{"fault context-06: a context before a tool", "claude-code", gate.PreToolUse, context, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"hint"}}`},
		{"fault agents-03: a Codex Stop is answered exactly", "codex", gate.Stop, gate.Decision{Outcome: gate.Block, Reason: "x"}, `{"decision":"block","reason":"x"}`},
		{"fault gx-012: a deny to Codex is one channel, JSON", "codex", gate.PreToolUse, block, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"why"}}`},
		{"fault gx-017: only fields that Codex's event takes", "codex", gate.UserPromptSubmit, both, `{"decision":"block","reason":"why"}`},
		{"fault gx-023: what copilot's model must read is in the deny reason", "copilot", gate.PreToolUse, both, `{"permissionDecision":"deny","permissionDecisionReason":"why\n\nhint"}`},
		{"fault gx-030: qwen-code hears of a tool's result by context", "qwen-code", gate.PostToolUse, block, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"why"}}`},
		{"fault gx-034: antigravity is told allow in so many words", "antigravity", gate.PreToolUse, gate.Decision{Outcome: gate.Allow}, `{"decision":"allow"}`},
		{"fault gx-059: an allow of a Codex Stop is nothing, never approve", "codex", gate.Stop, gate.Decision{Outcome: gate.Allow}, ``},
		{"fault gx-082: feedback after a Codex tool is JSON", "codex", gate.PostToolUse, block, `{"decision":"block","reason":"why\n\n` + gate.Withheld + `"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := encode(t, c.host, c.event, c.decision); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("fault exit-09: an answer is one JSON object and nothing round it", func(t *testing.T) {
		for _, host := range hosts {
			for _, name := range gate.EventNames {
				for _, w := range wishes {
					got := encode(t, host, name, w.decision)
					if got != "" && (!json.Valid([]byte(got)) || got != strings.TrimSpace(got) || strings.Contains(got, "\n")) {
						t.Errorf("%s %s: %q", host, name, got)
					}
				}
			}
		}
	})
}

func TestReportedFaultsOfBytes(t *testing.T) {
	p, _ := Find("claude-code")
	t.Run("fault encoding-01: bytes that are not UTF-8 are replaced", func(t *testing.T) {
		ev, err := p.Decode([]byte("\xef\xbb\xbf{\"hook_event_name\":\"Stop\",\"session_id\":\"s\",\"last_assistant_message\":\"caf\xe9 \\\"x\\\"\"}"), Options{})
		if err != nil || ev.FinalOutput != "caf\uFFFD \"x\"" {
			t.Errorf("%q %v", ev.FinalOutput, err)
		}
		ax, _ := Find("ax-code")
		ev, err = ax.Decode([]byte("{\"command\":\"caf\xe9\"}"), Options{Event: "PreToolUse"})
		if err != nil || string(ev.ToolInput) != "{\"command\":\"caf\uFFFD\"}" {
			t.Errorf("%q %v", ev.ToolInput, err)
		}
	})
	t.Run("fault encoding-05: a Latin-1 body is read", func(t *testing.T) {
		ev, err := p.Decode([]byte("{\"hook_event_name\":\"UserPromptSubmit\",\"prompt\":\"\xe4\xf6\xfc\"}"), Options{})
		if err != nil || !strings.Contains(ev.Prompt, "\uFFFD") {
			t.Errorf("%q %v", ev.Prompt, err)
		}
	})
	t.Run("fault stdout-04: a raw control character is an error that names the byte", func(t *testing.T) {
		_, err := p.Decode([]byte("{\"hook_event_name\":\"Stop\",\"prompt\":\"a\nb\"}"), Options{})
		if gate.CodeOf(err) != gate.CodeInvalidJSON || !strings.Contains(err.Error(), "byte 37") {
			t.Errorf("%v", err)
		}
	})
}

// What came whole before the fault is kept, so that a gate set to block then
// can block the right event.
func TestTruncatedPayloads(t *testing.T) {
	const whole = `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls -l /home"}}`
	p, _ := Find("codex")
	for n := range len(whole) {
		ev, err := p.Decode([]byte(whole[:n]), Options{Agent: "a"})
		if gate.CodeOf(err) != gate.CodeInvalidJSON {
			t.Fatalf("%d bytes: %v", n, err)
		}
		var want gate.EventName
		if n >= strings.Index(whole, `"PreToolUse"`)+len(`"PreToolUse"`) {
			want = gate.PreToolUse
		}
		if ev.Name != want || ev.Protocol != "codex" || ev.Agent != "a" || len(ev.ToolInput) != 0 && n < len(whole)-1 {
			t.Fatalf("%d bytes: %+v", n, ev)
		}
	}
	for _, body := range []string{``, `null`, `[]`, `"x"`, `7`, whole + whole, "{\"a\":" + strings.Repeat("[", 1<<15)} {
		if _, err := p.Decode([]byte(body), Options{}); gate.CodeOf(err) != gate.CodeInvalidJSON {
			t.Errorf("%.20q: %v", body, err)
		}
	}
}
