package main

import (
	"context"
	"fmt"

	"stopgate/gate"
	"stopgate/rulehooks/expressions"
)

// ruleDraft is a rule that a case is drafted for.
type ruleDraft struct {
	at   int // its place among the hook's
	then gate.Outcome
	text string // its condition
}

// byRule drafts a case for each rule that none of the cases was decided by: with an
// event found by the conditions' words, else one to be filled in.
func (f *draftFile) byRule(ctx context.Context) draftFile {
	more := draftFile{spec: f.spec, hooks: f.hooks, hosts: f.hosts}
	for _, h := range f.hooks {
		rules, _ := h.Rules.(expressions.Rules)
		var first *draftCase
		seen := map[int]bool{}
		for i := range f.cases {
			if d := &f.cases[i]; d.hook == h {
				seen[d.held] = true
				if first == nil {
					first = d
				}
			}
		}
		if first == nil { // that it has none is said already
			continue
		}
		found := ruleEvents(ctx, h, rules, first.event, seen)
		for i, r := range rules {
			if seen[i] {
				continue
			}
			event := found[i]
			if event == nil {
				event = filledIn(first.event)
			}
			c := draftOf(ctx, fmt.Sprintf("%s rules %d", plainName(h), i), event, aboutEvent(h, event, f.hooks), true)
			c.rule = &ruleDraft{at: i, then: r.Then, text: r.If.String()}
			more.cases = append(more.cases, c)
		}
	}
	return more
}

// ruleEvents are events like one, by the rule that decides them, for rules that were not
// seen to. Conditions run nothing.
func ruleEvents(ctx context.Context, h *gate.Hook, rules expressions.Rules, event map[string]any, seen map[int]bool) map[int]map[string]any {
	ctx, cancel := context.WithTimeout(ctx, maxTrying)
	defer cancel()
	missing := 0
	for i := range rules {
		if !seen[i] {
			missing++
		}
	}
	found := map[int]map[string]any{}
	if missing == 0 {
		return found
	}
	for e := range likeEvents(event, conditionsOf(h)) {
		if ctx.Err() != nil {
			break
		}
		in, ok := inputOf(h, e)
		if !ok || h.When != nil && !whenHolds(ctx, h, e) {
			continue
		}
		if v, at := rules.Decide(ctx, in); v.Failure == nil && at != noRule && !seen[at] && found[at] == nil {
			if found[at] = e; len(found) == missing {
				break
			}
		}
	}
	return found
}
