package wire

import (
	"encoding/json"
	"strings"

	"stopgate/gate"
	"stopgate/internal/jsonscan"
)

// decodeTool reads one tool call and what became of it.
//
// Whether the call succeeded is taken only from what the host itself says, never
// from the result's text: the agent could print "Exit Code: 1" to have the hooks
// on its successful calls skipped. Absent means that it succeeded
// (spec/azure.md 26, fault gx-083).
func decodeTool(m members, ev *gate.Event) {
	ev.ToolName = m.name("tool_name", "toolName")
	ev.ToolInput = toolInput(m.raw("tool_input", "toolArgs", "toolInput"))
	if ev.Name == gate.PreToolUse {
		return
	}
	ev.ToolResult = resultText(m.raw("tool_response", "tool_result", "toolResult"))
	response := m.object("tool_response", "tool_result", "toolResult")
	kind := response.text("result_type", "resultType")
	fault := m.raw("error")
	if fault == nil {
		fault = response.raw("error")
	}
	ev.ToolSucceeded = ev.Name == gate.PostToolUse && !says(fault) && !response.flag("is_error", "isError") &&
		(kind == "" || kind == "success")
	if ev.ToolResult == "" && says(fault) {
		ev.ToolResult = resultText(fault)
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
	inner, _ := stringOf(raw)
	if !strings.HasPrefix(inner, "{") || !jsonscan.Valid([]byte(inner)) {
		return owned(raw)
	}
	return json.RawMessage(inner)
}

// resultText is the text of a tool's result: hosts send a string, an array of
// content blocks, or an object that wraps either. What has no text that stands
// for the whole, is nested deeper or has more blocks than results have, is its
// own JSON.
func resultText(raw json.RawMessage) string {
	r := resultReader{blocks: 1000}
	return r.text(raw, 0)
}

type resultReader struct {
	blocks int // how many more are opened: a hostile result has millions
}

func (r *resultReader) text(raw json.RawMessage, depth int) string {
	const deepest = 4
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case raw[0] == '"':
		if s, ok := stringOf(raw); ok {
			return s
		}
	case depth == deepest:
	case raw[0] == '[':
		if s, ok := r.array(raw, depth+1); ok {
			return s
		}
	case raw[0] == '{':
		if o, ok := jsonscan.Members(raw); ok {
			return r.object(raw, o, depth+1)
		}
	}
	return string(raw)
}

func (r *resultReader) array(raw json.RawMessage, depth int) (string, bool) {
	blocks, ok := jsonscan.Elements(raw, r.blocks)
	if !ok {
		r.blocks = 0
		return "", false
	}
	var texts []string
	for _, block := range blocks {
		if r.blocks <= 0 {
			return "", false
		}
		texts = append(texts, r.text(block, depth))
		r.blocks--
	}
	return strings.Join(texts, "\n"), true
}

// object is the text that an object stands for, else its JSON.
func (r *resultReader) object(raw json.RawMessage, o members, depth int) string {
	for _, wrapper := range []string{"textResultForLlm", "text_result_for_llm", "llmContent"} {
		if inner := o.raw(wrapper); inner != nil {
			return r.text(inner, depth)
		}
	}
	content := o.raw("content")
	switch {
	case o.has("stdout"): // Claude Code's Bash
		return strings.Trim(strings.TrimSuffix(o.text("stdout"), "\n")+"\n"+o.text("stderr"), "\n")
	case o.has("text") && (len(o) == 1 || o.text("type") == "text"):
		return o.text("text")
	case len(content) > 0 && content[0] == '[': // an MCP result
		return r.text(content, depth)
	}
	return string(raw)
}
