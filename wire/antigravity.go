package wire

import (
	"stopgate/gate"
)

// antigravity is the protocol of the Gemini API's agents (spec/antigravity.md
// 10–18), by an http hook. Its payload names no event: the URL does.
func antigravity() Protocol {
	return Protocol{Name: antigravityName, event: antigravityEvent, decode: decodeAntigravity, encode: encodeAntigravity,
		unnamed: true, passed: answer{Decision: "allow"}}
}

const antigravityName = "antigravity"

func antigravityEvent(host string) gate.EventName {
	switch host {
	case "pre_tool_execution":
		return gate.PreToolUse
	case "post_tool_execution":
		return gate.PostToolUse
	}
	return ""
}

func decodeAntigravity(m members, ev *gate.Event) {
	ev.Session = m.name("environment_id")
	call := m.object("tool_call")
	ev.ToolName, ev.ToolInput = call.text("name"), owned(call.raw("args"))
	if ev.Name != gate.PostToolUse {
		return
	}
	if fault := m.text("error"); fault != "" {
		ev.ToolSucceeded, ev.ToolResult = false, fault
	}
}

// encodeAntigravity says allow in so many words (spec/antigravity.md 17; a
// silent answer is a denial to some readers, fault gx-034). The answer after a
// tool is not read.
func encodeAntigravity(ev *gate.Event, w wish) answer {
	if ev.Name != gate.PreToolUse {
		return answer{}
	}
	if w = w.unasked(); w.refuses() {
		return answer{Decision: "deny", Reason: w.told()}
	}
	return answer{Decision: "allow"}
}
