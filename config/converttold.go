package config

import (
	"cmp"

	"stopgate/gate"
)

// members are what a dialect's hooks are told of an event.
type members struct {
	of     map[gate.EventName]string
	other  string // of every other event
	common string // of all of them, after the event's own
}

const (
	axCodeArguments = "the tool's arguments alone, and HOOK_… variables"
	sandboxCall     = "tool_call.name, tool_call.args and environment_id"
)

var told = map[gate.Dialect]members{
	gate.Antigravity: {of: map[gate.EventName]string{
		gate.PreToolUse:  sandboxCall,
		gate.PostToolUse: sandboxCall + ", and error of a failed call",
	}},
	gate.AXCode: {of: map[gate.EventName]string{
		gate.UserPromptSubmit:   "prompt, and HOOK_… variables",
		gate.PreToolUse:         axCodeArguments,
		gate.PostToolUse:        axCodeArguments,
		gate.PostToolUseFailure: axCodeArguments,
	}, other: "{}, and HOOK_… variables"},
	gate.Azure: {of: map[gate.EventName]string{
		gate.PreToolUse:  "tool_name, tool_input",
		gate.PostToolUse: "tool_name, tool_input, tool_result, tool_succeeded",
		gate.Stop:        "final_output, stop_hook_active, stop_rejection_count",
	}, common: "agent_name, current_turn, max_turns and execution_summary"},
	gate.ClaudeCode: {of: map[gate.EventName]string{
		gate.PreToolUse:         "tool_name, tool_input",
		gate.PostToolUse:        "tool_name, tool_input, tool_response",
		gate.PostToolUseFailure: "tool_name, tool_input, error",
		gate.Stop:               "last_assistant_message, stop_hook_active",
		gate.SubagentStop:       "last_assistant_message, stop_hook_active, agent_type",
		gate.UserPromptSubmit:   "prompt",
		gate.Start:              "source",
	}, common: "session_id, cwd and transcript_path"},
}

// toldOf is what a dialect's hooks are told of an event.
func toldOf(d gate.Dialect, event gate.EventName) string {
	own, common := cmp.Or(told[d].of[event], told[d].other), told[d].common
	if own != "" && common != "" {
		own += ", "
	}
	return own + common
}

// anyEvent stands in tables for the events that they do not name.
const anyEvent gate.EventName = ""

const axCodeReads = `permissionDecision at exit 0, flat or in hookSpecificOutput, and neither decision nor ok`

const claudeCodeStops = `decision "block" with reason, on every exit code, and hookSpecificOutput.additionalContext, which keeps the turn going by itself; ok refuses nothing`

var readings = map[gate.Dialect]map[gate.EventName]string{
	gate.Antigravity: {
		gate.PreToolUse: `{"decision":"deny","reason":…} at exit 0, and no other refusal`,
		anyEvent:        "nothing",
	},
	gate.AXCode: {
		gate.PreToolUse:       axCodeReads,
		gate.UserPromptSubmit: axCodeReads,
		gate.PostToolUse:      `decision "block" with reason, and additionalContext, as feedback that withholds nothing`,
		anyEvent:              "nothing",
	},
	gate.Azure: {
		gate.PreToolUse:  `decision allow, deny, block or ask, or ok, or hookSpecificOutput.permissionDecision, at exit 0`,
		gate.PostToolUse: `decision allow or block, or ok, at exit 0; a block withholds the tool's result`,
		anyEvent:         `decision allow or block, or ok, at exit 0`,
	},
	gate.ClaudeCode: {
		gate.PreToolUse:   `hookSpecificOutput.permissionDecision with its hookEventName, or decision approve or block, on every exit code; deny in decision, and ok, refuse nothing`,
		gate.PostToolUse:  `decision "block" with reason, on every exit code; ok refuses nothing; a block leaves the tool's result`,
		gate.Stop:         claudeCodeStops,
		gate.SubagentStop: claudeCodeStops,
		anyEvent:          `decision "block" with reason, on every exit code; ok refuses nothing`,
	},
}

// readOf is what a dialect reads of a hook's output, or of an HTTP body.
func readOf(d gate.Dialect, event gate.EventName) string {
	return cmp.Or(readings[d][event], readings[d][anyEvent])
}
