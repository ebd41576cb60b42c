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
