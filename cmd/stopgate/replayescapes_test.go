package main

import (
	"bytes"
	"strings"
	"testing"
)

const hostileRecord = `{"evaluation_id":"e1","time":"2026-11-30T10:00:00Z","agent":"a","event":"PreToolUse","tool_name":"Bash","decision":"DECISION","hooks":[],"payload":{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"Bash","tool_input":{"command":"sudo \u009b31m"}}}` + "\n"

const echoingSpec = `{"name":"a","properties":{"hooks":{"PreToolUse":[{"name":"shell","type":"rule","matcher":"Bash","rules":[{"if":"true","then":"block","reason":"no {{ tool_input.command }}"}]}]}}}`

func replayedHostile(t *testing.T, decision string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := process{ctx: t.Context(), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }}
	args = append([]string{"replay", "--sandbox", "off", "-f", fileOf(t, "draft.json", echoingSpec),
		"--from", fileOf(t, "export.ndjson", strings.Replace(hostileRecord, "DECISION", decision, 1))}, args...)
	return run(p, args), out.String(), errs.String()
}

// JSON escapes what is below a blank, but not the controls behind the DEL, of which
// one begins a terminal's sequences as ESC [ does.
func TestReplayJSONHoldsNoTerminalSequences(t *testing.T) {
	_, out, errs := replayedHostile(t, "allow", "--json")
	if !strings.Contains(out, "sudo") || strings.ContainsAny(out, "\u009b\u007f") {
		t.Errorf("%q %s", out, errs)
	}
}

// A decision that is none makes its line one that is no record: it is no change, and
// it writes no lines of the report.
func TestReplayOfAnUnknownDecision(t *testing.T) {
	for _, decision := range []string{"Block", "", `allow\n5 evaluations replayed, 0 changed`} {
		code, out, errs := replayedHostile(t, decision, "--exit-code")
		if code != exitInput || strings.Contains(out, "1 changed") || strings.Contains(out, "\n5 evaluations") {
			t.Errorf("%q: exit %d: %s%s", decision, code, out, errs)
		}
	}
}
