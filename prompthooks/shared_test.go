package prompthooks

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stopgate/gate"
)

// question is an input of one text about one conversation.
func questionOf(h gate.Hook, said string, talk gate.Transcript) gate.Input {
	h.Event, h.Prompt = gate.Stop, "Is it done?"
	in := gate.Input{Hook: &h, Event: &gate.Event{Name: gate.Stop}, Context: []byte(`{"final_output":"` + said + `"}`)}
	if talk != nil {
		in.Transcript = talk
	}
	return in
}

func TestTheSameQuestionAtOnceIsJudgedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		m := ModelFunc(func(_ context.Context, req Request) (Response, error) {
			asked.Add(1)
			time.Sleep(time.Second)
			return says(no)(req)
		})
		j, err := New(Options{Model: func(string) (Model, string, error) { return m, "d", nil }})
		if err != nil {
			t.Fatal(err)
		}
		together := func(inputs ...gate.Input) []gate.Verdict {
			asked.Store(0)
			verdicts := make([]gate.Verdict, len(inputs))
			var all sync.WaitGroup
			for i, in := range inputs {
				all.Go(func() { verdicts[i] = j.Evaluate(t.Context(), in) })
			}
			all.Wait()
			return verdicts
		}
		same := questionOf(gate.Hook{}, "done", nil)
		calls := 0
		for _, v := range together(same, same, same) {
			wantVerdict(t, v, gate.Block, "run the tests")
			calls += v.Usage.Calls
		}
		if asked.Load() != 1 || calls != 1 {
			t.Errorf("asked %d times, %d calls were counted", asked.Load(), calls)
		}
		if together(same, questionOf(gate.Hook{}, "done!", nil)); asked.Load() != 2 {
			t.Errorf("two answers: asked %d times", asked.Load())
		}
		if together(questionOf(gate.Hook{}, "done", lines{"a"}), questionOf(gate.Hook{}, "done", lines{"b"}), questionOf(gate.Hook{}, "done", lines{"a"})); asked.Load() != 2 {
			t.Errorf("two conversations: asked %d times", asked.Load())
		}
		if together(same, questionOf(gate.Hook{Threshold: 0.9}, "done", nil)); asked.Load() != 2 {
			t.Errorf("two hooks: asked %d times", asked.Load())
		}
		if together(same); asked.Load() != 1 {
			t.Errorf("asked again later: %d times", asked.Load())
		}
	})
}

// countedTalk is a conversation that counts how often it is read whole, and can
// be too long for that.
type countedTalk struct {
	lines
	tooLong bool
	reads   atomic.Int32
	ended   atomic.Bool // its asker's evaluation
	late    atomic.Bool // read after it
}

func (c *countedTalk) Fingerprint(ctx context.Context) ([32]byte, bool) {
	c.reads.Add(1)
	c.late.Store(c.late.Load() || c.ended.Load())
	sum, _ := c.lines.Fingerprint(ctx)
	return sum, !c.tooLong
}

