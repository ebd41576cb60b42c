package prompthooks

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"stopgate/gate"
)

func TestDailyTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := ModelFunc(func(context.Context, Request) (Response, error) {
			return Response{Message: Message{Role: Assistant, Text: `{"ok":true}`}, Usage: gate.Usage{PromptTokens: 60, OutputTokens: 40}}, nil
		})
		j, err := New(Options{Model: func(string) (Model, string, error) { return model, "m", nil }, DailyTokens: 150, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(agent string) gate.Verdict {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return j.Evaluate(ctx, gate.Input{Hook: &gate.Hook{Prompt: "x", Event: gate.Stop}, Event: &gate.Event{Name: gate.Stop, Agent: agent}, Context: []byte("{}")})
		}
		for i, want := range []gate.Outcome{gate.Allow, gate.Allow, gate.NoVerdict} {
			if v := ask("a"); v.Outcome != want {
				t.Fatalf("verdict %d of agent a: %+v", i, v)
			}
		}
		if v := ask("a"); v.Failure.Code != gate.BudgetExhausted {
			t.Errorf("beyond the limit: %+v", v.Failure)
		}
		if v := ask("b"); v.Outcome != gate.Allow {
			t.Errorf("another agent: %+v", v)
		}
		time.Sleep(24 * time.Hour)
		if v := ask("a"); v.Outcome != gate.Allow {
			t.Errorf("the next day: %+v", v)
		}
	})
}

// A clock that is set back, and forth again, gives no day's tokens twice.
func TestDayComesOnce(t *testing.T) {
	now := time.Date(2030, 1, 2, 0, 0, 1, 0, time.UTC)
	d := daily{limit: 100, now: func() time.Time { return now }}
	ev := &gate.Event{Agent: "a"}
	d.spend(ev, gate.Usage{PromptTokens: 100})
	for _, by := range []time.Duration{-2 * time.Second, 2 * time.Second} {
		if now = now.Add(by); d.left(ev) {
			t.Errorf("at %s there are tokens again", now)
		}
	}
	if now = now.AddDate(0, 0, 1); !d.left(ev) {
		t.Error("the next day has none")
	}
}

// No number that a server gives is a way to a full budget.
func TestSpendIsBounded(t *testing.T) {
	ev := &gate.Event{Agent: "a"}
	for name, used := range map[string]gate.Usage{
		"a sum that overflows":       {PromptTokens: math.MaxInt, OutputTokens: math.MaxInt},
		"below zero takes none back": {PromptTokens: 100, OutputTokens: math.MinInt},
	} {
		d := daily{limit: 100, now: time.Now}
		d.spend(ev, gate.Usage{OutputTokens: 50})
		if d.spend(ev, used); d.left(ev) || d.spent["a"] != 100 {
			t.Errorf("%s: %d spent", name, d.spent["a"])
		}
	}
}
