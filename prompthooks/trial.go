package prompthooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stopgate/gate"
)

const (
	// maxConversationBytes bounds the requests of one trial where a server
	// does not report tokens: about what DefaultMaxTokens is as text.
	maxConversationBytes = 1 << 20
	// maxCalls is how many tool calls of one answer are run. A model that asks
	// for more at once is not reading what it gets.
	maxCalls = 8
	// fewOutputTokens is when the rest of the budget is so small that an
	// answer must be held to it; minOutputTokens is room for a verdict all the
	// same. Before that an answer may be as long as the model likes: a limit
	// would cut a thinking model's thoughts, and some models refuse one that
	// is larger than their own.
	fewOutputTokens = 8 << 10
	minOutputTokens = 1 << 10
)

// A judge still reading when this share of the hook's time is over is asked
// for its verdict (spec/azure.md 32). Tools may take half of what is then left.
const (
	verdictShare = 0.70
	toolShare    = 0.85
)

// trial is one evaluation: the conversation with the model so far, and what it
// cost.
type trial struct {
	judge *Judge
	model Model
	in    gate.Input
	fence string

	verdictBy, toolsBy time.Time // zero: the hook's time is not limited

	req      Request
	size     int // bytes of text in req
	rounds   int // answers with tool calls
	repaired bool

	usage    gate.Usage
	lastCost int // tokens of the last call
	steps    []gate.Step
}

func newTrial(ctx context.Context, j *Judge, m Model, deployment string, in gate.Input) *trial {
	t := &trial{judge: j, model: m, in: in, fence: newFence(), req: Request{Model: deployment}}
	if end, ok := ctx.Deadline(); ok {
		now := time.Now()
		left := float64(end.Sub(now))
		t.verdictBy = now.Add(time.Duration(left * verdictShare))
		t.toolsBy = now.Add(time.Duration(left * toolShare))
	}
	return t
}

// run is the whole trial: ask, let the model read, take its verdict, ask once
// more if the answer is none.
//
// Without a transcript the model is held to the verdict's schema. With one it
// has tools, which no model takes together with a schema, and submit_verdict
// among them. When its verdict is due, the tools stay declared and
// submit_verdict is the only one it may call: so the conversation stays valid
// for providers that want every tool in it declared, and its prefix cached.
func (t *trial) run(ctx context.Context) (gate.Verdict, error) {
	if err := t.open(); err != nil {
		return gate.Verdict{}, err
	}
	for {
		answer, err := t.ask(ctx)
		if err != nil {
			return gate.Verdict{}, err
		}
		if t.mayRead() && wantsToRead(answer) {
			if err := t.read(ctx, answer.Message); err != nil {
				return gate.Verdict{}, err
			}
			continue
		}
		v, err := t.verdict(answer)
		if err == nil {
			return v, nil
		}
		if t.repaired || answer.Finish == Refused {
			return gate.Verdict{}, err
		}
		t.repair(answer.Message, err)
	}
}

// open writes the first message.
func (t *trial) open() error {
	h := t.in.Hook
	text, shortened, err := renderPrompt(h.Prompt, t.in.Context, t.fence)
	if err != nil {
		return err
	}
	if shortened {
		t.steps = append(t.steps, gate.Step{Tool: "context",
			Text: fmt.Sprintf("the event's context of %d bytes was shortened for the judge", len(t.in.Context))})
	}
	form := verdictSchema(h.Event, h.Prompt)
	t.req.System = system
	if t.in.Transcript == nil {
		t.req.Schema = form
	} else {
		t.req.System += systemTools
		t.req.Tools = judgeTools(form)
	}
	t.say(Message{Role: User, Text: text})
	return nil
}

// say adds a message to the conversation.
func (t *trial) say(m Message) {
	t.req.Messages = append(t.req.Messages, m)
	t.size += len(m.Text)
	for _, c := range m.Calls {
		t.size += len(c.Args)
	}
	for _, r := range m.Results {
		t.size += len(r.Text)
	}
}

// mayRead reports whether the model may still call tools as it likes.
func (t *trial) mayRead() bool { return len(t.req.Tools) > 0 && t.req.Force == "" }

// wantsToRead reports whether an answer asks for more than its verdict.
func wantsToRead(answer Response) bool {
	if answer.Finish != Finished {
		return false
	}
	for _, c := range answer.Message.Calls {
		if c.Name != submitVerdict {
			return true
		}
	}
	return false
}

// read answers every call of a message, in order.
func (t *trial) read(ctx context.Context, m Message) error {
	t.rounds++
	t.say(m)
	results := make([]Result, len(m.Calls))
	for i, c := range m.Calls {
		text, failed, err := t.call(ctx, i, c)
		if err != nil {
			return err
		}
		if i < maxCalls {
			t.steps = append(t.steps, gate.Step{Tool: cut(c.Name, 100), Input: cut(string(c.Args), maxLineBytes), Text: cut(text, 512)})
		}
		if !failed {
			text = fenced(t.fence, text)
		}
		results[i] = Result{ID: c.ID, Name: c.Name, Text: text, Failed: failed}
	}
	t.say(Message{Role: User, Results: results})
	if why := t.due(); why != "" {
		t.req.Force = submitVerdict
		results[len(results)-1].Text += "\n" + why + " Call submit_verdict now, with what you know."
	}
	return nil
}

