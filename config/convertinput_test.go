package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"stopgate/gate"
)

// A hook that reads what its new system does not give could not judge there: it
// would die of it, or find nothing to refuse.
func TestConvertInput(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to gate.Dialect
		command  string
		want     string // a part of the report's error; empty: it has none
	}{
		{"arguments that stand alone there", gate.ClaudeCode, gate.AXCode, `jq -r .tool_input.command | grep -q 'rm -rf' && exit 2`, "reads tool_input (there: the arguments, of which standard input has nothing round them), which AX Code does not give"},
		{"arguments in a call", gate.ClaudeCode, gate.Antigravity, `jq -r .tool_input.command | grep -q 'rm -rf' && exit 2`, "reads tool_input (there: tool_call)"},
		{"a call that is in two there", gate.Antigravity, gate.ClaudeCode, `python3 -c 'import json,sys; json.load(sys.stdin)["tool_call"]'; exit 2`, "reads tool_call (there: tool_name, tool_input)"},
		{"arguments that stood alone", gate.AXCode, gate.ClaudeCode, `jq -r .command | grep -q 'rm -rf' && exit 2`, "reads command (there: tool_input)"},
		{"a variable", gate.AXCode, gate.Azure, `test "$HOOK_SESSION_ID" = s || exit 2`, "reads HOOK_SESSION_ID (there: session_id)"},
		{"what nothing there is like", gate.ClaudeCode, gate.Azure, `jq -r .permission_mode | grep -q plan && exit 2`, "reads permission_mode, which Azure SRE Agent"},
		{"what both give", gate.ClaudeCode, gate.Azure, `jq -r .tool_input.command | grep -q 'rm -rf' && exit 2`, ""},
		{"a script that knows of both", gate.ClaudeCode, gate.AXCode, `echo "$HOOK_TOOL"; jq -r .tool_name | grep -q Bash && exit 2`, ""},
		{"a name that both give is no sign of it", gate.Azure, gate.AXCode, `jq -r .tool_input.command | grep -q 'rm -rf' && exit 2`, "reads tool_input"},
		{"a word of everyday", gate.AXCode, gate.ClaudeCode, `grep -q 'command' && exit 2`, "reads command"},
		{"and one that is no name", gate.AXCode, gate.ClaudeCode, `grep -q "no command here" && exit 2`, ""},
		{"all of it", gate.AXCode, gate.Azure, `grep -q 'rm -rf' && exit 2`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			document, report := converted(c.from, c.to, commandHook(c.from, c.command), false)
			if found := strings.Contains(report, "error: ") && strings.Contains(report, ": input: the hook reads"); found != (c.want != "") || !strings.Contains(report, c.want) {
				t.Errorf("document %q, report:\n%s\nwant %s", document, report, c.want)
			}
			if document, _ := converted(c.from, c.to, commandHook(c.from, c.command), true); (document == "") != (c.want != "") {
				t.Errorf("in part it is %q", document)
			}
		})
	}
	t.Run("the example of a marker", func(t *testing.T) {
		source, err := os.ReadFile("../examples/marker.yaml")
		if err != nil {
			t.Fatal(err)
		}
		_, report := converted(gate.Azure, gate.ClaudeCode, string(source), false)
		if want := "error: task-complete: input: the hook reads final_output (there: last_assistant_message), stop_rejection_count, which Claude Code does not give"; !strings.Contains(report, want) {
			t.Errorf("no %s:\n%s", want, report)
		}
	})
	t.Run("a prompt", func(t *testing.T) {
		_, report := converted(gate.Azure, gate.ClaudeCode, agentHook("Stop", `prompt: "Is final_output done?"`), false)
		if !strings.Contains(report, "warning: Stop[0].prompt: input: the prompt speaks of final_output (there: last_assistant_message)") {
			t.Errorf("report:\n%s", report)
		}
	})
}

// A hook with an error is left out, or its line says that it is written.
func TestConvertPartial(t *testing.T) {
	lost := fmt.Sprintf("%q", echo(saysFlatAsk))
	document, report := converted(gate.AXCode, gate.Antigravity, axFile(`"event":"PreToolUse","matcher":"bash","protocol":"claude-code","command":`+lost), true)
	if !strings.Contains(document, "permissionDecision") || !strings.Contains(report, "let the hook say that (--partial writes the hook all the same)") {
		t.Errorf("document %s, report:\n%s", document, report)
	}
	document, report = converted(gate.AXCode, gate.Antigravity, axFile(`"event":"PreToolUse","matcher":"bash","protocol":"claude-code","command":"test $HOOK_TOOL"},{"event":"PreToolUse","command":"y"`), true)
	if strings.Contains(document, "HOOK_TOOL") || !strings.Contains(report, "HOOK_TOOL") || strings.Contains(report, "all the same") {
		t.Errorf("document %s, report:\n%s", document, report)
	}
}

// A matcher becomes all names by which the hook is asked there.
func TestConvertEveryName(t *testing.T) {
	for _, c := range []struct {
		from, to gate.Dialect
		source   string
		want     string
	}{
		{gate.ClaudeCode, gate.AXCode, claudeHook("PreToolUse", `"matcher":"Bash|Edit|Write",`, `{"type":"command","command":"exit 2"}`), `"matcher": "bash|write|apply_patch|edit|multiedit"`},
		{gate.AXCode, gate.ClaudeCode, axFile(`"event":"PreToolUse","protocol":"claude-code","matcher":"bash|edit|write","command":"exit 2"`), `"matcher": "Bash|Write|Edit|MultiEdit"`},
	} {
		if document, report := converted(c.from, c.to, c.source, false); !strings.Contains(document, c.want) {
			t.Errorf("%s to %s: no %s in %s\n%s", c.from, c.to, c.want, document, report)
		}
	}
}
