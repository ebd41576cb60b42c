package wire

import (
	"strings"

	"stopgate/gate"
)

// copilot is GitHub Copilot CLI's protocol, in both of its forms: a hook
// configured as agentStop gets camelCase members and no event name, one
// configured as Stop gets snake_case ones and hook_event_name. The flat answer
// works for both (EFFECTS §1).
func copilot() Protocol {
	return Protocol{Name: copilotName, event: copilotEvent, decode: decodeCopilot, encode: encodeCopilot, version: copilotVersion}
}

const copilotName = "copilot"

func copilotEvent(host string) gate.EventName {
	switch host {
	case "sessionStart", "SessionStart":
		return gate.Start
	case "userPromptSubmitted", "UserPromptSubmit":
		return gate.UserPromptSubmit
	case "preToolUse", "PreToolUse":
		return gate.PreToolUse
	case "postToolUse", "PostToolUse":
		return gate.PostToolUse
	case "postToolUseFailure", "PostToolUseFailure":
		return gate.PostToolUseFailure
	case "agentStop", "Stop":
		return gate.Stop
	case "subagentStop", "SubagentStop":
		return gate.SubagentStop
	}
	return ""
}

// copilotVersion reads "copilot/1.0.102 (…)" (EFFECTS §4). The http hooks of
// Claude Code and Qwen Code name a library there.
func copilotVersion(userAgent string) string {
	product, _, _ := strings.Cut(userAgent, " ")
	version, ok := strings.CutPrefix(product, copilotName+"/")
	if !ok {
		return ""
	}
	return gate.PlainVersion(version)
}

func decodeCopilot(m members, ev *gate.Event) {
	ev.Session = m.name("sessionId", "session_id")
	ev.Probe = probeMark(m)
	ev.Dry = ev.Probe != ""
	ev.Cwd = m.text("cwd")
	ev.SubAgent = m.name("agentId", "agent_id")
	ev.AgentType = m.name("agentType", "agent_type")
	switch ev.Name {
	case gate.UserPromptSubmit:
		ev.Prompt = m.text("prompt")
		ev.ByPerson = ev.MainAgent() && strings.TrimSpace(ev.Prompt) != ""
	case gate.PreToolUse, gate.PostToolUse, gate.PostToolUseFailure:
		decodeTool(m, ev)
	case gate.Stop, gate.SubagentStop:
		ev.FinalOutput = m.text("response") // SubagentStop only; see [AnswerSought]
		ev.ClaimedActive = m.flag("stop_hook_active", "stopHookActive")
	}
	if ev.TranscriptPath = m.text("transcriptPath", "transcript_path"); ev.TranscriptPath != "" {
		ev.TranscriptFormat = ev.Protocol
	}
}

func encodeCopilot(ev *gate.Event, w wish) answer {
	switch ev.Name {
	case gate.PreToolUse: // a context beside a denial is thrown away (fault gx-023)
		if w.refuses() {
			return answer{PermissionDecision: w.permission(), PermissionDecisionReason: w.told()}
		}
		return answer{AdditionalContext: w.context}
	case gate.PostToolUse:
		if w.refuses() {
			return blocked(w.withheld().told())
		}
		return answer{AdditionalContext: w.context}
	case gate.PostToolUseFailure:
		return answer{AdditionalContext: w.told()}
	case gate.UserPromptSubmit:
		if w.refuses() {
			return blocked(w.reason)
		}
		return answer{AdditionalContext: w.context}
	case gate.Stop, gate.SubagentStop:
		if w.refuses() {
			return blocked(w.reason)
		}
	case gate.Start:
		return answer{AdditionalContext: w.context}
	}
	return answer{}
}
