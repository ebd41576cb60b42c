// Command loops is an agent's loop behind the gate, with nothing but the
// standard library.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"
)

// Message is one message of the conversation.
type Message struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCalls  []Call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// Call is one tool call of the model.
type Call struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// Decision is what of the gate's answer a loop needs.
type Decision struct {
	Decision string    `json:"decision"`
	Reason   string    `json:"reason"`
	Messages []Message `json:"messages"`
}

// Event is the body of POST /v1/evaluate.
type Event map[string]any

// with is the event and what is new in it.
func (e Event) with(more Event) Event {
	all := maps.Clone(e)
	maps.Copy(all, more)
	return all
}

var client = http.Client{Timeout: 330 * time.Second}

// ask has the gate decide one event. What cannot be asked is an error, so that
// no answer leaves unseen.
func ask(ctx context.Context, e Event) (d Decision, err error) {
	body, err := json.Marshal(e)
	if err != nil {
		return d, err
	}
	gate := os.Getenv("STOPGATE_SERVER")
	if gate == "" {
		gate = "http://127.0.0.1:8790"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, gate+"/v1/evaluate", bytes.NewReader(body))
	if err != nil {
		return d, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", rand.Text())
	if key := os.Getenv("STOPGATE_API_KEY"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := client.Do(req)
	if err != nil {
		return d, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return d, err
	}
	if resp.StatusCode != http.StatusOK {
		return d, fmt.Errorf("gate answered %s: %s", resp.Status, answer)
	}
	return d, json.Unmarshal(answer, &d)
}

// Agent answers prompts behind the gate.
type Agent struct {
	Name     string                                                 // its spec
	Complete func(context.Context, []Message) (Message, error)      // the model
	Tools    map[string]func(arguments map[string]any) (any, error) // by name
	MaxTurns int
}

// Run answers a prompt.
func (a Agent) Run(ctx context.Context, prompt string) (string, error) {
	base := Event{"agent_name": a.Name, "session_id": rand.Text(), "max_turns": a.MaxTurns}
	messages := []Message{{Role: "user", Content: prompt}}
	if _, err := ask(ctx, base.with(Event{"hook_event_name": "UserPromptSubmit", "prompt": prompt})); err != nil {
		return "", err
	}
	for turn := range a.MaxTurns {
		base["current_turn"] = turn + 1
		reply, err := a.Complete(ctx, messages)
		if err != nil {
			return "", err
		}
		messages = append(messages, reply)
		for _, call := range reply.ToolCalls {
			came, err := a.use(ctx, base, call)
			if err != nil {
				return "", err
			}
			messages = append(messages, came...)
		}
		if len(reply.ToolCalls) > 0 {
			continue
		}
		d, err := ask(ctx, base.with(Event{"hook_event_name": "Stop", "final_output": reply.Content, "transcript": messages}))
		if err != nil {
			return "", err
		}
		if d.Decision == "allow" {
			return reply.Content, nil // only now may anybody see it
		}
		messages = append(messages, d.Messages...)
	}
	return "", fmt.Errorf("no answer within %d turns", a.MaxTurns)
}

// use runs one tool call behind the gate and gives the messages that come of it.
func (a Agent) use(ctx context.Context, base Event, call Call) ([]Message, error) {
	e := base.with(Event{"tool_name": call.Name, "tool_input": call.Arguments})
	result := Message{Role: "tool", ToolCallID: call.ID}
	before, err := ask(ctx, e.with(Event{"hook_event_name": "PreToolUse"}))
	if err != nil {
		return nil, err
	}
	if before.Decision != "allow" { // to "ask", a person would say yes or no here
		result.Content = "Refused: " + before.Reason
		return []Message{result}, nil
	}
	value, failed := any(nil), fmt.Errorf("there is no tool %q", call.Name)
	if tool := a.Tools[call.Name]; tool != nil {
		value, failed = tool(call.Arguments)
	}
	result.Content = fmt.Sprint(value)
	if failed != nil { // the model is to read what went wrong
		result.Content = "Error: " + failed.Error()
	}
	after, err := ask(ctx, e.with(Event{"hook_event_name": "PostToolUse", "tool_result": result.Content, "tool_succeeded": failed == nil}))
	if err != nil {
		return nil, err
	}
	if after.Decision != "allow" {
		result.Content = after.Reason
	}
	return append([]Message{result}, after.Messages...), nil
}

// scripted stands in for a model: it calls a tool, answers, and heeds the gate.
func scripted(_ context.Context, messages []Message) (Message, error) {
	last := messages[len(messages)-1].Content
	switch {
	case len(messages) == 1:
		return Message{Role: "assistant", ToolCalls: []Call{{"1", "add", map[string]any{"a": 2.0, "b": 3.0}}}}, nil
	case strings.Contains(last, "Task complete"):
		return Message{Role: "assistant", Content: "It is 5. Task complete."}, nil
	}
	return Message{Role: "assistant", Content: "It is 5."}, nil
}

func main() {
	add := func(x map[string]any) (any, error) { return x["a"].(float64) + x["b"].(float64), nil }
	agent := Agent{Name: "marker", Complete: scripted, Tools: map[string]func(map[string]any) (any, error){"add": add}, MaxTurns: 20}
	answer, err := agent.Run(context.Background(), "What is 2 + 3?")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(answer)
}
