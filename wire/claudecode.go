package wire

import (
	"strings"

	"stopgate/gate"
)

// claudeCode is Claude Code's protocol, by an http or a command hook.
func claudeCode() Protocol {
	return Protocol{Name: "claude-code", event: lifecycleEvent, decode: decodeClaudeCode, encode: encodeClaudeCode, silent: true}
}

// lifecycleEvent is the gate's name of an event as Claude Code calls it, and
// Codex, Qwen Code and AX Code after it.
func lifecycleEvent(host string) gate.EventName {
	switch host {
	case "SessionStart":
		return gate.Start
	case "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop":
		return gate.EventName(host)
	}
	return ""
}

// lifecycleName is what those hosts call an event of ours.
func lifecycleName(n gate.EventName) string {
	if n == gate.Start {
		return "SessionStart"
	}
	return string(n)
}

func decodeClaudeCode(m members, ev *gate.Event) {
	decodeLifecycle(m, ev)
	ev.PromptID = m.name("prompt_id")
	if strings.HasPrefix(ev.Prompt, "<task-notification>") { // EFFECTS §3.16
		ev.ByPerson = false
	}
}

// decodeLifecycle reads the members that Claude Code, Codex, Gemini CLI and Qwen
// Code have in common.
func decodeLifecycle(m members, ev *gate.Event) {
	ev.Session = m.name("session_id")
	ev.Probe = probeMark(m)
	ev.Dry = ev.Probe != ""
	ev.Cwd = m.text("cwd")
	ev.SubAgent = m.name("agent_id")
	ev.AgentType = m.name("agent_type")
	ev.TranscriptPath = m.text("transcript_path")
	switch ev.Name {
	case gate.UserPromptSubmit:
		ev.Prompt = m.text("prompt")
		ev.ByPerson = ev.MainAgent() && strings.TrimSpace(ev.Prompt) != ""
	case gate.PreToolUse, gate.PostToolUse, gate.PostToolUseFailure:
		decodeTool(m, ev)
	case gate.Stop, gate.SubagentStop:
		ev.FinalOutput = m.text("last_assistant_message")
		ev.ClaimedActive = m.flag("stop_hook_active")
		ev.Background = background(m, ev)
	}
	if ev.Name == gate.SubagentStop { // spec/claude-code.md 12
		if own := m.text("agent_transcript_path"); own != "" {
			ev.TranscriptPath = own
		}
	}
	if ev.TranscriptPath != "" {
		ev.TranscriptFormat = ev.Protocol
	}
}

func encodeClaudeCode(ev *gate.Event, w wish) answer {
	host := lifecycleName(ev.Name)
	switch ev.Name {
	case gate.PreToolUse:
		if !w.refuses() {
			return injected(host, w.context)
		}
		return answer{Specific: specific{host, w.permission(), w.reason, w.context}}
	case gate.PostToolUseFailure: // the call has failed already: there is nothing to withhold
		return injected(host, w.told())
	case gate.Start:
		return injected(host, w.context)
	}
	if !w.refuses() {
		if ev.Name == gate.Stop || ev.Name == gate.SubagentStop {
			return answer{} // here a context would make the turn go on (EFFECTS §1)
		}
		return injected(host, w.context)
	}
	a := blocked(w.reason)
	if ev.Name == gate.Stop || ev.Name == gate.PostToolUse {
		a.Specific = injected(host, w.context).Specific
	}
	return a
}
