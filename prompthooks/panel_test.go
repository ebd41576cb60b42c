package prompthooks

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
)

// sat has a panel of one judge per answer decide; "" is one that fails.
func sat(t *testing.T, answers ...string) gate.Verdict {
	t.Helper()
	var mu sync.Mutex
	i := 0
	m := ModelFunc(func(_ context.Context, req Request) (Response, error) {
		mu.Lock()
		defer mu.Unlock()
		answer := answers[i%len(answers)]
		i++
		if answer == "" {
			return Response{}, Errorf(Rejected, "no such model")
		}
		return says(answer)(req)
	})
	j, err := New(Options{Model: func(name string) (Model, string, error) { return m, name, nil }})
	if err != nil {
		t.Fatal(err)
	}
	h := &gate.Hook{Event: gate.Stop, Prompt: "Is it done?", Model: "one", Votes: len(answers), Timeout: 10 * time.Second}
	return j.Evaluate(t.Context(), gate.Input{Hook: h, Event: &gate.Event{Name: gate.Stop}, Context: []byte(stopContext)})
}

func TestPanelDecidesByMajority(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []string
		outcome gate.Outcome
		reason  string // or of the failure
	}{
		{"all for", []string{yes, yes, yes}, gate.Allow, ""},
		{"two against one", []string{no, yes, no}, gate.Block, "run the tests"},
		{"two for", []string{yes, no, yes}, gate.Allow, ""},
		{"one fails, two agree", []string{no, "", no}, gate.Block, "run the tests"},
		{"one fails, two disagree", []string{yes, "", no}, gate.NoVerdict, "1 allow, 1 block, 0 ask, 0 impossible, 1 no verdict"},
		{"too few answers", []string{yes, "", ""}, gate.NoVerdict, "2 of 3 judges gave no verdict"},
		{"both reasons", []string{`{"ok":false,"reason":"a"}`, `{"ok":false,"reason":"b"}`, yes}, gate.Block, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := sat(t, c.answers...)
			said := v.Reason
			if v.Failure != nil {
				said = v.Failure.Message
			}
			if v.Outcome != c.outcome || !strings.Contains(said, c.reason) {
				t.Errorf("%s %q, want %s %q", v.Outcome, said, c.outcome, c.reason)
			}
			if (v.Outcome == gate.NoVerdict) != (v.Failure != nil) || v.Usage == nil || v.Usage.Calls < 2 {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestPanelAsksEachModelInTurn(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	j, err := New(Options{Model: func(name string) (Model, string, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[name]++
		if name == "gone" {
			return nil, "", errors.New("no such provider")
		}
		return scripted(says(yes)), name, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := &gate.Hook{Event: gate.Stop, Prompt: "?", Votes: 5, Models: []string{"a", "b", "gone"}}
	v := j.Evaluate(t.Context(), gate.Input{Hook: h, Event: &gate.Event{Name: gate.Stop}, Context: []byte(stopContext)})
	if asked["a"] != 2 || asked["b"] != 2 || asked["gone"] != 1 {
		t.Errorf("asked %v", asked)
	}
	if v.Outcome != gate.Allow || !strings.Contains(v.Model, "a") || !strings.Contains(v.Model, "b") {
		t.Errorf("%s by %q", v.Outcome, v.Model)
	}
}

// A judge that hangs does not hold up what the others have decided.
func TestPanelStopsWhenItIsDecided(t *testing.T) {
	var mu sync.Mutex
	i := 0
	m := ModelFunc(func(ctx context.Context, req Request) (Response, error) {
		mu.Lock()
		n := i
		i++
		mu.Unlock()
		if n == 0 {
			<-ctx.Done()
			return Response{}, ctx.Err()
		}
		return says(no)(req)
	})
	j, err := New(Options{Model: func(string) (Model, string, error) { return m, "d", nil }})
	if err != nil {
		t.Fatal(err)
	}
	h := &gate.Hook{Event: gate.Stop, Prompt: "?", Votes: 3}
	if v := j.Evaluate(t.Context(), gate.Input{Hook: h, Event: &gate.Event{Name: gate.Stop}, Context: []byte(stopContext)}); v.Outcome != gate.Block {
		t.Errorf("%s %v", v.Outcome, v.Failure)
	}
}