// To know a question again costs the reading of a whole conversation, so it is
// done only where the same question may be there: while others are judged that
// differ in nothing else, or with a cache.
func TestConversationsAreComparedWhereItCanPay(t *testing.T) {
	for _, c := range []struct {
		name    string
		cache   bool
		tooLong bool
		talks   []lines // one asker each, all at once
		again   bool    // the first asks once more, alone
		asked   int32
		reads   []int32 // of each
	}{
		{"alone, twice", false, false, []lines{{"a"}}, true, 2, []int32{0}},
		{"alone, with a cache", true, false, []lines{{"a"}}, true, 1, []int32{2}},
		{"the same at once", false, false, []lines{{"a"}, {"a"}, {"a"}}, false, 1, []int32{1, 1, 1}},
		{"two others and the same at once", false, false, []lines{{"a"}, {"b"}, {"a"}}, false, 2, []int32{1, 1, 1}},
		{"too long", false, true, []lines{{"a"}, {"a"}}, false, 2, []int32{1, 1}},
		{"too long, with a cache", true, true, []lines{{"a"}}, true, 2, []int32{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				m := ModelFunc(func(_ context.Context, req Request) (Response, error) {
					asked.Add(1)
					time.Sleep(time.Second)
					return says(yes)(req)
				})
				j := judgeWith(t, Options{Model: oneModel(m)})
				talks := make([]*countedTalk, len(c.talks))
				evaluate := func(talk *countedTalk) {
					talk.ended.Store(false)
					wantVerdict(t, j.Evaluate(t.Context(), questionOf(gate.Hook{Cache: c.cache}, "done", talk)), gate.Allow, "")
					talk.ended.Store(true)
				}
				var all sync.WaitGroup
				for i, said := range c.talks {
					talks[i] = &countedTalk{lines: said, tooLong: c.tooLong}
					all.Go(func() { evaluate(talks[i]) })
				}
				all.Wait()
				if c.again {
					evaluate(talks[0])
				}
				if asked.Load() != c.asked {
					t.Errorf("asked %d times, want %d", asked.Load(), c.asked)
				}
				for i, talk := range talks {
					if got := talk.reads.Load(); got != c.reads[i] || talk.late.Load() {
						t.Errorf("conversation %d: read %d times, want %d; after its evaluation: %t", i, got, c.reads[i], talk.late.Load())
					}
				}
			})
		})
	}
	t.Run("not after its asker's end", func(t *testing.T) {
		talk := &countedTalk{lines: lines{"a"}}
		about := conversationOf(t.Context(), questionOf(gate.Hook{}, "done", talk))
		about.end()
		if about.same(about) || talk.reads.Load() > 0 {
			t.Errorf("read %d times", talk.reads.Load())
		}
	})
}

// The first asker's time is not the others'.
func TestASharedQuestionSurvivesItsAsker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ModelFunc(func(ctx context.Context, req Request) (Response, error) {
			select {
			case <-time.After(3 * time.Second):
				return says(yes)(req)
			case <-ctx.Done():
				return Response{}, ctx.Err()
			}
		})
		j, err := New(Options{Model: func(string) (Model, string, error) { return m, "d", nil }})
		if err != nil {
			t.Fatal(err)
		}
		in := questionOf(gate.Hook{}, "done", nil)
		var all sync.WaitGroup
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if v := j.Evaluate(ctx, in); v.Outcome != gate.NoVerdict {
				t.Errorf("the impatient one: %s", v.Outcome)
			}
		})
		all.Go(func() {
			time.Sleep(time.Millisecond)
			if v := j.Evaluate(t.Context(), in); v.Outcome != gate.Allow {
				t.Errorf("the patient one: %s %v", v.Outcome, v.Failure)
			}
		})
		all.Wait()
	})
}

func TestCachedVerdicts(t *testing.T) {
	m := scripted(says(no), says(yes))
	j, err := New(Options{Model: func(string) (Model, string, error) { return m, "d", nil }})
	if err != nil {
		t.Fatal(err)
	}
	in := questionOf(gate.Hook{Cache: true}, "done", nil)
	for range 3 {
		wantVerdict(t, j.Evaluate(t.Context(), in), gate.Block, "run the tests")
	}
	if len(m.asked) != 1 {
		t.Errorf("asked %d times", len(m.asked))
	}
	if v := j.Evaluate(t.Context(), questionOf(gate.Hook{}, "done", nil)); v.Outcome != gate.Allow {
		t.Errorf("a hook without a cache got %s", v.Outcome)
	}
	t.Run("a failure is not kept", func(t *testing.T) {
		m := scripted(ends(Refused, "safety"), says(yes))
		j, _ := New(Options{Model: func(string) (Model, string, error) { return m, "d", nil }})
		wantFailure(t, j.Evaluate(t.Context(), in), gate.ModelRefused)
		wantVerdict(t, j.Evaluate(t.Context(), in), gate.Allow, "")
	})
	t.Run("only so many", func(t *testing.T) {
		var q questions
		for i := range maxKept + 10 {
			q.once(t.Context(), key{byte(i), byte(i >> 8)}, &conversation{ok: true}, "", true, func() gate.Verdict { return gate.Verdict{Outcome: gate.Allow} })
		}
		if len(q.kept) != maxKept || len(q.oldest) != maxKept {
			t.Errorf("%d kept, %d known", len(q.kept), len(q.oldest))
		}
	})
}

