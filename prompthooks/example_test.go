package prompthooks_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stopgate/gate"
	"stopgate/prompthooks"
)

// A scripted judge refuses every final answer that does not speak of tests.
func ExampleJudge() {
	scripted := prompthooks.ModelFunc(func(_ context.Context, req prompthooks.Request) (prompthooks.Response, error) {
		verdict := `{"ok": false, "reason": "Run the tests and say what they showed."}`
		if strings.Contains(req.Messages[0].Text, "tests pass") {
			verdict = `{"ok": true}`
		}
		return prompthooks.Response{Message: prompthooks.Message{Role: prompthooks.Assistant, Text: verdict}}, nil
	})
	judge, err := prompthooks.New(prompthooks.Options{
		Model: func(string) (prompthooks.Model, string, error) { return scripted, "scripted", nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	hook := &gate.Hook{Event: gate.Stop, Type: gate.PromptHook, Prompt: "Has the agent run the tests?", Timeout: time.Second}
	for _, final := range []string{`{"final_output":"Done."}`, `{"final_output":"Done, the tests pass."}`} {
		v := judge.Evaluate(context.Background(), gate.Input{Hook: hook, Event: &gate.Event{Agent: "my_agent"}, Context: []byte(final)})
		fmt.Println(v.Outcome, v.Reason)
	}
	// Output:
	// block Run the tests and say what they showed.
	// allow
}
