package wire

import (
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
		if ev.Probe != "mark-1" || ev.Name != gate.Stop {
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
