package gate

// claudeCodeStops is how many Stops in a row hooks of Claude Code reject; then
// the loop ends (spec/claude-code.md 7).
const claudeCodeStops = 8

// claudeCodeConcerns: by event, and on tool events by the matcher
// (spec/claude-code.md 2).
func claudeCodeConcerns(h *Hook, ev *Event) bool {
	return h.Event == ev.Name && (!h.Event.ForTool() || h.Matcher.Match(ev.ToolName))
}

// claudeCodePayload is a hook's input as Claude Code itself gives it.
func claudeCodePayload(ev *Event, loop loopState, transcript Transcript) []byte {
	return mustJSON(map[string]any{"session_id": ev.Session, "hook_event_name": ev.Name})
}

// claudeCodeRuling: deny beats ask beats allow; every context is kept
// (spec/claude-code.md 5).
func claudeCodeRuling(ev *Event, verdicts []Verdict) ruling {
	r := strictest(ev, verdicts)
	for i := range verdicts {
		if v := &verdicts[i]; v.AdditionalContext != "" {
			v.Injected = true
			r.contexts = append(r.contexts, v.AdditionalContext)
		}
	}
	return r
}

// claudeCodeEvent is what Claude Code calls an event.
func claudeCodeEvent(n EventName) string {
	if n == Start {
		return "SessionStart"
	}
	return string(n)
}
