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
// Models stand behind [Model]. A provider (packages gemini, openai, anthropic)
// translates requests, answers and errors; what is tried again, and for how long, is decided here
// for all of them.
package prompthooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// Fallback lists whom to ask when the model that a hook names cannot be
	// asked, in order, as names for Model; nil: nobody.
	Fallback func(name string) []string
	// Price is what the model that a hook names costs, if that is known; nil: of
	// none.
	Price func(name string) (gate.Price, bool)
	// MaxRounds is how many answers with tool calls a model may give before it
	// is asked for its verdict; 0 = [DefaultMaxRounds].
	MaxRounds int
	// MaxTokens is how many tokens, prompt and output of all calls together,
	// one verdict of one judge may cost, models that were asked before it
	// included; a panel's judges have as much each; 0 = [DefaultMaxTokens]. A model that nears it is
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
	fallback  func(name string) []string
	price     func(name string) (gate.Price, bool)
	maxRounds int
	maxTokens int
	days      daily
	newFence  func() string
	questions questions
	learnt    learnt
	forms     forms
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
	j := &Judge{model: o.Model, fallback: o.Fallback, price: o.Price, maxRounds: o.MaxRounds, maxTokens: o.MaxTokens, newFence: newFence, days: daily{limit: o.DailyTokens, now: o.Now}}
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
//
// A hook with several votes is judged by a panel. The same question, asked twice
// at once, is judged once.
func (j *Judge) Evaluate(ctx context.Context, in gate.Input) gate.Verdict {
	ask := func() gate.Verdict {
		if in.Hook.Votes > 1 {
			return j.panel(ctx, in)
		}
		return j.single(ctx, in, in.Hook.Voter(0))
	}
	var v gate.Verdict
	if k, ok := keyOf(in); ok {
		about := conversationOf(ctx, in)
		defer about.end()
		session := ""
		if in.Event != nil {
			session = in.Event.Session
		}
		v = j.questions.once(ctx, k, about, session, in.Hook.Cache, ask)
	} else {
		v = ask()
	}
	if in.Hook.EndsTurn && v.Outcome == gate.Block { // others may hold the same verdict
		v.Notes = append(slices.Clone(v.Notes), gate.HaltRequested)
	}
	return v
}

// Forget gives no verdict of a session again, to whoever asks the same question:
// a reason may quote what was said.
func (j *Judge) Forget(session string) { j.questions.forget(session) }

// single has one model decide, or where it cannot be asked the next one that may
// take its place.
func (j *Judge) single(ctx context.Context, in gate.Input, name string) gate.Verdict {
	names := []string{name}
	if j.fallback != nil {
		names = append(names, j.fallback(name)...)
	}
	var v gate.Verdict
	for i, name := range names {
		last := i == len(names)-1
		v = after(v, j.try(ctx, in, name, last, spentOn(v)))
		if last || ctx.Err() != nil || !unasked(v) {
			break
		}
	}
	return v
}

// firstShare of the time that is left is a model's whose place another may take.
const firstShare = 0.6

// unasked reports whether a model gave no verdict because it could not be asked.
func unasked(v gate.Verdict) bool {
	return v.Outcome == gate.NoVerdict && slices.Contains([]gate.FailureCode{gate.ModelUnavailable, gate.ModelRateLimited, gate.Overloaded}, v.Failure.Code)
}

// spentOn is how many tokens a verdict has cost so far.
func spentOn(v gate.Verdict) int {
	if v.Usage == nil {
		return 0
	}
	return v.Usage.PromptTokens + v.Usage.OutputTokens
}

// after is a verdict with what the models before cost, and why they had none.
func after(before, v gate.Verdict) gate.Verdict {
	if before.Failure == nil {
		return v
	}
	steps := []gate.Step{{Tool: "fallback", Input: before.Model, Text: before.Failure.Error()}}
	if before.Evidence != nil {
		steps = append(before.Evidence.Steps, steps...)
	}
	if v.Evidence == nil {
		v.Evidence = &gate.Evidence{}
	}
	v.Evidence.Steps = append(steps, v.Evidence.Steps...)
	usage := gate.Usage{}
	for _, u := range []*gate.Usage{before.Usage, v.Usage} {
		if u != nil {
			usage = usage.Plus(*u)
		}
	}
	v.Usage = &usage
	return v
}

// try has one model decide. Where another may take its place it is not waited
// for long.
func (j *Judge) try(ctx context.Context, in gate.Input, name string, last bool, before int) gate.Verdict {
	model, deployment, err := j.model(name)
	if err != nil {
		return gate.Verdict{Outcome: gate.NoVerdict, Model: name,
			Failure: &gate.Failure{Code: gate.ModelUnavailable, Message: err.Error()}}
	}
	if !j.days.left(in.Event) {
		return gate.Verdict{Outcome: gate.NoVerdict, Model: deployment, Usage: &gate.Usage{}, Failure: &gate.Failure{Code: gate.BudgetExhausted,
			Message: fmt.Sprintf("the judges of agent %q have used their %d tokens of today (UTC)", in.Event.Agent, j.days.limit)}}
	}
	within := ctx
	if end, limited := ctx.Deadline(); !last && limited {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, time.Duration(float64(time.Until(end))*firstShare))
		defer cancel()
	}
	t := newTrial(within, j, model, deployment, in)
	t.before = before
	if !last {
		t.tries = 1
	}
	v, err := t.run(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = Errorf(Unavailable, "model %q gave no verdict in its share of the time", gate.Cut(deployment, 80))
	}
	j.days.spend(in.Event, t.usage)
	if err != nil {
		v = gate.Verdict{Outcome: gate.NoVerdict, Failure: t.failure(ctx, err)}
	} else if t.repaired {
		v.Notes = append(v.Notes, gate.Repaired)
	}
	if v.Evidence == nil {
		v.Evidence = &gate.Evidence{}
	}
	if j.price != nil {
		if price, known := j.price(name); known {
			t.usage.Cost = price.Of(t.usage)
		}
	}
	v.Model, v.Usage, v.Evidence.Steps = deployment, &t.usage, t.steps
	return v
}
