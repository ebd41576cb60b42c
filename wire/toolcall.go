package wire

import (
	"encoding/json"
	"strings"

	"stopgate/gate"
)

// decodeTool reads one tool call and what became of it.
//
// Whether the call succeeded is taken only from what the host itself says, never
// from the result's text: the agent could print "Exit Code: 1" to have the hooks
// on its successful calls skipped. Absent means that it succeeded
// (spec/azure.md 26, fault gx-083).
func decodeTool(m members, ev *gate.Event) {
	ev.ToolName = m.text("tool_name", "toolName")
	ev.ToolInput = toolInput(m.raw("tool_input", "toolArgs", "toolInput"))
	if ev.Name == gate.PreToolUse {
		return
	}
	ev.ToolResult = resultText(m.raw("tool_response", "tool_result", "toolResult"), 0)
	response := m.object("tool_response", "tool_result", "toolResult")
	kind := response.text("result_type", "resultType")
	fault := m.raw("error")
	if fault == nil {
		fault = response.raw("error")
	}
	ev.ToolSucceeded = ev.Name == gate.PostToolUse && !says(fault) && !response.flag("is_error", "isError") &&
		(kind == "" || kind == "success")
	if ev.ToolResult == "" && says(fault) {
		ev.ToolResult = resultText(fault, 0)
	}
}

// says reports whether a JSON value says anything: not "", false, {} or [].
func says(raw json.RawMessage) bool {
	switch string(raw) {
	case "", `""`, "false", "null", "{}", "[]":
		return false
	}
	return true
}

// toolInput is the arguments; a string that holds an object of them, as some
// versions of Copilot send, is opened.
func toolInput(raw json.RawMessage) json.RawMessage {
	var inner string
	if json.Unmarshal(raw, &inner) != nil || !strings.HasPrefix(inner, "{") || !json.Valid([]byte(inner)) {
		return raw
	}
	return json.RawMessage(inner)
}

// resultText is the text of a tool's result: hosts send a string, an array of
// content blocks, or an object that wraps either. What has no text that stands
// for the whole is its own JSON.
func resultText(raw json.RawMessage, depth int) string {
	const deepest = 4
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if depth == deepest {
		return string(raw)
	}
	var blocks []json.RawMessage
	if json.Unmarshal(raw, &blocks) == nil {
		texts := make([]string, len(blocks))
		for i, b := range blocks {
			texts[i] = resultText(b, depth+1)
		}
		return strings.Join(texts, "\n")
	}
	var o members
	if json.Unmarshal(raw, &o) != nil {
		return string(raw) // a number, true or false
	}
	for _, wrapper := range []string{"textResultForLlm", "text_result_for_llm", "llmContent"} {
		if inner := o.raw(wrapper); inner != nil {
			return resultText(inner, depth+1)
		}
	}
	switch {
	case o.has("stdout"): // Claude Code's Bash
		return strings.Trim(strings.TrimSuffix(o.text("stdout"), "\n")+"\n"+o.text("stderr"), "\n")
	case o.has("text") && (len(o) == 1 || o.text("type") == "text"):
		return o.text("text")
	case o.has("content") && o.raw("content") != nil && o.raw("content")[0] == '[': // an MCP result
		return resultText(o.raw("content"), depth+1)
	}
	return string(raw)
}
