package redact

import (
	"context"
	"slices"

	"stopgate/gate"
)

// Evaluator asks hooks without showing them secrets: in the event, in what they are
// told of it, and in what they read of the conversation.
func (r *Redactor) Evaluator(of gate.Evaluator) gate.Evaluator {
	return gate.EvaluatorFunc(func(ctx context.Context, in gate.Input) gate.Verdict {
		ev := *in.Event
		ev.FinalOutput, ev.ToolResult, ev.Prompt = r.Text(ev.FinalOutput), r.Text(ev.ToolResult), r.Text(ev.Prompt)
		ev.ToolInput, ev.Payload = r.JSON(ev.ToolInput), r.JSON(ev.Payload)
		ev.Background = slices.Clone(ev.Background)
		for i := range ev.Background {
			ev.Background[i] = r.JSON(ev.Background[i])
		}
		ev.InlineTranscript = r.JSON(ev.InlineTranscript)
		in.Event, in.Context = &ev, r.JSON(in.Context)
		if in.Transcript != nil {
			in.Transcript = transcript{in.Transcript, r}
		}
		return of.Evaluate(ctx, in)
	})
}

// transcript shows a conversation redacted. It searches the original: a pattern
// that finds a secret shows that there is one, and not which.
type transcript struct {
	gate.Transcript
	redactor *Redactor
}

func (t transcript) ReadFile(ctx context.Context, offset, limit int) (string, error) {
	text, err := t.Transcript.ReadFile(ctx, offset, limit)
	return t.redactor.Text(text), err
}

func (t transcript) GrepSearch(ctx context.Context, q gate.Grep) (string, error) {
	text, err := t.Transcript.GrepSearch(ctx, q)
	return t.redactor.Text(text), err
}

func (t transcript) Outline(ctx context.Context, limit int) (string, bool, error) {
	text, whole, err := t.Transcript.Outline(ctx, limit)
	return t.redactor.Text(text), whole, err
}
