// Package prompthooks asks a model for the verdict of a prompt hook.
//
// A [Judge] renders the hook's prompt with the event's context, lets the model
// read the conversation with ReadFile and GrepSearch, and reads its verdict:
//
//	judge, err := prompthooks.New(prompthooks.Options{Model: resolve})
//	verdict := judge.Evaluate(ctx, input)
//
// Everything that comes from the agent (the context, the conversation) is
// fenced as data; a verdict is taken only from the model's own answer. What
// could not be asked is a verdict without an outcome and with a failure; the
// hook's failMode, not this package, says what that means.
//
// Models stand behind [Model]. A provider (package gemini) translates requests,
// answers and errors; what is tried again, and for how long, is decided here
// for all of them.
package prompthooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stopgate/gate"
)

// Options of a [Judge]. Model is required; zero limits are the defaults.
type Options struct {
	// Model finds the model that a hook names, a tier or a deployment
	// (spec/azure.md 50), and the deployment to ask it for. It is called once
	// for each evaluation; an error ends the hook as model_unavailable, with
	// the error's text.
	Model func(name string) (m Model, deployment string, err error)
	// MaxRounds is how many answers with tool calls a model may give before it
	// is asked for its verdict; 0 = [DefaultMaxRounds].
	MaxRounds int
	// MaxTokens is how many tokens, prompt and output of all calls together,
	// one verdict may cost; 0 = [DefaultMaxTokens]. A model that nears it is
	// asked for its verdict; one that is past it has none (budget_exhausted).
	MaxTokens int
	// DailyTokens is how many tokens the judges of one agent may use in a day
	// (UTC), over all its verdicts since the start of the process; 0 = no
	// limit. An agent beyond it has no verdict (budget_exhausted).
	DailyTokens int
	// Now says what day it is; required with DailyTokens.
	Now func() time.Time
}

const (
	// DefaultMaxRounds is enough for a search, a few pages and a second look;
	// a judge that needs more is going in circles.
	DefaultMaxRounds = 12
	// DefaultMaxTokens is a dozen rounds over some pages of transcript, and
	// what a small model's context window holds.
	DefaultMaxTokens = 200_000
)

// Judge asks models. It implements [gate.Evaluator] for prompt hooks and is
// safe for concurrent use.
type Judge struct {
	model     func(name string) (Model, string, error)
	maxRounds int
	maxTokens int
	days      daily
	learnt    learnt
}

var _ gate.Evaluator = (*Judge)(nil)

// New makes a Judge. An error names the option that is wrong.
func New(o Options) (*Judge, error) {
	switch {
	case o.Model == nil:
		return nil, errors.New("prompthooks: Options.Model is nil")
	case o.MaxRounds < 0:
		return nil, errors.New("prompthooks: Options.MaxRounds is negative")
	case o.MaxTokens < 0:
		return nil, errors.New("prompthooks: Options.MaxTokens is negative")
	case o.DailyTokens < 0:
		return nil, errors.New("prompthooks: Options.DailyTokens is negative")
	case o.DailyTokens > 0 && o.Now == nil:
		return nil, errors.New("prompthooks: Options.DailyTokens needs Options.Now")
	}
	j := &Judge{model: o.Model, maxRounds: o.MaxRounds, maxTokens: o.MaxTokens, days: daily{limit: o.DailyTokens, now: o.Now}}
	if j.maxRounds == 0 {
		j.maxRounds = DefaultMaxRounds
	}
	if j.maxTokens == 0 {
		j.maxTokens = DefaultMaxTokens
	}
	return j, nil
}

// Evaluate asks the hook's model for a verdict. It never guesses: without an
// answer that states a decision the outcome is NoVerdict, with one of the
// failures timeout, model_unavailable, model_rate_limited, model_refused,
// model_truncated, bad_verdict, budget_exhausted, transcript_unreadable.
func (j *Judge) Evaluate(ctx context.Context, in gate.Input) gate.Verdict {
	model, deployment, err := j.model(in.Hook.Model)
	if err != nil {
		return gate.Verdict{Outcome: gate.NoVerdict,
			Failure: &gate.Failure{Code: gate.ModelUnavailable, Message: err.Error()}}
	}
	if !j.days.left(in.Event) {
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.BudgetExhausted,
			Message: fmt.Sprintf("the judges of agent %q have used their %d tokens of today (UTC)", in.Event.Agent, j.days.limit)}}
	}
	t := newTrial(ctx, j, model, deployment, in)
	v, err := t.run(ctx)
	j.days.spend(in.Event, t.usage)
	if err != nil {
		v = gate.Verdict{Outcome: gate.NoVerdict, Failure: t.failure(ctx, err)}
	} else if t.repaired {
		v.Notes = append(v.Notes, gate.Repaired)
	}
	v.Model, v.Usage, v.Evidence = deployment, &t.usage, &gate.Evidence{Steps: t.steps}
	return v
}