// A model that is down is asked once for all who have the same question.
func TestAFailureIsSharedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		m := ModelFunc(func(context.Context, Request) (Response, error) {
			asked.Add(1)
			time.Sleep(time.Second)
			return Response{}, Errorf(Rejected, "no such model")
		})
		j, err := New(Options{Model: func(string) (Model, string, error) { return m, "d", nil }})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				wantFailure(t, j.Evaluate(t.Context(), questionOf(gate.Hook{}, "done", nil)), gate.ModelUnavailable)
			})
		}
		all.Wait()
		if asked.Load() != 1 {
			t.Errorf("asked %d times", asked.Load())
		}
	})
}

// Whatever a verdict depends on is part of the question.
func TestWhatMakesAQuestion(t *testing.T) {
	base := gate.Hook{Event: gate.Stop, Prompt: "p", Model: "m", Timeout: time.Second}
	ask := func(change func(*gate.Hook)) key {
		h := base
		change(&h)
		k, ok := keyOf(gate.Input{Hook: &h, Context: []byte(`{"execution_summary":"/t/view.txt"}`), Transcript: lines{"a"}})
		if !ok {
			t.Fatal("no key")
		}
		return k
	}
	seen := map[key]string{ask(func(*gate.Hook) {}): "none"}
	for name, change := range map[string]func(*gate.Hook){
		"event": func(h *gate.Hook) { h.Event = gate.PreToolUse }, "prompt": func(h *gate.Hook) { h.Prompt = "q" },
		"model": func(h *gate.Hook) { h.Model = "n" }, "models": func(h *gate.Hook) { h.Models = []string{"m"} },
		"votes": func(h *gate.Hook) { h.Votes = 3 }, "threshold": func(h *gate.Hook) { h.Threshold = 0.7 },
		"evidence": func(h *gate.Hook) { h.EvidenceRequired = true }, "timeout": func(h *gate.Hook) { h.Timeout = time.Minute },
	} {
		k := ask(change)
		if other, same := seen[k]; same {
			t.Errorf("%s changes nothing (as %s)", name, other)
		}
		seen[k] = name
	}
}

// TestForgottenVerdictsAreNotGivenAgain: of the session alone, and the bound of
// how many are kept still holds.
func TestForgottenVerdictsAreNotGivenAgain(t *testing.T) {
	asked := 0
	m := ModelFunc(func(_ context.Context, req Request) (Response, error) {
		asked++
		return says(no)(req)
	})
	j, err := New(Options{Model: func(string) (Model, string, error) { return m, "d", nil }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(session string, want int) {
		t.Helper()
		in := questionOf(gate.Hook{Cache: true}, "done by "+session, nil)
		in.Event = &gate.Event{Name: gate.Stop, Session: session}
		asked = 0
		wantVerdict(t, j.Evaluate(t.Context(), in), gate.Block, "run the tests")
		if asked != want {
			t.Errorf("%s: the model was asked %d times, want %d", session, asked, want)
		}
	}
	ask("a", 1)
	ask("b", 1)
	ask("a", 0)
	j.Forget("a")
	ask("b", 0)
	ask("a", 1)
	ask("a", 0)
	if kept, order := len(j.questions.kept), len(j.questions.oldest); kept != 2 || order != 2 {
		t.Errorf("%d are kept, %d in their order", kept, order)
	}
}
