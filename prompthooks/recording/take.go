package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"sync"

	"stopgate/gate"
	"stopgate/prompthooks"
)

// Take is one judgement's requests. It is safe for concurrent use.
type Take struct {
	recording *Recording
	name      string

	mu      sync.Mutex
	asked   map[string]int // how often, by the request's digest
	missing int
	drifted int
}

// Missing is how many requests could not be answered from the recording. Where a
// panel had its majority and called off the other votes, they may be missing.
func (t *Take) Missing() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.missing
}

// Drifted is how many requests were answered though what tools had returned was
// not the same as when they were recorded.
func (t *Take) Drifted() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drifted
}

// Record keeps what the models say that find finds. A judgement whose answer
// cannot be kept has no verdict (internal).
func (t *Take) Record(find Find) Find {
	return func(name string) (prompthooks.Model, string, error) {
		m, d, err := find(name)
		if err != nil {
			return nil, "", err
		}
		if file := deploymentFile(name); !t.recording.has(file) {
			if err := t.recording.write(file, deployment{name, d, lacksOf(m)}); err != nil {
				return nil, "", err
			}
		}
		return recorded{t, m}, d, nil
	}
}

// Complete answers from the recording, and asks the models that find finds for what is
// not there, which it keeps: a request that is new, one that tools have answered
// otherwise since, and one that came to no answer.
func (t *Take) Complete(find Find) Find {
	return func(name string) (prompthooks.Model, string, error) {
		m, d, err := find(name)
		if err != nil {
			return nil, "", err
		}
		now, was := deployment{name, d, lacksOf(m)}, deployment{}
		if file := deploymentFile(name); t.recording.read(file, &was) != nil || was != now {
			if err := t.recording.write(file, now); err != nil {
				return nil, "", err
			}
		}
		return completed{recorded{t, m}}, d, nil
	}
}

// completed is a model that is asked only for what the recording does not have.
type completed struct{ recorded }

// Generate implements [prompthooks.Model].
func (c completed) Generate(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
	file := c.take.next(req)
	if a, ok := c.take.kept(file, req); ok {
		return a.response(), a.err(true)
	}
	return c.take.recordAt(ctx, file, c.model, req)
}

// kept is what the recording has at a place, if a model was asked just this and
// answered, or was asked again after an error.
func (t *Take) kept(file place, req prompthooks.Request) (a answer, ok bool) {
	if t.recording.read(file.name(), &a) != nil || a.Take != t.name || a.Model != req.Model || a.Request != wholeDigest(req) || a.Ended != "" {
		return a, false
	}
	file.n++
	return a, a.Other == "" && (a.Error == nil || t.recording.has(file.name()))
}

// recorded is a model whose answers are kept. It lacks what the model lacks, or
// another judge would be measured.
type recorded struct {
	take  *Take
	model prompthooks.Model
}

// Generate implements [prompthooks.Model].
func (r recorded) Generate(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
	return r.take.record(ctx, r.model, req)
}

// Lacks implements [prompthooks.Limited].
func (r recorded) Lacks() prompthooks.Features { return lacksOf(r.model) }

func lacksOf(m prompthooks.Model) prompthooks.Features {
	if limited, ok := m.(prompthooks.Limited); ok {
		return limited.Lacks()
	}
	return 0
}

// replayed answers from a recording as the model that was recorded.
type replayed struct {
	take  *Take
	lacks prompthooks.Features
}

// Generate implements [prompthooks.Model].
func (r replayed) Generate(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
	return r.take.replay(ctx, req)
}

// Lacks implements [prompthooks.Limited].
func (r replayed) Lacks() prompthooks.Features { return r.lacks }

func (t *Take) record(ctx context.Context, m prompthooks.Model, req prompthooks.Request) (prompthooks.Response, error) {
	return t.recordAt(ctx, t.next(req), m, req)
}

func (t *Take) recordAt(ctx context.Context, file place, m prompthooks.Model, req prompthooks.Request) (prompthooks.Response, error) {
	response, err := m.Generate(ctx, req)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // whatever the provider makes of it
	}
	a := t.recording.keep(response, err)
	a.Take, a.Model, a.Request = t.name, req.Model, wholeDigest(req)
	if err := t.recording.write(file.name(), a); err != nil {
		return prompthooks.Response{}, &gate.Failure{Code: gate.Internal, Message: err.Error()}
	}
	switch {
	case a.Error != nil:
		err = a.Error
	case a.Other != "":
		err = errors.New(a.Other)
	}
	return a.response(), err
}

