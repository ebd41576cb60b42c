package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
	"stopgate/rulehooks/expressions"
)

// fillIn stands in an event that somebody has to think of: nobody can tell what a
// script refuses without running it on what might harm.
const fillIn = "FILL IN"

// decided writes down what came of the case, and which rule of each hook held. One of
// the other kind that did not come out so is left to be filled in, with the other hooks
// as they are now; so is one that a hook could not answer, which is nothing to be wanted.
func (d *draftCase) decided(got gate.Decision, held map[hookKey]int) {
	d.held, d.lacks = noRule, ""
	wanted := gate.Decision{Outcome: got.Outcome, Hooks: slices.Clone(got.Hooks)}
	for i, v := range got.Hooks {
		if d.hook != nil && v.Name == d.hook.Name {
			d.outcome = v.Outcome
			if rule, known := held[hookKey{v.Level, v.Name}]; known {
				d.held = rule
			}
		}
		if v.Failure != nil && d.lacks == "" {
			d.lacks = fmt.Sprintf("%q could not answer (%s)", v.Name, v.Failure)
		}
		if v.Outcome == gate.NoVerdict {
			wanted.Hooks[i].Outcome = gate.Allow
		}
	}
	asMeant := d.rule == nil && (d.other == "" || side(d.outcome) == d.other) || d.rule != nil && d.held == d.rule.at
	if d.lacks == "" && asMeant {
		d.want = wantOf(got)
		return
	}
	d.fill = true
	if d.rule != nil || d.other != "" {
		wanted.Outcome = d.other
		if d.rule != nil {
			wanted.Outcome = d.rule.then
		}
		for i := range wanted.Hooks {
			if wanted.Hooks[i].Name == d.hook.Name {
				wanted.Hooks[i].Outcome = wanted.Outcome
			}
		}
		d.event = filledIn(d.event)
	}
	d.want = wantOf(wanted)
}

// side is block for what refuses, allow for what lets pass, else empty.
func side(o gate.Outcome) gate.Outcome {
	switch o {
	case gate.Block, gate.Ask:
		return gate.Block
	case gate.Allow, gate.Skipped:
		return gate.Allow
	}
	return ""
}

// others drafts, for each rule and command hook whose cases all come out alike, one
// that comes out otherwise: of a rule with an event found by its conditions, of a
// command with one that is to be filled in.
func (f *draftFile) others(ctx context.Context) draftFile {
	others := draftFile{spec: f.spec, hooks: f.hooks, hosts: f.hosts}
	var done []*gate.Hook
	for _, d := range f.cases {
		if slices.Contains(done, d.hook) {
			continue
		}
		done = append(done, d.hook)
		other := f.missing(d.hook)
		if other == "" || !mayRefuse(d.hook) {
			continue
		}
		event, found := otherEvent(ctx, d.hook, d.event, other, f.hooks)
		if !found {
			event = filledIn(d.event)
		}
		name := plainName(d.hook) + map[gate.Outcome]string{gate.Block: " refuses", gate.Allow: " lets pass"}[other]
		c := draftOf(ctx, name, event, aboutEvent(d.hook, event, f.hooks), true)
		c.other = other
		others.cases = append(others.cases, c)
	}
	return others
}

// missing is the side that no case of a hook came out on; empty: both are there, or
// neither.
func (f *draftFile) missing(h *gate.Hook) gate.Outcome {
	seen := map[gate.Outcome]bool{}
	for _, d := range f.cases {
		if d.hook == h {
			seen[side(d.outcome)] = true
		}
	}
	switch {
	case seen[gate.Allow] && !seen[gate.Block]:
		return gate.Block
	case seen[gate.Block] && !seen[gate.Allow]:
		return gate.Allow
	}
	return ""
}

// refusingWord is a word of a script that refuses something.
var refusingWord = regexp.MustCompile(`block|deny|exit[ (]2\b|["']ok["']\s*:\s*(?:false|False)`)

// mayRefuse reports whether a hook is one that refuses: rules that say so, and
// commands where that is what hooks are for, or that have a word for it.
func mayRefuse(h *gate.Hook) bool {
	switch h.Type {
	case gate.RuleHook:
		rules, _ := h.Rules.(expressions.Rules)
		return slices.ContainsFunc(rules, func(r expressions.Rule) bool { return r.Then != gate.Allow })
	case gate.CommandHook:
		return h.Event == gate.PreToolUse || h.Event == gate.Stop || h.Event != gate.Start && refusingWord.MatchString(h.Command+h.Script)
	}
	return false
}

// otherEvent is an event that a hook decides otherwise, as far as its conditions
// tell: they run nothing.
func otherEvent(ctx context.Context, h *gate.Hook, event map[string]any, wanted gate.Outcome, all []*gate.Hook) (map[string]any, bool) {
	ctx, cancel := context.WithTimeout(ctx, maxTrying)
	defer cancel()
	if h.Type == gate.RuleHook {
		for e := range likeEvents(event, conditionsOf(h)) {
			if o := ruled(ctx, h, e); side(o) == wanted && o != gate.Skipped {
				return e, true
			}
			if ctx.Err() != nil {
				break
			}
		}
	}
	if h.When != nil && wanted == gate.Allow {
		for _, e := range draftEvents(h, all) {
			if !whenHolds(ctx, h, e) {
				return e, true
			}
		}
	}
	return nil, false
}

// filledIn is an event in which each text is to be filled in.
func filledIn(event map[string]any) map[string]any {
	filled := maps.Clone(event)
	for _, key := range []string{"final_output", "prompt", "tool_result"} {
		if _, there := event[key]; there {
			filled[key] = fillIn
		}
	}
	for _, within := range []string{"tool_input", "labels"} {
		if members, there := event[within].(map[string]any); there {
			of := map[string]any{}
			for key := range members {
				of[key] = fillIn
			}
			filled[within] = of
		}
	}
	if talk, there := event[talkKey].(draftTalk); there {
		filled[talkKey] = draftTalk{prompt: fillIn, tools: talk.tools}
	}
	return filled
}

// subject is what the case is for.
func (d *draftCase) subject() string {
	if d.rule != nil {
		return fmt.Sprintf("rules[%d] of hook %q (%s if %s)", d.rule.at, d.hook.Name, d.rule.then, gate.Cut(strings.Join(strings.Fields(d.rule.text), " "), 80))
	}
	return fmt.Sprintf("hook %q", d.hook.Name)
}

// instructions stand above a case that is to be filled in.
func (d *draftCase) instructions() string {
	what := fmt.Sprintf("an event that %q %s, in the place of this one", d.hook.Name, map[gate.Outcome]string{gate.Block: "refuses", gate.Allow: "lets pass"}[d.other])
	switch {
	case d.rule != nil:
		what = "an event for " + d.subject()
	case d.lacks != "" && d.other == "":
		what = "what this event lacks, since " + strings.Join(strings.Fields(d.lacks), " ")
	}
	return fmt.Sprintf("  # %s: %s. Until then this\n  # case fails. Where there is no such event, delete it.\n", fillIn, what)
}

// unfilled is how many cases are to be filled in.
func (f *draftFile) unfilled() (n int) {
	for _, d := range f.cases {
		if d.fill {
			n++
		}
	}
	return n
}
