package gate

import (
	"slices"
	"strings"
)

// azureConcerns: an azure hook is about an event by its name, and about a tool
// by its matcher, which is tried on a host's own name of it and on the canonical
// ones (DESIGN §7). PostToolUse hooks are not about failed calls
// (spec/azure.md 26).
func azureConcerns(h *Hook, ev *Event) bool {
	if h.Event != ev.Name.hookEvent() || h.Event == PostToolUse && !ev.ToolSucceeded {
		return false
	}
	return !h.Event.ForTool() || h.Matcher.Match(ev.ToolName) || slices.ContainsFunc(ev.ToolAliases, h.Matcher.Match)
}

// azureRuling: deny beats ask beats allow, all reasons count (spec/azure.md 37,
// 39, 48), the last additionalContext is the one injected (46).
func azureRuling(ev *Event, verdicts []Verdict) ruling {
	r := strictest(ev, verdicts)
	for i := len(verdicts) - 1; i >= 0; i-- {
		if v := &verdicts[i]; strings.TrimSpace(v.AdditionalContext) != "" {
			v.Injected = true
			r.contexts = []string{v.AdditionalContext}
			break
		}
	}
	return r
}

// strictest: deny beats ask beats allow, with the reasons of all hooks that hold
// it.
func strictest(ev *Event, verdicts []Verdict) ruling {
	r := ruling{outcome: Allow}
	var asks []string
	for i := range verdicts {
		switch v := &verdicts[i]; {
		case v.objects() && ev.Name != Start:
			r.outcome = Block
			r.reasons = append(r.reasons, v.Reason)
		case v.Outcome == Ask:
			asks = append(asks, v.Reason)
		}
	}
	if r.outcome == Allow && asks != nil {
		return ruling{outcome: Ask, reasons: asks}
	}
	return r
}
