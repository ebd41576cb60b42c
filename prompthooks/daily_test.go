package prompthooks

import (
	"context"
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