func (t *trial) call(ctx context.Context, i int, c Call) (text string, failed bool, err error) {
	switch {
	case c.Name == submitVerdict:
		return "Not taken: you asked to read more in the same answer. Call submit_verdict alone.", true, nil
	case i >= maxCalls:
		return fmt.Sprintf("Not run: at most %d calls in one answer.", maxCalls), true, nil
	case t.late():
		return "Not run: the time for reading is over.", true, nil
	}
	within := ctx
	if !t.toolsBy.IsZero() {
		var cancel context.CancelFunc
		within, cancel = context.WithDeadline(ctx, t.toolsBy)
		defer cancel()
	}
	text, failed, err = callTool(within, t.in.Transcript, c)
	switch {
	case err == nil:
		return text, failed, nil
	case within.Err() != nil && ctx.Err() == nil:
		return "Stopped: it took too long.", true, nil
	case ctx.Err() != nil:
		return "", false, ctx.Err()
	}
	// A conversation that cannot be read must not be judged as if it were
	// empty (fault G15).
	if _, ok := errors.AsType[*gate.Failure](err); ok {
		return "", false, err
	}
	return "", false, &gate.Failure{Code: gate.TranscriptUnreadable, Message: fmt.Sprintf("%s: %v", c.Name, err)}
}

func (t *trial) late() bool { return !t.verdictBy.IsZero() && !time.Now().Before(t.verdictBy) }

// due says why the model must give its verdict now; empty: it need not.
func (t *trial) due() string {
	switch {
	case t.rounds >= t.judge.maxRounds:
		return "This was the last round."
	case t.late():
		return "The time for reading is over."
	case t.size >= maxConversationBytes, t.spent()+2*t.lastCost >= t.judge.maxTokens:
		return "There is no room for more."
	}
	return ""
}

func (t *trial) spent() int { return t.usage.PromptTokens + t.usage.OutputTokens }

// verdict reads an answer that is not a wish to read on.
func (t *trial) verdict(answer Response) (gate.Verdict, error) {
	detail := ""
	if answer.Detail != "" {
		detail = " (" + cut(answer.Detail, 200) + ")"
	}
	switch answer.Finish {
	case Refused:
		return gate.Verdict{}, &gate.Failure{Code: gate.ModelRefused, Message: "the model refused to answer" + detail}
	case Truncated:
		return gate.Verdict{}, &gate.Failure{Code: gate.ModelTruncated, Message: "the model's answer was cut off" + detail}
	case Malformed:
		return gate.Verdict{}, &gate.Failure{Code: gate.BadVerdict, Message: "the model's answer is broken" + detail}
	}
	v, err := verdictOf(t.in.Hook.Event, answer.Message)
	if err != nil {
		return gate.Verdict{}, &gate.Failure{Code: gate.BadVerdict, Message: err.Error()}
	}
	return v, nil
}

// verdictOf is what a message says in its calls of submit_verdict, or in its
// text. Where it says both they must agree.
func verdictOf(event gate.EventName, m Message) (gate.Verdict, error) {
	said, textErr := ReadVerdict(event, m.Text)
	if len(m.Calls) == 0 {
		return said, textErr
	}
	var submitted *gate.Verdict
	for _, c := range m.Calls {
		if c.Name != submitVerdict {
			return gate.Verdict{}, fmt.Errorf("the model called %q instead of giving its verdict", cut(c.Name, 100))
		}
		v, err := readDecision(event, c.Args)
		if err != nil {
			return gate.Verdict{}, err
		}
		if submitted != nil && submitted.Outcome != v.Outcome {
			return gate.Verdict{}, errors.New("the model submitted verdicts that disagree")
		}
		submitted = &v
	}
	if textErr == nil && said.Outcome != submitted.Outcome {
		return gate.Verdict{}, errors.New("the model's text and the verdict it submitted disagree")
	}
	return *submitted, nil
}

// repair asks once more, saying what was wrong (spec/azure.md 32).
func (t *trial) repair(m Message, problem error) {
	t.repaired = true
	wrong := problem.Error()
	if f, ok := errors.AsType[*gate.Failure](problem); ok {
		wrong = f.Message
	}
	text := "That was not a verdict: " + cut(wrong, 300) + ". Answer with one JSON object and nothing else: " +
		`{"ok": true} or {"ok": false, "reason": "..."}.`
	if len(t.req.Tools) > 0 {
		t.req.Force = submitVerdict
		text = "That was not a verdict: " + cut(wrong, 300) + ". Call submit_verdict now, alone, once."
	}
	if m.Text != "" || len(m.Calls) > 0 {
		t.say(m)
	}
	if len(m.Calls) == 0 {
		t.say(Message{Role: User, Text: text})
		return
	}
	results := make([]Result, len(m.Calls))
	for i, c := range m.Calls {
		results[i] = Result{ID: c.ID, Name: c.Name, Text: text, Failed: true}
	}
	t.say(Message{Role: User, Results: results})
}

// failure says why a trial ended without a verdict.
func (t *trial) failure(ctx context.Context, err error) *gate.Failure {
	if f, ok := errors.AsType[*gate.Failure](err); ok {
		return f
	}
	if ctx.Err() != nil {
		return &gate.Failure{Code: gate.Timeout,
			Message: fmt.Sprintf("the judge gave no verdict in time (timeout %s, %d requests)", t.in.Hook.Timeout, t.usage.Calls)}
	}
	if bad, ok := errors.AsType[*Error](err); ok {
		return &gate.Failure{Code: bad.code(), Message: bad.Message}
	}
	return &gate.Failure{Code: gate.ModelUnavailable, Message: "the model could not be asked: " + err.Error()}
}
