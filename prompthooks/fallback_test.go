package prompthooks

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"stopgate/gate"
)

// The models are asked in order until one can be; what it says is the verdict,
// also a "no", and also an answer that is none.
func TestFallback(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second func(Request) (Response, error)
		outcome       gate.Outcome
		code          gate.FailureCode
		model         string
		calls         int
	}{
		{"the first answers", says(no), says(yes), gate.Block, "", "one", 1},
		{"the first is down", fails(Errorf(Unavailable, "503")), says(no), gate.Block, "", "two", 2},
		{"the first has no room", fails(Errorf(RateLimited, "429")), says(yes), gate.Allow, "", "two", 2},
		{"the first refuses to judge", ends(Refused, "safety"), says(yes), gate.NoVerdict, gate.ModelRefused, "one", 1},
		{"the first talks nonsense", says("what?"), says(yes), gate.NoVerdict, gate.BadVerdict, "one", 2},
		{"both are down", fails(Errorf(Unavailable, "503")), fails(Errorf(Rejected, "404")), gate.NoVerdict, gate.ModelUnavailable, "two", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			models := map[string]Model{"one": scripted(c.first), "two": scripted(c.second)}
			j, err := New(Options{Model: func(name string) (Model, string, error) { return models[name], name, nil },
				Fallback: func(name string) []string {
					if name != "one" {
						t.Errorf("fallback of %q", name)
					}
					return []string{"two"}
				}})
			if err != nil {
				t.Fatal(err)
			}
			v := j.Evaluate(t.Context(), gate.Input{Hook: &gate.Hook{Event: gate.Stop, Prompt: "?", Model: "one"}, Event: &gate.Event{}, Context: []byte("{}")})
			if v.Outcome != c.outcome || v.Model != c.model || v.Usage.Calls != c.calls {
				t.Errorf("%s by %q in %d calls: %v", v.Outcome, v.Model, v.Usage.Calls, v.Failure)
			}
			if c.code != "" && v.Failure.Code != c.code {
				t.Errorf("%v, want %s", v.Failure, c.code)
			}
			if fell := v.Evidence.Steps[0].Tool == "fallback"; fell != (c.model == "two") {
				t.Errorf("steps %+v", v.Evidence.Steps)
			}
		})
	}
	t.Run("a name that nobody knows", func(t *testing.T) {
		j, err := New(Options{Model: func(name string) (Model, string, error) {
			if name == "one" {
				return nil, "", errors.New("no such provider")
			}
			return scripted(says(yes)), name, nil
		}, Fallback: func(string) []string { return []string{"two"} }})
		if err != nil {
			t.Fatal(err)
		}
		v := j.Evaluate(t.Context(), gate.Input{Hook: &gate.Hook{Event: gate.Stop, Prompt: "?", Model: "one"}, Event: &gate.Event{}, Context: []byte("{}")})
		if v.Outcome != gate.Allow || v.Model != "two" {
			t.Errorf("%+v", v)
		}
	})
}

func TestVerdictsHaveTheirPrice(t *testing.T) {
	j, err := New(Options{Model: func(name string) (Model, string, error) { return scripted(says(yes)), name, nil },
		Price: func(name string) (gate.Price, bool) { return gate.Price{In: 10, Cached: 1, Out: 100}, name == "priced" }})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"priced": (40*10 + 60*1 + 10*100) / 1e6, "other": 0} {
		v := j.Evaluate(t.Context(), gate.Input{Hook: &gate.Hook{Event: gate.Stop, Prompt: "?", Model: name}, Event: &gate.Event{}, Context: []byte("{}")})
		if v.Usage.Cost != want {
			t.Errorf("%s costs %v, want %v", name, v.Usage.Cost, want)
		}
	}
}

// A model that hangs leaves time for the one that takes its place.
func TestFallbackOfAModelThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		models := map[string]Model{"two": scripted(says(no)), "one": ModelFunc(func(ctx context.Context, _ Request) (Response, error) {
			<-ctx.Done()
			return Response{}, ctx.Err()
		})}
		j, err := New(Options{Model: func(name string) (Model, string, error) { return models[name], name, nil },
			Fallback: func(string) []string { return []string{"two"} }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		v := j.Evaluate(ctx, gate.Input{Hook: &gate.Hook{Event: gate.Stop, Prompt: "?", Model: "one", Timeout: 10 * time.Second}, Event: &gate.Event{}, Context: []byte("{}")})
		if v.Outcome != gate.Block || v.Model != "two" {
			t.Errorf("%s by %q: %v", v.Outcome, v.Model, v.Failure)
		}
	})
}
