package expressions

import (
	"context"

	"stopgate/gate"
)

// Rule is one case of a rule hook.
type Rule struct {
	If      *Condition
	Then    gate.Outcome // allow, block or, on PreToolUse, ask
	Reason  *Template    // nil: none
	Context *Template    // the additionalContext; nil: none
}

// Rules are the cases of a rule hook: the first that holds decides, and where none
// does the event is allowed. They are a [gate.Evaluator].
type Rules []Rule

// Evaluate decides an event; see [Rules.Decide].
func (r Rules) Evaluate(ctx context.Context, in gate.Input) gate.Verdict {
	v, ended := inTime(ctx, func() gate.Verdict {
		v, _ := r.Decide(ctx, in)
		return v
	})
	if !ended {
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Timeout, Message: "the rules were not answered in time"}}
	}
	return v
}

// Decide decides an event, and says which case did: its place, or -1 where none holds
// or there is no verdict. A case that cannot be answered leaves open whether it holds:
// there is a verdict only where that makes no difference, since what comes behind it
// decides the same.
func (r Rules) Decide(ctx context.Context, in gate.Input) (v gate.Verdict, decided int) {
	a := &asked{Context: ctx, in: in}
	var open []gate.Outcome // of cases that were not answered
	var why *gate.Failure   // the first of them
	settled := func(then gate.Outcome) bool {
		for _, o := range open {
			if o != then {
				return false
			}
		}
		return true
	}
	for i, rule := range r {
		holds, failure := rule.If.holds(ctx, a)
		switch {
		case failure != nil && failure.Code == gate.Timeout:
			return gate.Verdict{Outcome: gate.NoVerdict, Failure: failure}, -1
		case failure != nil:
			if open = append(open, rule.Then); why == nil {
				why = failure
			}
		case holds && settled(rule.Then):
			return gate.Verdict{Outcome: rule.Then, Reason: rule.Reason.render(ctx, a), AdditionalContext: rule.Context.render(ctx, a)}, i
		case holds:
			return gate.Verdict{Outcome: gate.NoVerdict, Failure: why}, -1
		}
	}
	if !settled(gate.Allow) {
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: why}, -1
	}
	return gate.Verdict{Outcome: gate.Allow}, -1
}
