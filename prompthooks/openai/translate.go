package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/exchange"
)

// params is a request. What is not needed is left out: some servers refuse a
// field that they do not know.
func params(req prompthooks.Request) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: req.Model}
	if req.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(req.System))
	}
	for _, m := range req.Messages {
		p.Messages = append(p.Messages, messages(m)...)
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.Name, Description: param.NewOpt(t.Description), Parameters: parameters(t.Parameters)}))
	}
	if req.Force != "" {
		p.ToolChoice.OfFunctionToolChoice = &openai.ChatCompletionNamedToolChoiceParam{
			Function: openai.ChatCompletionNamedToolChoiceFunctionParam{Name: req.Force}}
	}
	if req.Schema != nil {
		// Not strict: that would ask for every property, and the reason of an
		// approval need not be given.
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "verdict", Schema: req.Schema}}
	}
	if req.MaxOutputTokens > 0 {
		p.MaxCompletionTokens = param.NewOpt(int64(req.MaxOutputTokens))
	}
	if req.Unthinking {
		p.ReasoningEffort = "none"
	}
	return p
}

// parameters of a tool; one without any takes an empty object.
func parameters(s *prompthooks.Schema) shared.FunctionParameters {
	if s == nil {
		s = &prompthooks.Schema{Type: "object"}
	}
	// The SDK wants a map, and would write its keys in their own order; the
	// raw values keep theirs.
	var p shared.FunctionParameters
	raw := map[string]json.RawMessage{}
	if b, err := json.Marshal(s); err == nil && json.Unmarshal(b, &raw) == nil {
		p = shared.FunctionParameters{}
		for name, value := range raw {
			p[name] = value
		}
	}
	return p
}

// messages is one of ours: results are a message each.
func messages(m prompthooks.Message) []openai.ChatCompletionMessageParamUnion {
	if m.Role == prompthooks.Assistant {
		return []openai.ChatCompletionMessageParamUnion{assistant(m)}
	}
	var all []openai.ChatCompletionMessageParamUnion
	for _, r := range m.Results {
		text := r.Text
		if r.Failed { // the API has no word for it
			text = "Error: " + text
		}
		all = append(all, openai.ToolMessage(text, r.ID))
	}
	if m.Text != "" {
		all = append(all, openai.UserMessage(m.Text))
	}
	return all
}

func assistant(m prompthooks.Message) openai.ChatCompletionMessageParamUnion {
	if m.Native != nil {
		return param.Override[openai.ChatCompletionMessageParamUnion](m.Native)
	}
	var a openai.ChatCompletionAssistantMessageParam
	if m.Text != "" {
		a.Content.OfString = param.NewOpt(m.Text)
	}
	for _, c := range m.Calls {
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: string(c.Args)}}})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &a}
}

// response is the first choice; an answer without one is empty, not an error.
func response(answer *openai.ChatCompletion) prompthooks.Response {
	r := prompthooks.Response{Message: prompthooks.Message{Role: prompthooks.Assistant}}
	if answer == nil {
		return r
	}
	r.Usage = gate.Usage{PromptTokens: exchange.Tokens(answer.Usage.PromptTokens), OutputTokens: exchange.Tokens(answer.Usage.CompletionTokens),
		CachedTokens: exchange.Tokens(answer.Usage.PromptTokensDetails.CachedTokens)}
	if len(answer.Choices) == 0 {
		return r
	}
	c := answer.Choices[0]
	r.Finish, r.Detail = finish(c.FinishReason), exchange.Clip(c.FinishReason, 200)
	if c.Message.Refusal != "" {
		r.Finish, r.Detail = prompthooks.Refused, exchange.Clip(c.Message.Refusal, 200)
	}
	r.Message.Native = native(c.Message.RawJSON())
	r.Message.Text = withoutThoughts(c.Message.Content)
	for _, call := range c.Message.ToolCalls {
		args := json.RawMessage(call.Function.Arguments)
		if len(bytes.TrimSpace(args)) == 0 {
			args = json.RawMessage("{}")
		}
		r.Message.Calls = append(r.Message.Calls, prompthooks.Call{ID: call.ID, Name: call.Function.Name, Args: args})
	}
	return r
}

// native is a message as it came, to be handed back: reasoning and signatures
// are in fields that the SDK does not know. Fields without a value are left
// out, and notes for readers, which strict servers refuse in a request.
func native(raw string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &fields) != nil || fields["role"] == nil {
		return nil
	}
	for name, value := range fields {
		if string(value) == "null" && name != "content" || name == "annotations" {
			delete(fields, name)
		}
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return b
}

// withoutThoughts is a text without the thoughts that local models write before
// their answer, where the server does not part the two. Thoughts in the midst
// of a text are not such: they may be quoted.
func withoutThoughts(text string) string {
	rest, thinks := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), "<think>")
	if !thinks {
		return text
	}
	if _, said, ended := strings.Cut(rest, "</think>"); ended {
		return strings.TrimLeft(said, " \t\r\n")
	}
	return text
}

func finish(reason string) prompthooks.Finish {
	switch reason {
	case "", "stop", "tool_calls", "function_call":
		return prompthooks.Finished
	case "length", "model_length":
		return prompthooks.Truncated
	case "content_filter":
		return prompthooks.Refused
	}
	return prompthooks.Malformed // an error of the server's, or a reason that we do not know
}
