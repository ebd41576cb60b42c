package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"stopgate/gate"
	"stopgate/rulehooks/expressions"
)

// fillIn stands in an event that somebody has to think of: nobody can tell what a
// script refuses without running it on what might harm.
const fillIn = "FILL IN"

// decided writes down what came of the case. One of the other kind that did not come
// out so is left to be filled in, with the other hooks as they are now.
func (d *draftCase) decided(got gate.Decision) {
	for _, v := range got.Hooks {
		if d.hook != nil && v.Name == d.hook.Name {
			d.outcome = v.Outcome
		}
	}
	if d.other == "" || side(d.outcome) == d.other {
		d.want = wantOf(got)
		return
	}
	d.fill, d.event = true, filledIn(d.event)
	wanted := gate.Decision{Outcome: d.other, Hooks: slices.Clone(got.Hooks)}
	for i := range wanted.Hooks {
		if wanted.Hooks[i].Name == d.hook.Name {
			wanted.Hooks[i].Outcome = d.other
		}
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
	others := draftFile{spec: f.spec, hosts: f.hosts}
	var done, all []*gate.Hook
	for _, d := range f.cases {
		all = append(all, d.hook)
	}
	for _, d := range f.cases {
		if slices.Contains(done, d.hook) {
			continue
		}
		done = append(done, d.hook)
		other := f.missing(d.hook)
		if other == "" || !mayRefuse(d.hook) {
			continue
		}
		event, found := otherEvent(ctx, d.hook, d.event, other)
		if !found {
			event = filledIn(d.event)
		}
		name := plainName(d.hook) + map[gate.Outcome]string{gate.Block: " refuses", gate.Allow: " lets pass"}[other]
		c := draftOf(ctx, name, event, aboutEvent(d.hook, event, distinct(all)), true)
		c.other = other
		others.cases = append(others.cases, c)
	}
	return others
}

func distinct(hooks []*gate.Hook) (once []*gate.Hook) {
	for _, h := range hooks {
		if !slices.Contains(once, h) {
			once = append(once, h)
		}
	}
	return once
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
func otherEvent(ctx context.Context, h *gate.Hook, event map[string]any, wanted gate.Outcome) (map[string]any, bool) {
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
		for _, e := range draftEvents(h) {
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
	if input, there := event["tool_input"].(map[string]any); there {
		of := map[string]any{}
		for key := range input {
			of[key] = fillIn
		}
		filled["tool_input"] = of
	}
	return filled
}

// instructions stand above a case that is to be filled in.
func (d *draftCase) instructions() string {
	what := map[gate.Outcome]string{gate.Block: "refuses", gate.Allow: "lets pass"}[d.other]
	return fmt.Sprintf("  # %s: an event that %q %s, in the place of this one. Until then this\n"+
		"  # case fails. Where there is no such event, delete it.\n", fillIn, d.hook.Name, what)
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
