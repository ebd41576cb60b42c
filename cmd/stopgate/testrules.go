package main

import (
	"context"
	"sync"

	"stopgate/gate"
	"stopgate/rulehooks"
	"stopgate/rulehooks/expressions"
)

// heldRules asks rule hooks, and keeps which of their rules held: a hook of three rules
// that were never all seen to hold is not tested. It is a [gate.Evaluator].
type heldRules struct {
	mu   sync.Mutex
	held map[hookKey]int // noRule: none held
}

// hookKey is which hook of an event it is.
type hookKey struct {
	level gate.Level
	name  string
}

// noRule is the place of a rule where none held, and so the hook allowed.
const noRule = -1

// Evaluate implements [gate.Evaluator].
func (r *heldRules) Evaluate(ctx context.Context, in gate.Input) gate.Verdict {
	rules, written := in.Hook.Rules.(expressions.Rules)
	if !written {
		return rulehooks.Evaluate(ctx, in)
	}
	v, at := rules.Decide(ctx, in)
	if v.Failure == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.held == nil {
			r.held = map[hookKey]int{}
		}
		r.held[hookKey{in.Hook.Level, in.Hook.Name}] = at
	}
	return v
}

// take is what held since it was last asked.
func (r *heldRules) take() map[hookKey]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.held
	r.held = nil
	return held
}
