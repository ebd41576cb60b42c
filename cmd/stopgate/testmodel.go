package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/recording"
)

// scriptedJudges are the judges of one case: the real ones, one for each hook so
// that its model knows who asks, with scripted models or recorded ones. It is a
// [gate.Evaluator].
type scriptedJudges struct {
	options prompthooks.Options

	mu     sync.Mutex
	judges map[string]*prompthooks.Judge
	script *script // of the event under way
}

// script is what models answer to one event.
type script struct {
	mu      sync.Mutex
	left    map[string][]config.ModelAnswer
	panel   bool     // some judge had several votes, of which not all need be cast
	wanting []string // hooks that asked for more than there is
	take    *recording.Take
	find    recording.Find // of the take; nil: the answers are in the test file
	howTo   string         // make the recording
}

func newScriptedJudges(o prompthooks.Options) *scriptedJudges {
	o.DailyTokens, o.Fallback, o.Price = 0, nil, nil // of the server file, which a test is not about
	return &scriptedJudges{options: o, judges: map[string]*prompthooks.Judge{}}
}

// play sets what models answer from now on.
func (s *scriptedJudges) play(now *script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = now
}

// scriptOf is what models answer to the i-th event of a case.
func (t *tester) scriptOf(s *suite, c *testCase, i int) (*script, error) {
	e := c.Events[i]
	now := &script{left: maps.Clone(e.Model)}
	if e.Recording.Name != "" {
		r, err := t.recording(s.beside(e.Recording.Name))
		if err != nil {
			return nil, err
		}
		name := e.Take
		if name == "" {
			name = fmt.Sprintf("%s, event %d", c.Name, i+1)
		}
		now.take = r.Take(name)
		now.howTo = recordIt(s)
		if now.find = now.take.Replay(); t.record {
			now.find = now.take.Complete(t.app.models.find)
		}
	}
	return now, nil
}

// recordIt is how a suite's recordings are made.
func recordIt(s *suite) string { return "record it: stopgate test --record " + s.file.Path }

// openRecordings opens what the cases name.
func (t *tester) openRecordings(suites []*suite) error {
	for _, s := range suites {
		for _, c := range s.cases {
			for _, e := range c.Events {
				if e.Recording.Name == "" {
					continue
				}
				_, err := t.recording(s.beside(e.Recording.Name))
				if errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("%s:%d: there is no recording %q yet; %s", s.file.Path, e.Recording.Line, e.Recording.Name, recordIt(s))
				}
				if err != nil {
					return fmt.Errorf("%s:%d: %w", s.file.Path, e.Recording.Line, err)
				}
			}
		}
	}
	return nil
}

// recording is the one in a directory: made, or gone on with, if answers are to be kept.
func (t *tester) recording(dir string) (*recording.Recording, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.recordings[dir]; r != nil {
		return r, nil
	}
	var r *recording.Recording
	var err error
	if t.record {
		r, err = recording.Resume(dir, secrets(t.cfg, t.getenv))
	} else {
		r, err = recording.Open(dir)
	}
	if err == nil {
		t.recordings[dir] = r
	}
	return r, err
}

// Evaluate implements [gate.Evaluator].
func (s *scriptedJudges) Evaluate(ctx context.Context, in gate.Input) gate.Verdict {
	s.mu.Lock()
	hook, now := in.Hook.Name, s.script
	judge := s.judges[hook]
	if judge == nil {
		options := s.options
		options.Model = func(name string) (prompthooks.Model, string, error) { return s.find(hook, name) }
		var err error
		if judge, err = prompthooks.New(options); err != nil {
			s.mu.Unlock()
			return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Internal, Message: err.Error()}}
		}
		s.judges[hook] = judge
	}
	s.mu.Unlock()
	if in.Hook.Votes > 1 {
		now.mu.Lock()
		now.panel = true
		now.mu.Unlock()
	}
	return judge.Evaluate(ctx, in)
}

func (s *scriptedJudges) find(hook, name string) (prompthooks.Model, string, error) {
	s.mu.Lock()
	now := s.script
	s.mu.Unlock()
	if now.find != nil {
		return now.find(name)
	}
	return prompthooks.ModelFunc(func(ctx context.Context, _ prompthooks.Request) (prompthooks.Response, error) {
		if err := ctx.Err(); err != nil {
			return prompthooks.Response{}, err
		}
		return now.next(hook)
	}), name, nil
}

// next is the answer that comes next for a hook.
func (s *script) next(hook string) (prompthooks.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := hook
	if _, own := s.left[hook]; !own {
		key = ""
	}
	if len(s.left[key]) == 0 {
		s.wanting = append(s.wanting, hook)
		return prompthooks.Response{}, &gate.Failure{Code: gate.ModelUnavailable, Message: "the test has no answer of a model left"}
	}
	a := s.left[key][0]
	s.left[key] = s.left[key][1:]
	m := prompthooks.Message{Role: prompthooks.Assistant, Text: a.Text}
	for i, c := range a.Calls {
		m.Calls = append(m.Calls, prompthooks.Call{ID: fmt.Sprint("call-", i+1), Name: c.Name, Args: c.Args})
	}
	switch a.Failure {
	case gate.ModelUnavailable, gate.ModelRateLimited: // final: nobody is made to wait for another try
		return prompthooks.Response{}, &gate.Failure{Code: a.Failure, Message: "the test has it so"}
	case gate.ModelRefused:
		return prompthooks.Response{Message: m, Finish: prompthooks.Refused}, nil
	case gate.ModelTruncated:
		return prompthooks.Response{Message: m, Finish: prompthooks.Truncated}, nil
	}
	return prompthooks.Response{Message: m}, nil
}

// faults are what is wrong with the script itself: answers that were wanting, and
// answers that nobody wanted, so that what was tested is not what was meant.
func (s *script) faults() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, hook := range slices.Compact(s.wanting) {
		errs = append(errs, fmt.Errorf("hook %q asked its model for more answers than the test has", hook))
	}
	for _, hook := range slices.Sorted(maps.Keys(s.left)) {
		if n := len(s.left[hook]); n > 0 && !s.panel {
			whose := ""
			if hook != "" {
				whose = fmt.Sprintf(" for hook %q", hook)
			}
			errs = append(errs, fmt.Errorf("the model was not asked for %s%s", plural(n, "answer"), whose))
		}
	}
	if s.take != nil && s.take.Missing() > 0 && !s.panel {
		errs = append(errs, errors.New("the recording does not have what the judge asked; "+s.howTo))
	}
	return errors.Join(errs...)
}
