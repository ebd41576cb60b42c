package config

import (
	"slices"

	"stopgate/gate"
)

// eventsOf are the events of a dialect's hooks.
func eventsOf(d gate.Dialect) []gate.EventName {
	switch d {
	case gate.Antigravity:
		return []gate.EventName{gate.PreToolUse, gate.PostToolUse}
	case gate.AXCode:
		return []gate.EventName{gate.PreToolUse, gate.UserPromptSubmit, gate.PostToolUse, gate.PostToolUseFailure, gate.Stop, gate.PreCompact,
			gate.SubagentStop, gate.Start, gate.SessionEnd, gate.PostCompact, gate.Interrupt}
	case gate.ClaudeCode:
		return []gate.EventName{gate.Start, gate.UserPromptSubmit, gate.PreToolUse, gate.PostToolUse, gate.PostToolUseFailure, gate.Stop, gate.SubagentStop,
			gate.SessionEnd, gate.PreCompact, gate.PostCompact}
	}
	return []gate.EventName{gate.Start, gate.Stop, gate.PreToolUse, gate.PostToolUse}
}

// EventName is what a dialect calls an event of its own.
func EventName(d gate.Dialect, event gate.EventName) string {
	if d == gate.Antigravity {
		for _, e := range antigravityEvents {
			if e.event == event {
				return e.name
			}
		}
	}
	if event == gate.Start && d != gate.Azure {
		return "SessionStart"
	}
	return string(event)
}

// twin reports whether the same hook stands both on calls that succeed and on
// those that fail.
func (c *converter) twin(d *declared) bool {
	of := map[gate.EventName]gate.EventName{gate.PostToolUse: gate.PostToolUseFailure, gate.PostToolUseFailure: gate.PostToolUse}[d.Event]
	return slices.ContainsFunc(c.hooks, func(o declared) bool {
		return o.Event == of && o.Type == d.Type && o.Matcher.String() == d.Matcher.String() && o.Command == d.Command && slices.Equal(o.Args, d.Args) &&
			(o.Args == nil) == (d.Args == nil) && o.URL == d.URL && slices.Equal(o.Headers, d.Headers) && o.Timeout == d.Timeout && ruleText(o.If) == ruleText(d.If)
	})
}

func ruleText(r *gate.Rule) string {
	if r == nil {
		return ""
	}
	return r.String()
}

// events are the target's events that a hook's own becomes; none where another
// hook is about it; nil: it has no equal, which was said.
func (c *converter) events(d *declared) []gate.EventName {
	there, name := systemNames[c.To], EventName(c.From, d.Event)
	both := c.To == gate.Antigravity && d.Event.ForTool() && c.twin(d)
	if both && d.Event == gate.PostToolUseFailure {
		return []gate.EventName{} // its twin is about these calls too
	}
	if !slices.Contains(eventsOf(c.To), d.Event) {
		hint := ""
		if d.Event == gate.PostToolUseFailure && c.To == gate.Antigravity {
			hint = ": post_tool_execution is about calls that succeed too"
		}
		c.lose(d, "event", "%s has no event like %s%s", there, name, hint)
		return nil
	}
	if c.To == gate.AXCode && (d.Event == gate.Stop || d.Event == gate.SubagentStop) && (d.Type != gate.CommandHook || lawOf(d) != watches) {
		c.lose(d, "event", "AX Code only watches %s: this hook could keep nobody from stopping", d.Event)
		return nil
	}
	if !d.Event.ForTool() && c.From == gate.ClaudeCode && d.Matcher.String() != "" && !d.Matcher.Match("") {
		c.lose(d, "", "%s has no matcher on %s: this hook would be asked about every one", there, EventName(c.To, d.Event))
		return nil
	}
	if d.Event != gate.PostToolUse {
		return []gate.EventName{d.Event}
	}
	switch {
	case both:
	case c.To == gate.Antigravity:
		c.once(d, "event: post_tool_execution is also about calls that failed, as %s is not", name)
	case c.From == gate.Antigravity && c.To == gate.Azure:
		c.once(d, "event: PostToolUse is not about calls that failed, as %s is", name)
	case c.From == gate.Antigravity:
		return []gate.EventName{gate.PostToolUse, gate.PostToolUseFailure}
	}
	return []gate.EventName{gate.PostToolUse}
}
