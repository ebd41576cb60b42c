package config

import (
	"fmt"
	"strings"

	"stopgate/gate"
	"stopgate/rulehooks/expressions"
)

// maxRules is how many cases a rule hook may have; each is asked in turn.
const maxRules = 50

// readRules reads the cases of a rule hook: ours, docs/rules.md.
func readRules(o *object, event gate.EventName) gate.Evaluator {
	list := o.list("rules")
	switch {
	case len(list) == 0:
		if n := o.value("rules"); n == nil || n.kind == listKind {
			o.errorf(o.child("rules"), o.place("rules"), "rules is missing: a rule hook needs at least one")
		}
	case len(list) > maxRules:
		o.errorf(o.child("rules"), o.place("rules"), "rules has %d cases, want at most %d", len(list), maxRules)
		return nil
	}
	for _, name := range []string{"prompt", "command", "script"} {
		if o.text(name) != "" {
			o.warnf(o.child(name), o.place(name), "%s has no effect on a rule hook", name)
		}
	}
	rules := make(expressions.Rules, 0, len(list))
	for i, n := range list {
		place := fmt.Sprintf("rules[%d]", i)
		if n.kind != objectKind {
			o.errorf(o.child(place), n.pos, "%s is %s, want an object", place, n.describe())
			continue
		}
		rules = append(rules, readRule(&object{findings: o.findings, path: o.child(place), node: n}, event))
	}
	return rules
}

func readRule(o *object, event gate.EventName) (r expressions.Rule) {
	r.Then = gate.Outcome(o.oneOf("then", string(gate.Block), string(gate.Ask), string(gate.Allow)))
	reason := strings.TrimSpace(o.text("reason"))
	switch {
	case o.value("then") == nil:
		o.errorf(o.child("then"), o.node.pos, "then is missing, want one of block, ask, allow")
	case r.Then == gate.Ask && event != gate.PreToolUse:
		o.errorf(o.child("then"), o.place("then"), "then is ask, which has a meaning on PreToolUse only")
	case r.Then == gate.Block && event == gate.Start:
		o.warnf(o.child("then"), o.place("then"), "then is block, and a Start cannot be blocked")
	case r.Then == gate.Block && event == gate.Stop && reason == "":
		o.errorf(o.child("reason"), o.place("reason"), "reason is missing: a Stop that is blocked without one counts as approved")
	case r.Then == gate.Allow && reason != "":
		o.warnf(o.child("reason"), o.place("reason"), "reason has no effect where the rule allows")
	}
	if n := o.typed("if", textKind, "text"); n == nil && o.value("if") == nil {
		o.errorf(o.child("if"), o.node.pos, "if is missing, want an expression; \"true\" always holds")
	} else if n != nil && event != "" {
		r.If, _ = compile(o.findings, o.child("if"), "if", n, o.compiler.Condition, event)
	}
	r.Reason, r.Context = readTemplate(o, "reason", event), readTemplate(o, "additionalContext", event)
	o.unknown(true)
	return r
}

// readTemplate is nil where there is no text.
func readTemplate(o *object, name string, event gate.EventName) *expressions.Template {
	n := o.typed(name, textKind, "text")
	if n == nil || event == "" {
		return nil
	}
	t, _ := compile(o.findings, o.child(name), name, n, o.compiler.Template, event)
	return t
}
