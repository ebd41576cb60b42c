package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"stopgate/gate"
)

func TestProbeMark(t *testing.T) {
	for _, host := range []string{"claude-code", "codex", "gemini-cli", "qwen-code", "copilot"} {
		event := "Stop"
		if host == "gemini-cli" {
			event = "AfterAgent"
		}
		ev := decode(t, host, `{"hook_event_name":"`+event+`","session_id":"s","stopgate_probe":"mark-1"}`, Options{})
		if ev.Probe != "mark-1" || !ev.Dry || ev.Name != gate.Stop {
			t.Errorf("%s: %q on %s", host, ev.Probe, ev.Name)
		}
		if _, sought := AnswerSought(ev); sought {
			t.Errorf("%s: an answer is looked for", host)
		}
	}
	if ev := decode(t, "claude-code", `{"hook_event_name":"Stop","stopgate_probe":"`+strings.Repeat("x", 1000)+`"}`, Options{}); len(ev.Probe) > probeBytes {
		t.Errorf("mark of %d bytes", len(ev.Probe))
	}
}

// A User-Agent is anybody's to send: only Copilot's own, and only a version in
// it, is taken.
func TestVersionInAUserAgent(t *testing.T) {
	for _, c := range []struct{ host, agent, want string }{
		{copilotName, "copilot/1.0.102 (linux x64; node 20)", "1.0.102"},
		{copilotName, "copilot/1.0.103", "1.0.103"},
		{copilotName, "copilot/", ""},
		{copilotName, "copilot", ""},
		{copilotName, "", ""},
		{copilotName, "curl/8.5.0 copilot/1.0.102", ""},
		{copilotName, "Go-http-client/1.1", ""},
		{copilotName, "copilot/<b>1</b>", ""},
		{copilotName, "copilot/" + strings.Repeat("1", 65), ""},
		{"claude-code", "axios/1.15.2", ""},
		{"qwen-code", "node", ""},
		{"codex", "copilot/1.0.102", ""},
	} {
		if ev := decode(t, c.host, `{"hook_event_name":"Stop"}`, Options{UserAgent: c.agent}); ev.HostVersion != c.want {
			t.Errorf("%s, %.80q: %q, want %q", c.host, c.agent, ev.HostVersion, c.want)
		}
	}
}

// AX Code's payload is the tool's arguments, which the model writes: a mark in
// them is no probe, or else an agent chooses which of its calls are audited and
// counted (axcode.go: no member of the arguments is taken for a fact).
func TestProbeMarkInToolArgumentsIsNone(t *testing.T) {
	for _, event := range []string{"PreToolUse", "PostToolUse", "PostToolUseFailure"} {
		ev := decode(t, "ax-code", `{"command":"rm -rf build","stopgate_probe":"x"}`, Options{Event: event, Session: "s", Tool: "Bash"})
		if ev.Probe != "" {
			t.Errorf("%s: the model's own argument is a probe %q", event, ev.Probe)
		}
	}
}

// A payload may list millions of tasks, each of which costs an error value and
// a copy: what no host sends is not gone through (read.go bounds the members of
// a broken body for the same reason).
func TestBackgroundTasksAreBounded(t *testing.T) {
	const most = 10_000
	for name, item := range map[string]string{"objects": "{},", "numbers": "1,"} {
		t.Run(name, func(t *testing.T) {
			body := `{"hook_event_name":"Stop","session_id":"s","background_tasks":[` + strings.TrimSuffix(strings.Repeat(item, 20*most), ",") + `]}`
			allocs := testing.AllocsPerRun(1, func() {
				if ev := decode(t, "claude-code", body, Options{}); len(ev.Background) > most {
					t.Errorf("%d tasks are kept", len(ev.Background))
				}
			})
			if allocs > 10*most {
				t.Errorf("%.0f allocations for %d tasks", allocs, 20*most)
			}
		})
	}
}

// Names of a host's are bounded, and hold no NUL, as those of native events
// (native.go, maxName): lists, logs and the ledger's keys repeat them, and a
// session that no path of the API can name can be neither read nor erased.
func TestHostNamesAreBounded(t *testing.T) {
	for name, text := range map[string]string{"long": strings.Repeat("s", 1<<20), "NUL": "a\x00b"} {
		for _, host := range []string{"claude-code", "codex", "gemini-cli", "qwen-code", "copilot"} {
			t.Run(host+"/"+name, func(t *testing.T) {
				payload, err := json.Marshal(map[string]any{"hook_event_name": map[bool]string{true: "BeforeTool", false: "PreToolUse"}[host == "gemini-cli"],
					"session_id": text, "tool_name": text, "agent_id": text, "agent_type": text, "prompt_id": text, "tool_input": map[string]any{}})
				if err != nil {
					t.Fatal(err)
				}
				ev := decode(t, host, string(payload), Options{})
				for field, value := range map[string]string{"session": ev.Session, "tool": ev.ToolName, "sub-agent": ev.SubAgent, "agent type": ev.AgentType, "prompt id": ev.PromptID} {
					if len(value) > maxName || strings.ContainsRune(value, 0) {
						t.Errorf("%s has %d bytes: %.10q", field, len(value), value)
					}
				}
			})
		}
	}
}

// A mark is a text: null, false and the like are none, and block nothing.
func TestProbeMarkIsAText(t *testing.T) {
	for _, value := range []string{"false", "0", "{}", "[]"} {
		if ev := decode(t, "codex", `{"hook_event_name":"Stop","session_id":"s","stopgate_probe":`+value+`}`, Options{}); ev.Probe != "" {
			t.Errorf("%s is a probe %q", value, ev.Probe)
		}
	}
}
