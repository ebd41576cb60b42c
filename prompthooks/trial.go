package prompthooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stopgate/gate"
)

// trial is one evaluation: the conversation with the model so far, and what it
// cost.
type trial struct {
	judge  *Judge
	model  Model
	in     gate.Input
	fence  string
	tries  int      // of one request
	before int      // tokens that other models have spent on the same verdict
	lacks  Features // of the model

	verdictBy, toolsBy time.Time // zero: the hook's time is not limited

	req      Request
	size     int // bytes of text in req
	rounds   int // answers with tool calls
	repaired bool

	event []string // what [trial.eventTexts] found

	usage    gate.Usage
	lastCost int // tokens of the last call
	steps    []gate.Step
}

func newTrial(ctx context.Context, j *Judge, m Model, deployment string, in gate.Input) *trial {
	t := &trial{judge: j, model: m, in: in, fence: j.newFence(), tries: maxTries, lacks: j.learnt.of(m, deployment), req: Request{Agent: in.Event.Agent, Model: deployment}}
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
// Without a transcript, or without tools, the model is held to the verdict's schema. With one it
// has tools, which no model takes together with a schema, and submit_verdict
// among them. When its verdict is due, the tools stay declared and
// submit_verdict is the only one it may call: so the conversation stays valid
// for providers that want every tool in it declared, and its prefix cached.
func (t *trial) run(ctx context.Context) (gate.Verdict, error) {
	if err := t.open(ctx); err != nil {
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
		v, err := t.verdict(ctx, answer)
		if err == nil {
			return v, nil
		}
		if ctx.Err() != nil {
			return gate.Verdict{}, ctx.Err()
		}
		if t.repaired || answer.Finish == Refused {
			return gate.Verdict{}, err
		}
		t.repair(answer.Message, err)
	}
}

// open writes the first message.
func (t *trial) open(ctx context.Context) error {
	h := t.in.Hook
	text, shortened, err := renderPrompt(h.Prompt, t.in.Context, t.fence)
	if err != nil {
		return err
	}
	if shortened {
		t.steps = append(t.steps, gate.Step{Tool: "context",
			Text: fmt.Sprintf("the event's context of %d bytes was shortened for the judge", len(t.in.Context))})
	}
	if h.Dialect == gate.ClaudeCode && (h.Event == gate.Stop || h.Event == gate.SubagentStop) {
		text += claudeCodeAnswer
	}
	form := t.judge.forms.of(h.Event, h.Prompt)
	t.req.System = system
	switch {
	case t.in.Transcript == nil:
		t.req.Schema = form.schema
	case t.lacks&Tools != 0:
		part, err := t.part(ctx)
		if err != nil {
			return err
		}
		text += part
		t.req.System += systemPart
		t.req.Schema = form.schema
	default:
		outline, err := t.outline(ctx)
		if err != nil {
			return err
		}
		text += outline
		t.req.System += systemTools
		t.req.Tools = form.tools
	}
	t.say(Message{Role: User, Text: text})
	return nil
}

// mapBytes is how much of the conversation, or of a map of it, a judge sees
// before it reads: some 4,000 tokens, paid again with each round.
const mapBytes = 16 << 10

// outline shows the conversation, or what stands where in it.
func (t *trial) outline(ctx context.Context) (string, error) {
	text, whole, err := t.in.Transcript.Outline(ctx, mapBytes)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", unreadable(err)
	}
	switch {
	case text == "":
		return "", nil
	case whole:
		return "\n\nThe conversation, whole, with its line numbers:\n" + fenced(t.fence, text), nil
	}
	return "\n\nA map of the conversation (line number, who: what; the lines themselves are there to be read and searched):\n" + fenced(t.fence, text), nil
}

// say adds a message to the conversation.
func (t *trial) say(m Message) {
	t.req.Messages = append(t.req.Messages, m)
	t.size += len(m.Text) + len(m.Native)
	for _, c := range m.Calls {
		t.size += len(c.Args)
	}
	for _, r := range m.Results {
		t.size += len(r.Text)
	}
}

