package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"stopgate/gate"
	"stopgate/rulehooks/expressions"
)

// coverage is what the cases of all test files together have seen of one hook.
type coverage struct {
	Spec     string               `json:"spec"`
	Hook     string               `json:"hook"`
	Event    gate.EventName       `json:"event"`
	Outcomes map[gate.Outcome]int `json:"outcomes"` // how often it came to each
	Matcher  []branch             `json:"matcher,omitempty"`
	When     *whenBranches        `json:"when,omitempty"`
	Rules    []ruleBranch         `json:"rules,omitempty"`
	NoRule   int                  `json:"no_rule,omitempty"` // events on which no rule held

	hook *gate.Hook
}

// asked reports whether the hook was asked at all: its condition, or its cap, did not
// pass it over each time.
func (c *coverage) asked() bool {
	for o := range c.Outcomes {
		if o != gate.Skipped {
			return true
		}
	}
	return false
}

// ruleBranch is one rule of a rule hook, and how many events it decided.
type ruleBranch struct {
	If     string       `json:"if"`
	Then   gate.Outcome `json:"then"`
	Events int          `json:"events"`
}

// branch is one alternative of a matcher, and how many events it matched.
type branch struct {
	Pattern string `json:"pattern"`
	Events  int    `json:"events"`

	matcher gate.Matcher
}

// whenBranches are how many events a hook's condition held for, and did not.
type whenBranches struct {
	True  int `json:"true"`
	False int `json:"false"`
}

// coverageOf adds up what came of every case. A spec that several test files name
// is one.
func coverageOf(suites []*suite) []coverage {
	var all []coverage
	known := map[string]int{} // places in all
	for _, s := range suites {
		for _, spec := range s.specs {
			for i := range spec.Hooks {
				h := &spec.Hooks[i]
				if key := coverKey(spec, h); !has(known, key) {
					known[key] = len(all)
					all = append(all, newCoverage(spec, h))
				}
			}
		}
	}
	for _, s := range suites {
		for _, c := range s.cases {
			for i, d := range c.result.decisions {
				for _, v := range d.Hooks {
					for _, spec := range s.specs {
						for j := range spec.Hooks {
							if h := &spec.Hooks[j]; saidBy(v, spec, h, &c.events[i]) {
								all[known[coverKey(spec, h)]].add(&c.events[i], v, c.result.held[i])
							}
						}
					}
				}
			}
		}
	}
	return all
}

// saidBy reports whether a verdict is of that hook: other agents have hooks of the
// same name. The end of a sub-agent is its own agent's (spec/claude-code.md 12).
func saidBy(v gate.Verdict, s *gate.Spec, h *gate.Hook, ev *gate.Event) bool {
	agent := ev.Agent
	if ev.Name == gate.SubagentStop && s.Kind == gate.AgentSpec {
		agent = cmp.Or(ev.AgentType, agent)
	}
	return (s.Kind == gate.HookSpec || s.Name == agent) && h.Name == v.Name && h.Level == v.Level && h.Type == v.Type && h.Dialect == v.Dialect
}

func has(m map[string]int, key string) bool { _, ok := m[key]; return ok }

func coverKey(s *gate.Spec, h *gate.Hook) string {
	return fmt.Sprintf("%s\x00%s\x00%s\x00%s", s.Source, s.Kind, s.Name, h.Name)
}

func newCoverage(s *gate.Spec, h *gate.Hook) coverage {
	c := coverage{Spec: s.Name, Hook: h.Name, Event: h.Event, Outcomes: map[gate.Outcome]int{}, hook: h}
	if h.When != nil {
		c.When = &whenBranches{}
	}
	rules, _ := h.Rules.(expressions.Rules)
	for _, r := range rules {
		c.Rules = append(c.Rules, ruleBranch{If: r.If.String(), Then: r.Then})
	}
	if h.Event.ForTool() {
		for _, m := range h.Matcher.Alternatives() {
			c.Matcher = append(c.Matcher, branch{Pattern: m.String(), matcher: m})
		}
	}
	return c
}

func (c *coverage) add(ev *gate.Event, v gate.Verdict, held map[hookKey]int) {
	c.Outcomes[v.Outcome]++
	if rule, known := held[hookKey{v.Level, v.Name}]; known && rule == noRule {
		c.NoRule++
	} else if known && rule < len(c.Rules) {
		c.Rules[rule].Events++
	}
	switch {
	case c.When == nil:
	case v.Has(gate.WhenFalse):
		c.When.False++
	case v.Outcome != gate.Skipped && (v.Failure == nil || v.Failure.Code != gate.BadExpression):
		c.When.True++
	}
	names := append([]string{ev.ToolName}, ev.ToolAliases...)
	for i, b := range c.Matcher {
		if slices.ContainsFunc(names, b.matcher.Match) {
			c.Matcher[i].Events++
		}
	}
}

// printCoverage writes a line for each hook, and one for each of its matcher's
// alternatives where there are several.
func printCoverage(w io.Writer, all []coverage) error {
	if all == nil {
		return nil
	}
	var b strings.Builder
	asked, matched, branches, held, rules := 0, 0, 0, 0, 0
	for _, c := range all {
		seen := "never asked"
		if c.asked() {
			asked++
			seen = ""
		}
		if len(c.Outcomes) > 0 {
			var counts []string
			for _, o := range []gate.Outcome{gate.Allow, gate.Block, gate.Ask, gate.NoVerdict, gate.Skipped} {
				if n := c.Outcomes[o]; n > 0 {
					counts = append(counts, fmt.Sprintf("%s %d", o, n))
				}
			}
			seen = strings.TrimPrefix(seen+", "+strings.Join(counts, ", "), ", ")
		}
		fmt.Fprintf(&b, "  %s %s (%s): %s\n", c.Spec, c.Hook, c.Event, seen)
		if c.When != nil {
			fmt.Fprintf(&b, "    when true: %s, false: %s\n", orNever(c.When.True), orNever(c.When.False))
		}
		for i, r := range c.Rules {
			rules++
			if r.Events > 0 {
				held++
			}
			fmt.Fprintf(&b, "    rules[%d] %s if %s: %s\n", i, r.Then, gate.Cut(strings.Join(strings.Fields(r.If), " "), 80), orNever(r.Events))
		}
		if c.NoRule > 0 {
			fmt.Fprintf(&b, "    no rule: %s\n", orNever(c.NoRule))
		}
		for _, m := range c.Matcher {
			branches++
			if m.Events > 0 {
				matched++
			}
			if len(c.Matcher) > 1 {
				fmt.Fprintf(&b, "    matcher %s: %s\n", m.Pattern, orNever(m.Events))
			}
		}
	}
	of := fmt.Sprintf("%d of %s asked, %d of %s matched", asked, plural(len(all), "hook"), matched, plural(branches, "matcher alternative"))
	if rules > 0 {
		of += fmt.Sprintf(", %d of %s held", held, plural(rules, "rule"))
	}
	_, err := fmt.Fprintf(w, "coverage: %s\n%s", of, &b)
	return err
}

// orNever is on how many events something was so.
func orNever(events int) string {
	if events == 0 {
		return "never"
	}
	return plural(events, "event")
}
