package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stopgate/gate"
)

// unmarked asks hooks only about a payload as it came. Where secrets were taken out
// of it when it was stored, a hook that looks for them would let pass what it has
// blocked.
func (a *again) unmarked(e gate.Evaluator) gate.Evaluator {
	return gate.EvaluatorFunc(func(ctx context.Context, in gate.Input) gate.Verdict {
		if !a.marked || a.sameThen(in.Hook) {
			return e.Evaluate(ctx, in)
		}
		o := a.secretsGone()
		a.first.CompareAndSwap(nil, o)
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Internal, Message: o.Message}}
	})
}

// sameThen reports whether a hook saw marks then, too: judges who never see secrets.
func (a *again) sameThen(h *gate.Hook) bool {
	return a.hides != nil && h.Type == gate.PromptHook && h.When == nil
}

func (a *again) secretsGone() *obstacle {
	return &obstacle{Code: secretsGone, Message: "secrets were taken out of its payload when it was stored, or of its conversation for this key; --redacted asks hooks about what is left"}
}

// conditionDecided reports whether a verdict came of a condition alone, which has
// read the event.
func conditionDecided(v gate.Verdict) bool {
	return v.Has(gate.WhenFalse) || v.Failure != nil && v.Failure.Code == gate.BadExpression
}

// picksByInput reports whether a spec has a hook that looks into what a tool is
// given to see whether it is about the event.
func picksByInput(s *gate.Spec, r gate.Record) bool {
	return (s.Kind == gate.HookSpec || s.Name == r.Agent) &&
		slices.ContainsFunc(s.Hooks, func(h gate.Hook) bool { return h.If != nil && h.Event == r.Event })
}

// withConversation asks hooks that read the conversation only where it is there.
// Judges are told of a place that is always the same, or a recording would not
// know their question again.
func (a *again) withConversation(e gate.Evaluator, reads func(*gate.Hook) bool) gate.Evaluator {
	return gate.EvaluatorFunc(func(ctx context.Context, in gate.Input) gate.Verdict {
		switch lost, ok := in.Transcript.(*lostTranscript); {
		case !ok:
		case lost.marked != nil && a.sameThen(in.Hook):
			in.Transcript = lost.marked
		case reads(in.Hook):
			return gate.Verdict{Outcome: gate.NoVerdict, Failure: lost.fail()}
		default:
			in.Transcript = nil
		}
		if in.Hook.Type == gate.PromptHook && in.Transcript != nil {
			in = placed(in)
		}
		return e.Evaluate(ctx, in)
	})
}

// scriptReads reports whether a command hook may read the conversation: a script
// that names neither field in which its place stands does not. What another
// program does that a shell line starts nobody knows.
func scriptReads(h *gate.Hook) bool {
	return h.Script == "" || strings.Contains(h.Script, "execution_summary") || strings.Contains(h.Script, "transcript_path")
}

// overHTTP asks http hooks only if that was asked for: what they start cannot be
// undone.
func (a *again) overHTTP(e gate.Evaluator) gate.Evaluator {
	if a.command.HTTP {
		return a.withConversation(e, func(*gate.Hook) bool { return true })
	}
	return gate.EvaluatorFunc(func(_ context.Context, in gate.Input) gate.Verdict {
		o := &obstacle{Code: httpNotSent, Message: fmt.Sprintf("hook %q asks a server, which is done with --http only", in.Hook.Name)}
		a.first.CompareAndSwap(nil, o)
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.EgressDenied, Message: o.Message}}
	})
}
