package wire

import (
	"fmt"
	"slices"
	"strings"

	"stopgate/gate"
	"stopgate/internal/nearest"
)

// maxName is how long a name may be, in bytes: a session's must fit into a path
// of the API, and lists of evaluations repeat them all.
const maxName = 512

// DecodeNative reads the body of POST /v1/evaluate: the azure context of
// spec/azure.md 25, `session_id`, `transcript` (a string or an array of
// messages), `labels` and, for events that azure does not have, `prompt`, `prompt_id`,
// `agent_id` and `agent_type`.
//
// `tool_input` may be any JSON value and `tool_result` too, since tools take and
// answer what they like. `tool_succeeded` absent means true. Every wrong type is
// named in one [gate.Error] with CodeValidation; a body that is no JSON object
// is CodeInvalidJSON.
func DecodeNative(body []byte) (gate.Event, error) { return decodeNative(body, Options{}) }

// decodeNative takes the event's and the agent's name from the options where
// the body has none.
func decodeNative(body []byte, opt Options) (gate.Event, error) {
	ev := gate.Event{Protocol: gate.Native, Agent: opt.Agent, Payload: body, ToolSucceeded: true, ByPerson: true}
	m, err := object(body)
	if err != nil {
		return ev, err
	}
	f := strictly{of: m}
	name := opt.Event
	f.text("hook_event_name", &name)
	f.text("agent_name", &ev.Agent)
	f.text("session_id", &ev.Session)
	f.count("current_turn", &ev.Turn)
	f.count("max_turns", &ev.MaxTurns)
	f.text("execution_summary", &ev.TranscriptPath)
	f.text("final_output", &ev.FinalOutput)
	f.flag("stop_hook_active", &ev.ClaimedActive)
	f.count("stop_rejection_count", &ev.ClaimedRejections)
	f.text("tool_name", &ev.ToolName)
	ev.ToolInput = owned(m["tool_input"])
	ev.ToolResult = m.text("tool_result")
	f.flag("tool_succeeded", &ev.ToolSucceeded)
	f.text("prompt", &ev.Prompt)
	f.text("prompt_id", &ev.PromptID)
	f.text("agent_id", &ev.SubAgent)
	f.text("agent_type", &ev.AgentType)
	f.text("cwd", &ev.Cwd)
	f.labels("labels", &ev.Labels)
	if t := m.raw("transcript"); t != nil {
		if t[0] != '"' && t[0] != '[' {
			f.wrong("transcript", "a string or an array of messages")
		}
		ev.InlineTranscript = owned(t)
	}
	if opt.Transcript != "" {
		ev.TranscriptPath, ev.TranscriptSession, ev.TranscriptStale = "", opt.Transcript, opt.Stale
	}
	ev.Name = gate.EventName(name)
	if ev.Name == gate.PostToolUseFailure {
		ev.ToolSucceeded = false
	}
	if !ev.Name.Known() && !f.found("hook_event_name") {
		f.wrong("hook_event_name", "one of "+strings.Join(eventNames(), ", ")+meant(name))
	}
	if ev.Agent == "" && !f.found("agent_name") {
		f.wrong("agent_name", "the name of an agent spec, or \"default\"")
	}
	if ev.Name.ForTool() && ev.ToolName == "" && !f.found("tool_name") {
		f.wrong("tool_name", "the name of the tool, since "+name+" is about one tool call")
	}
	for _, n := range []struct{ key, name string }{
		{"session_id", ev.Session}, {"agent_name", ev.Agent}, {"tool_name", ev.ToolName},
		{"prompt_id", ev.PromptID}, {"agent_id", ev.SubAgent}, {"agent_type", ev.AgentType},
	} {
		if len(n.name) > maxName || strings.ContainsRune(n.name, 0) {
			f.wrong(n.key, fmt.Sprintf("at most %d bytes without NUL", maxName))
		}
	}
	return ev, f.err()
}

// found reports whether the member was already found wrong.
func (f *strictly) found(key string) bool {
	return slices.ContainsFunc(f.findings, func(d gate.Finding) bool { return d.Path == key })
}

func eventNames() []string {
	names := make([]string, len(gate.EventNames))
	for i, n := range gate.EventNames {
		names[i] = string(n)
	}
	return names
}

// meant is the tail of a message about an event that there is not: the one that
// some host calls so, as SessionStart, or that is spelt like it.
func meant(name string) string {
	for _, p := range protocols() {
		if p.event == nil {
			continue
		}
		if ours := p.event(name); ours != "" {
			return `; did you mean "` + string(ours) + `"?`
		}
	}
	return nearest.DidYouMean(name, eventNames())
}

// EncodeNative writes the answer of POST /v1/evaluate (DESIGN §5).
func EncodeNative(d gate.Decision) []byte { return marshal(d.WithoutEvidence()) }
