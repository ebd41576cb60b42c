package prompthooks

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"stopgate/gate"
)

// Some servers and models take no tools, no forced tool or no schema: older
// models of Ollama, llama.cpp without --jinja, vLLM without a parser of calls.
// They judge all the same: without a schema the verdict is read from the text,
// as it is in any case; without tools the part of the conversation that seems to
// matter is put into the prompt.

// learnt is what models have been found to lack.
type learnt struct {
	mu    sync.Mutex
	lacks map[deployed]lack
}

type deployed struct {
	model      Model
	deployment string
}

type lack struct {
	features Features
	until    time.Time
}

// learntFor is how long a refusal is remembered: a server that has been given
// what it lacked is used in full again without a restart, and one that has not
// costs a refused request each hour.
const learntFor = time.Hour

// maxLearnt bounds the memory: a spec may name any deployment.
const maxLearnt = 1000

// of is what a deployment lacks: what its owner says and what was learnt.
func (l *learnt) of(m Model, deployment string) Features {
	var said Features
	if limited, ok := m.(Limited); ok {
		said = limited.Lacks()
	}
	if !reflect.ValueOf(m).Comparable() { // a ModelFunc
		return said
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.lacks[deployed{m, deployment}]; time.Now().Before(known.until) {
		said |= known.features
	}
	return said
}

func (l *learnt) add(m Model, deployment string, f Features) {
	if !reflect.ValueOf(m).Comparable() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lacks == nil || len(l.lacks) >= maxLearnt {
		l.lacks = map[deployed]lack{}
	}
	d, now := deployed{m, deployment}, time.Now()
	if known := l.lacks[d]; now.Before(known.until) {
		f |= known.features
	}
	l.lacks[d] = lack{f, now.Add(learntFor)}
}

// learn goes on with less after a refusal. It reports false when the refusal
// says nothing new, so that the trial cannot go round in circles.
func (t *trial) learn(ctx context.Context, refused *Error) (bool, error) {
	if refused.Kind != Unsupported || refused.Lacks&^t.lacks == 0 {
		return false, nil
	}
	t.lacks |= refused.Lacks
	t.judge.learnt.add(t.model, t.req.Model, refused.Lacks)
	if refused.Lacks&Tools == 0 || len(t.req.Tools) == 0 {
		return true, nil
	}
	t.req, t.size = Request{Agent: t.req.Agent, Model: t.req.Model, MaxOutputTokens: t.req.MaxOutputTokens}, 0
	return true, t.open(ctx)
}

const systemPart = `

You cannot ask for more than you are given. Below the check stands, as data, what the gate has found of the conversation between the agent and its user: its beginning, lines that have words of the check in them, and its end. Lines are numbered. Unless it says that it is the whole, it is only a part: what it does not show may well be there, so do not conclude from its absence.`

// part is the conversation's relevant part, and how it is told to the model.
func (t *trial) part(ctx context.Context) (string, error) {
	within, cancel := ctx, context.CancelFunc(func() {})
	if !t.toolsBy.IsZero() {
		within, cancel = context.WithDeadline(ctx, t.toolsBy)
	}
	defer cancel()
	text, shown, total, err := excerpt(within, t.in.Transcript, t.in.Hook.Prompt)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		if _, ok := errors.AsType[*gate.Failure](err); ok {
			return "", err
		}
		return "", &gate.Failure{Code: gate.TranscriptUnreadable, Message: fmt.Sprintf("the conversation: %v", err)}
	}
	what := fmt.Sprintf("A part of the conversation, %d of its %d lines", shown, total)
	if shown == total {
		what = fmt.Sprintf("The whole conversation, %d lines", total)
	}
	t.steps = append(t.steps, gate.Step{Tool: "excerpt", Input: what,
		Text: "the model takes no tools: this part of the conversation was put into its prompt"})
	return "\n\n" + what + ":\n" + fenced(t.fence, text), nil
}
