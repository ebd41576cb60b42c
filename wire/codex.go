package wire

import (
	"stopgate/gate"
)

// codex is Codex's protocol. It checks answers strictly and then fails open:
// one key too many, and the call runs or the turn ends (EFFECTS §3.3).
func codex() Protocol {
	return Protocol{Name: "codex", event: lifecycleEvent, decode: decodeLifecycle, encode: encodeCodex, silent: true}
}

func encodeCodex(ev *gate.Event, w wish) answer {
	w = w.unasked()
	host := lifecycleName(ev.Name)
	switch ev.Name {
	case gate.Stop, gate.SubagentStop:
		if w.refuses() {
			return blocked(w.reason)
		}
	case gate.PreToolUse:
		if w.refuses() {
			return answer{Specific: specific{host, "deny", w.reason, w.context}}
		}
		return injected(host, w.context)
	case gate.PostToolUse:
		a := injected(host, w.context)
		if w.refuses() {
			a.Decision, a.Reason = "block", w.withheld().reason
		}
		return a
	case gate.UserPromptSubmit:
		if w.refuses() {
			return blocked(w.reason)
		}
		return injected(host, w.context)
	case gate.Start:
		return injected(host, w.context)
	}
	return answer{} // Codex has no PostToolUseFailure
}
