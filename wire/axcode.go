package wire

import (
	"strings"

	"stopgate/gate"
)

// axCode is AX Code's protocol (spec/ax-code.md 24): the payload is the tool's
// own arguments, everything else comes with the [Options]. No member of the
// arguments is ever taken for a fact about the event, since the model writes
// them.
func axCode() Protocol {
	return Protocol{Name: "ax-code", event: lifecycleEvent, decode: decodeAXCode, encode: encodeAXCode, unnamed: true, silent: true}
}

// AXCodeOptions reads the variables that AX Code gives a hook
// (spec/ax-code.md 8); lookup answers empty for one that is not set. cwd is the
// hook's own directory.
func AXCodeOptions(agent, cwd string, lookup func(variable string) string) Options {
	return Options{Event: lookup("HOOK_EVENT"), Agent: agent, Session: lookup("HOOK_SESSION_ID"), Tool: lookup("HOOK_TOOL"), Cwd: cwd}
}

// AXCodeProbe begins the session of a probe of `stopgate doctor`; what follows
// is its mark. A session is the host's own to name, as nothing in the arguments
// is.
const AXCodeProbe = "stopgate-probe:"

func decodeAXCode(m members, ev *gate.Event) {
	ev.Probe, ev.Dry = strings.CutPrefix(ev.Session, AXCodeProbe)
	if !ev.Dry {
		ev.Probe = ""
	}
	switch {
	case ev.Name.ForTool():
		ev.ToolInput = owned(inUTF8(ev.Payload))
		ev.ToolSucceeded = ev.Name != gate.PostToolUseFailure
	case ev.Name == gate.UserPromptSubmit:
		ev.Prompt = m.text("prompt")
		ev.ByPerson = strings.TrimSpace(ev.Prompt) != ""
	}
}

// axFeedbackBytes keeps feedback within what AX Code takes of one hook, 4,000
// characters (spec/ax-code.md 19).
const axFeedbackBytes = 4000

// encodeAXCode answers in the claude-code form, by nested fields. Only
// PreToolUse and UserPromptSubmit can refuse; Stop and the rest are watched only
// (spec/ax-code.md 17).
func encodeAXCode(ev *gate.Event, w wish) answer {
	switch ev.Name {
	case gate.PreToolUse: // takes no context
		if w.refuses() {
			return answer{Specific: specific{HookEventName: "PreToolUse", PermissionDecision: w.permission(), PermissionDecisionReason: w.told()}}
		}
	case gate.UserPromptSubmit: // an ask blocks there (spec/ax-code.md 16)
		if w.refuses() {
			return answer{Specific: specific{HookEventName: "UserPromptSubmit", PermissionDecision: "deny", PermissionDecisionReason: w.reason}}
		}
	case gate.PostToolUse:
		return injected("PostToolUse", cut(w.told(), axFeedbackBytes))
	}
	return answer{}
}
