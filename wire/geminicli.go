package wire

import "stopgate/gate"

// geminiCLI is Gemini CLI's protocol.
func geminiCLI() Protocol {
	return Protocol{Name: "gemini-cli", event: geminiEvent, decode: decodeGeminiCLI, encode: encodeGeminiCLI}
}

func geminiEvent(host string) gate.EventName {
	switch host {
	case "SessionStart":
		return gate.Start
	case "BeforeAgent":
		return gate.UserPromptSubmit
	case "BeforeTool":
		return gate.PreToolUse
	case "AfterTool":
		return gate.PostToolUse
	case "AfterAgent":
		return gate.Stop
	}
	return "" // the events round the model, PreCompress, SessionEnd, Notification
}

func decodeGeminiCLI(m members, ev *gate.Event) {
	decodeLifecycle(m, ev)
	if ev.Name == gate.Stop {
		ev.FinalOutput, ev.AnswersJoined = m.text("prompt_response"), true
	}
}

func encodeGeminiCLI(ev *gate.Event, w wish) answer {
	w = w.unasked() // an ask without a person ends the session (EFFECTS §3.17)
	switch ev.Name {
	case gate.PreToolUse: // takes no context
		if w.refuses() {
			return answer{Decision: "deny", Reason: w.told()}
		}
	case gate.PostToolUse:
		if w.refuses() {
			return answer{Decision: "deny", Reason: w.withheld().told()}
		}
		return injected("AfterTool", w.context)
	case gate.UserPromptSubmit:
		if w.refuses() {
			return blocked(w.reason)
		}
		return injected("BeforeAgent", w.context)
	case gate.Stop:
		if w.refuses() {
			return blocked(w.reason) // no context: BeforeAgent comes back with exactly this
		}
	case gate.Start:
		return injected("SessionStart", w.context)
	}
	return answer{}
}
