package gate

import (
	"bytes"
	"encoding/json"
	"slices"
)

// hookContext is the azure context: exactly the names and types of
// spec/azure.md 25, and what DESIGN §9 adds.
type hookContext struct {
	HookEventName    EventName `json:"hook_event_name"`
	AgentName        string    `json:"agent_name"`
	CurrentTurn      int       `json:"current_turn"`
	MaxTurns         int       `json:"max_turns"`
	ExecutionSummary string    `json:"execution_summary"`
	SessionID        string    `json:"session_id"`
	HookName         string    `json:"hook_name"`
	TranscriptPath   string    `json:"transcript_path,omitempty"`
	*stopContext
	*toolContext
}

type stopContext struct {
	FinalOutput string `json:"final_output"`
	loopState
	BackgroundTasks []json.RawMessage `json:"background_tasks,omitempty"` // spec/claude-code.md 11
}

type loopState struct {
	StopHookActive     bool `json:"stop_hook_active"`
	StopRejectionCount int  `json:"stop_rejection_count"`
}

type toolContext struct {
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	*toolOutcome
}

type toolOutcome struct {
	ToolResult    string `json:"tool_result"`
	ToolSucceeded bool   `json:"tool_succeeded"`
}

// contextJSON renders what a hook is told of the event. loop is what a Stop
// hook sees of earlier rejections.
func contextJSON(ev *Event, h *Hook, loop loopState, transcript Transcript) []byte {
	c := hookContext{
		HookEventName: ev.Name.hookEvent(), AgentName: ev.Agent, CurrentTurn: ev.Turn, MaxTurns: ev.MaxTurns,
		SessionID: ev.Session, HookName: h.Name,
	}
	if transcript != nil {
		c.ExecutionSummary, c.TranscriptPath = transcript.Path(), transcript.RawPath()
	}
	switch c.HookEventName {
	case Stop:
		c.stopContext = &stopContext{ev.FinalOutput, loop, ev.Background}
	case PreToolUse, PostToolUse:
		c.toolContext = &toolContext{ToolName: ev.ToolName, ToolInput: inputObject(ev.ToolInput)}
		if c.HookEventName == PostToolUse {
			c.toolContext.toolOutcome = &toolOutcome{ev.ToolResult, ev.ToolSucceeded}
		}
	}
	return mustJSON(c)
}

// mustJSON is the JSON of what always has one.
func mustJSON(v any) []byte {
	b, err := PlainJSON(v)
	if err != nil {
		panic(err)
	}
	return b
}

// inputObject is a tool's input as hooks get it: always an object (spec/azure.md
// 25). Tools take what they like (fault G29), and a hook that expects an object
// must not fail, and so let pass, on another value: that is put into one.
func inputObject(input json.RawMessage) json.RawMessage {
	input = bytes.TrimSpace(input)
	switch {
	case !json.Valid(input) || string(input) == "null":
		return json.RawMessage("{}")
	case input[0] == '{':
		return input
	}
	return slices.Concat(json.RawMessage(`{"value":`), input, json.RawMessage("}"))
}

// PlainJSON is json.Marshal that leaves <, > and & readable for scripts and
// models.
func PlainJSON(v any) ([]byte, error) {
	var b jsonBuffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b[:len(b)-1], nil // Encode ends with a newline
}

type jsonBuffer []byte

func (b *jsonBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