// Replay answers from the recording. What is not there is no verdict
// (model_unavailable, "not recorded: …"), and counted in [Take.Missing].
func (t *Take) Replay() Find {
	return func(name string) (prompthooks.Model, string, error) {
		var d deployment
		if err := t.recording.read(deploymentFile(name), &d); err != nil {
			return nil, "", errors.New(t.miss(fmt.Sprintf("the model %q", name), err))
		}
		return replayed{t, d.Lacks}, d.Deployment, nil
	}
}

func (t *Take) replay(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
	if err := ctx.Err(); err != nil {
		return prompthooks.Response{}, err
	}
	file := t.next(req)
	var a answer
	err := t.recording.read(file.name(), &a)
	if err == nil && (a.Take != t.name || a.Model != req.Model) {
		err = fmt.Errorf("%w: %s answers %.100q of %.100q", errBroken, file.name(), a.Model, a.Take)
	}
	if err != nil {
		return prompthooks.Response{}, &gate.Failure{Code: gate.ModelUnavailable,
			Message: t.miss(fmt.Sprintf("the request %s of %q", file, t.name), err)}
	}
	if a.Request != wholeDigest(req) {
		t.mu.Lock()
		t.drifted++
		t.mu.Unlock()
	}
	if a.Ended == cancelled {
		return prompthooks.Response{}, &gate.Failure{Code: gate.ModelUnavailable,
			Message: t.miss(fmt.Sprintf("the request %s of %q was called off", file, t.name), fs.ErrNotExist)}
	}
	file.n++
	return a.response(), a.err(t.recording.has(file.name()))
}

// miss counts and words what is not in the recording.
func (t *Take) miss(what string, err error) string {
	t.mu.Lock()
	t.missing++
	t.mu.Unlock()
	why := "the conversation, the hook or the model is not the one of the recording, or the recording was cut short"
	if !errors.Is(err, fs.ErrNotExist) {
		why = err.Error()
	}
	return fmt.Sprintf("not recorded: %s (%s)", what, why)
}

// err is what a replay ends with where the model had given no answer. An error
// that was followed by another try is followed by one again, but nobody is made
// to wait; the last one is final, since the time that was lacking then is there
// now.
func (a answer) err(again bool) error {
	switch {
	case a.Error != nil && again:
		bad := *a.Error
		bad.RetryAfter = 0
		return &bad
	case a.Error != nil:
		return &gate.Failure{Code: a.Error.Code(), Message: a.Error.Message}
	case a.Ended == deadline:
		return &gate.Failure{Code: gate.Timeout, Message: "the model gave no answer in the hook's time when it was recorded"}
	case a.Other != "":
		return errors.New(a.Other)
	}
	return nil
}

// place is where the answer to a request is kept.
type place struct {
	digest string
	n      int // the n-th time that it is asked, from 1
}

func (p place) String() string { return fmt.Sprintf("%s-%d", p.digest, p.n) }
func (p place) name() string   { return p.String() + ".json" }

// next is the place of a request that is about to be made.
func (t *Take) next(req prompthooks.Request) place {
	d := t.digest(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[d]++
	return place{d, t.asked[d]}
}

// fence is the random word of a judge's fence (prompthooks: rand.Text), which
// models also repeat.
var fence = regexp.MustCompile(`data-[A-Z2-7]{26}`)

func unfenced(text string) string { return fence.ReplaceAllString(text, "data-KEY") }

// digest is what a request is known by.
func (t *Take) digest(req prompthooks.Request) string {
	said := make([]prompthooks.Message, len(req.Messages))
	for i, m := range req.Messages {
		m.Results = nil
		said[i] = m
	}
	req.Messages, req.Force, req.MaxOutputTokens = said, "", 0
	return digest([]byte(t.name + "\x00" + wholeDigest(req)))
}

// wholeDigest is of everything in a request but the fence's word.
func wholeDigest(req prompthooks.Request) string {
	type message struct {
		Role, Text, Native string
		Calls              []string
		Results            []prompthooks.Result
	}
	messages := make([]message, len(req.Messages))
	for i, m := range req.Messages {
		messages[i] = message{Role: string(m.Role), Text: unfenced(m.Text), Native: unfenced(string(m.Native))}
		for _, c := range m.Calls {
			messages[i].Calls = append(messages[i].Calls, c.ID, c.Name, unfenced(string(c.Args)))
		}
		for _, r := range m.Results {
			r.Text = unfenced(r.Text)
			messages[i].Results = append(messages[i].Results, r)
		}
	}
	text, err := json.Marshal(struct {
		Request  prompthooks.Request
		Messages []message
	}{withoutMessages(req), messages})
	if err != nil { // strings, numbers and schemas always have a JSON form
		panic(err)
	}
	return digest(text)
}

func withoutMessages(req prompthooks.Request) prompthooks.Request {
	req.Messages = nil
	return req
}
