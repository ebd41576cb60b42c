//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

type object = map[string]any

// gemini writes a turn as generateContent and streamGenerateContent do.
func gemini(w http.ResponseWriter, r *http.Request, say turn, tool string) {
	part := object{"text": say.text}
	if say.command != "" {
		part = object{"functionCall": object{"name": tool, "args": object{"command": say.command, "description": "scripted"}}}
	}
	call := r.PathValue("call")
	switch {
	case strings.HasSuffix(call, ":streamGenerateContent"):
		stream(w, event{data: geminiAnswer(part)})
	case strings.HasSuffix(call, ":generateContent"):
		w.Header().Set("Content-Type", "application/json")
		write(w, geminiAnswer(part))
	default: // countTokens
		w.Header().Set("Content-Type", "application/json")
		write(w, object{"totalTokens": 10})
	}
}

func geminiAnswer(part object) object {
	return object{
		"candidates":    []object{{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": []object{part}}}},
		"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20},
		"modelVersion":  "scripted",
	}
}

// openAIResponses writes a turn as the Responses API streams it.
func openAIResponses(w http.ResponseWriter, _ *http.Request, say turn, tool string) {
	item := object{"type": "message", "role": "assistant", "id": "msg_1", "content": []object{{"type": "output_text", "text": say.text}}}
	if say.command != "" {
		item = object{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": tool, "arguments": arguments(object{"cmd": say.command})}
	}
	stream(w,
		event{"response.created", object{"type": "response.created", "response": object{"id": "resp_1"}}},
		event{"response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item}},
		event{"response.completed", object{"type": "response.completed", "response": object{"id": "resp_1",
			"usage": object{"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}}}})
}

// chatCompletions writes a turn as the Chat Completions API streams it, or
// whole where the request does not ask for a stream.
func chatCompletions(w http.ResponseWriter, _ *http.Request, say turn, tool string) {
	message, finish := object{"role": "assistant", "content": say.text}, "stop"
	if say.command != "" {
		message, finish = object{"role": "assistant", "content": nil, "tool_calls": []object{{"index": 0, "id": "call_1", "type": "function",
			"function": object{"name": tool, "arguments": arguments(object{"command": say.command, "description": "scripted", "is_background": false})}}}}, "tool_calls"
	}
	chunk := func(delta object, finish any) event {
		return event{data: object{"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}}}
	}
	stream(w, chunk(message, nil), chunk(object{}, finish), event{data: done})
}

// arguments are a tool's, as the text that OpenAI's APIs make of them.
func arguments(v object) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a map of strings and booleans has a JSON form
	}
	return string(text)
}

// event is one server-sent event.
type event struct {
	name string
	data any
}

// done ends a stream of Chat Completions.
const done = "[DONE]"

func stream(w http.ResponseWriter, events ...event) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		if e.name != "" {
			fmt.Fprintf(w, "event: %s\n", e.name)
		}
		if e.data == done {
			fmt.Fprintf(w, "data: %s\n\n", done)
			continue
		}
		fmt.Fprint(w, "data: ")
		write(w, e.data)
		fmt.Fprint(w, "\n")
	}
}
