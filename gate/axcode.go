package gate

// axCodeConcerns: by event and matcher; a matcher that is not everything's needs
// a tool (spec/ax-code.md 5, 6).
func axCodeConcerns(h *Hook, ev *Event) bool {
	return h.Event == ev.Name && h.Matcher.Match(inDialect(ev, axCodeTool))
}

// axCodeTool is AX Code's name of a tool.
func axCodeTool(canonical string) string {
	switch canonical {
	case "Bash":
		return "bash"
	case "Read":
		return "read"
	case "Write":
		return "write"
	case "Edit":
		return "edit"
	case "Glob":
		return "glob"
	case "Grep":
		return "grep"
	case "WebFetch":
		return "webfetch"
	case "WebSearch":
		return "websearch"
	case "Task":
		return "task"
	case "TodoWrite":
		return "todowrite"
	}
	return ""
}

// axCodePayload is the tool's arguments alone (spec/ax-code.md 7).
func axCodePayload(ev *Event) []byte { return inputObject(ev.ToolInput) }

// axCodeRuling: a deny beats an earlier ask, of several asks the first one's
// reason is kept (spec/ax-code.md 16), feedback is joined.
func axCodeRuling(ev *Event, verdicts []Verdict) ruling {
	r := strictest(ev, verdicts)
	if len(r.reasons) > 1 {
		r.reasons = r.reasons[:1]
	}
	return r
}
