package main

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"stopgate/gate"
	"stopgate/wire"
)

// payload is the host's own of the event (captured: spec claude-code.md 7), with
// the mark that tells the gate what it is. It names no transcript, since there
// is none.
func (p probed) payload(project, mark string) []byte {
	if p.host.Name == "ax-code" {
		return p.arguments()
	}
	now := time.Now()
	host, event := p.host.Name, p.event
	camel := host == "copilot" && strings.ToLower(event.Host[:1]) == event.Host[:1]
	m := map[string]any{"session_id": mark, "transcript_path": "", "cwd": project, "hook_event_name": event.Host, "stopgate_probe": mark}
	switch {
	case camel:
		m = map[string]any{"sessionId": mark, "timestamp": now.UnixMilli(), "cwd": project, "transcriptPath": "", "stopgate_probe": mark}
	case host == "gemini-cli" || host == "qwen-code" || host == "copilot":
		m["timestamp"] = now.UTC().Format(time.RFC3339Nano)
	}
	if host == "claude-code" || host == "codex" || host == "qwen-code" {
		m["permission_mode"], m["prompt_id"] = "default", mark
	}
	switch {
	case event.Name.ForTool():
		maps.Copy(m, toolMembers(event.Name, p.tool, mark, camel))
	case event.Name == gate.Stop || event.Name == gate.SubagentStop:
		maps.Copy(m, stopMembers(host, camel))
		if event.Name == gate.SubagentStop {
			m["agent_id"], m["agent_type"] = mark, p.agent
		}
	case event.Name == gate.UserPromptSubmit:
		m["prompt"] = probeText
	case event.Name == gate.Start:
		m["source"] = "startup"
	}
	payload, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings, numbers and booleans
	}
	return payload
}

// arguments are all that AX Code gives a hook on standard input
// (spec/ax-code.md 7).
func (p probed) arguments() []byte {
	m := map[string]any{}
	switch {
	case p.event.Name.ForTool():
		m["command"] = "true"
	case p.event.Name == gate.UserPromptSubmit:
		m["prompt"] = probeText
	}
	payload, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings
	}
	return payload
}

// variables are what AX Code tells a hook beside (spec/ax-code.md 8).
func (p probed) variables(payload []byte, mark string) []string {
	if p.host.Name != "ax-code" {
		return nil
	}
	return []string{"HOOK_EVENT=" + p.event.Host, "HOOK_TOOL=" + p.tool, "HOOK_SESSION_ID=" + wire.AXCodeProbe + mark,
		"HOOK_ARGS_JSON=" + string(payload), "HOOK_ARGS_STDIN=1", "HOOK_PACK="}
}

const probeText = "This is a probe of stopgate doctor."

// toolMembers are those of a tool's events.
func toolMembers(event gate.EventName, tool, mark string, camel bool) map[string]any {
	input := map[string]any{"command": "true", "description": "stopgate doctor"}
	m := map[string]any{"tool_name": tool, "tool_input": input, "tool_use_id": mark}
	if camel {
		m = map[string]any{"toolName": tool, "toolArgs": input}
	}
	switch {
	case event == gate.PostToolUse && camel:
		m["toolResult"] = map[string]any{"resultType": "success", "textResultForLlm": probeText}
	case event == gate.PostToolUse:
		m["tool_response"] = probeText
	case event == gate.PostToolUseFailure:
		m["error"] = probeText
	}
	return m
}

// stopMembers are those of an agent's stop.
func stopMembers(host string, camel bool) map[string]any {
	switch {
	case camel:
		return map[string]any{"stopReason": "end_turn", "stop_hook_active": false}
	case host == "copilot":
		return map[string]any{"stop_reason": "end_turn", "stop_hook_active": false}
	case host == "gemini-cli":
		return map[string]any{"prompt": probeText, "prompt_response": probeText, "stop_hook_active": false}
	}
	return map[string]any{"last_assistant_message": probeText, "stop_hook_active": false}
}