// verdict reads an answer that is not a wish to read on, looks up what it
// quotes, and weighs it by the hook's threshold.
func (t *trial) verdict(ctx context.Context, answer Response) (gate.Verdict, error) {
	detail := ""
	if answer.Detail != "" {
		detail = " (" + gate.Cut(answer.Detail, 200) + ")"
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
	if err == nil && v.Outcome == gate.Allow && len(answer.Message.Calls) == 0 && t.quotesTheEvent(answer.Message.Text) {
		err = errors.New("it stands in prose, and word for word in the event: give nothing but the object")
	}
	if err != nil {
		return gate.Verdict{}, &gate.Failure{Code: gate.BadVerdict, Message: err.Error()}
	}
	if v.Evidence != nil {
		if err := t.verify(ctx, v.Evidence.Quotes); err != nil {
			return gate.Verdict{}, err
		}
	}
	weigh(t.in.Hook, &v)
	return v, t.wantEvidence(v)
}

// quotesTheEvent reports whether an answer with words round its object may only
// repeat one that the agent wrote.
func (t *trial) quotesTheEvent(text string) bool {
	objects, err := objectsIn(text)
	if err != nil || strings.Trim(strings.NewReplacer("```json", "", "```", "").Replace(text), " \t\r\n") == string(objects[0]) {
		return false
	}
	for _, said := range t.eventTexts() {
		theirs, _ := objectsIn(said) // as far as they can be read
		for _, o := range theirs {
			if slices.ContainsFunc(objects, func(mine json.RawMessage) bool { return sameJSON(mine, o) }) {
				return true
			}
		}
	}
	return false
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// wantEvidence refuses what a hook that wants evidence does not take: a pass
// without a quote, and any verdict with an invented one. A refusal may rest on
// what is nowhere.
func (t *trial) wantEvidence(v gate.Verdict) error {
	if !t.in.Hook.EvidenceRequired {
		return nil
	}
	var quotes []gate.Quote
	if v.Evidence != nil {
		quotes = v.Evidence.Quotes
	}
	for i, q := range quotes {
		if !q.Verified { // the words stay out of what the judge is told: they may be the agent's
			return &gate.Failure{Code: gate.BadVerdict, Message: fmt.Sprintf("what the verdict quotes as number %d stands nowhere", i+1)}
		}
	}
	if v.Outcome == gate.Allow && !v.Has(gate.Impossible) && !slices.ContainsFunc(quotes, t.shows) {
		return &gate.Failure{Code: gate.BadVerdict, Message: "the verdict quotes nothing of the conversation, and the hook wants evidence"}
	}
	return nil
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
			return gate.Verdict{}, fmt.Errorf("the model called %q instead of giving its verdict", gate.Cut(c.Name, 100))
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
	switch {
	case textErr == nil && said.Outcome != submitted.Outcome:
		return gate.Verdict{}, errors.New("the model's text and the verdict it submitted disagree")
	case textErr != nil && strings.TrimSpace(m.Text) != "" && !errors.Is(textErr, errNoDecision):
		return gate.Verdict{}, fmt.Errorf("beside the verdict that it submitted: %w", textErr)
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
	text := "That was not a verdict: " + gate.Cut(wrong, 300) + ". "
	if len(t.req.Tools) > 0 {
		t.req.Force = submitVerdict
		text += "Call submit_verdict now, alone, once."
	} else {
		text += `Answer with one JSON object and nothing else: {"ok": true} or {"ok": false, "reason": "..."}, unless the check asks for another form.`
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
		return &gate.Failure{Code: bad.Code(), Message: bad.Message}
	}
	return &gate.Failure{Code: gate.ModelUnavailable, Message: "the model could not be asked: " + err.Error()}
}
