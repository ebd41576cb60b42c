package wire

import (
	"stopgate/gate"
)

// qwenCode is Qwen Code's protocol. It is never sent continue:false, which
// makes it go on, and only ever application/json (EFFECTS §3.5, §3.7).
func qwenCode() Protocol {
	return Protocol{Name: "qwen-code", event: lifecycleEvent, decode: decodeQwenCode, encode: encodeQwenCode}
}

// decodeQwenCode takes a UserPromptSubmit for one only with submitted_prompt:
// without, it came after a tool round or carries a stop's reason, and a block
// would end the session (EFFECTS §3.15).
func decodeQwenCode(m members, ev *gate.Event) {
	if ev.Name == gate.UserPromptSubmit && m.raw("submitted_prompt") == nil {
		ev.Name = ""
	}
	decodeLifecycle(m, ev)
}

func encodeQwenCode(ev *gate.Event, w wish) answer {
	host := lifecycleName(ev.Name)
	switch ev.Name {
	case gate.PreToolUse: // takes no context
		if w.refuses() {
			return answer{Specific: specific{HookEventName: host, PermissionDecision: w.permission(), PermissionDecisionReason: w.told()}}
		}
	case gate.PostToolUse, gate.PostToolUseFailure: // a block has no effect (EFFECTS §3.6)
		return injected(host, w.told())
	case gate.UserPromptSubmit:
		if w.refuses() {
			return blocked(w.reason)
		}
		return injected(host, w.context)
	case gate.Stop, gate.SubagentStop:
		if w.refuses() {
			return blocked(w.reason)
		}
	case gate.Start:
		return injected(host, w.context)
	}
	return answer{}
}
