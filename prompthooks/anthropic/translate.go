package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/exchange"
)

// defaultMaxTokens is what an answer may be long, thoughts included, where the
// request does not say: the API wants a number. A verdict with much thinking is
// a few thousand tokens, and every model that is served takes this many.
const defaultMaxTokens = 16 << 10

// params is a request. The system text ends the part that is the same for every
// event of a kind (tools come before it), and the last message what the next
// round repeats: there the provider's cache is told to keep what it has read.
func params(req prompthooks.Request) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{Model: req.Model, MaxTokens: defaultMaxTokens}
	if req.MaxOutputTokens > 0 {
		p.MaxTokens = int64(req.MaxOutputTokens)
	}
	if req.System != "" {
		p.System = []anthropic.TextBlockParam{{Text: req.System, CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	}
	for i, m := range req.Messages {
		p.Messages = append(p.Messages, message(m, len(req.Tools) > 0 && i == len(req.Messages)-1))
	}
	for _, t := range req.Tools {
		tool := anthropic.ToolParam{Name: t.Name, InputSchema: inputSchema(t.Parameters)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &tool})
	}
	if req.Force != "" {
		p.ToolChoice = anthropic.ToolChoiceParamOfTool(req.Force)
	}
	if req.Schema != nil {
		p.OutputConfig.Format.Schema = object(req.Schema)
	}
	if req.Unthinking {
		p.Thinking.OfDisabled = &anthropic.ThinkingConfigDisabledParam{}
	}
	return p
}

// message is one of ours; keep marks its last block for the provider's cache.
func message(m prompthooks.Message, keep bool) anthropic.MessageParam {
	if m.Role == prompthooks.Assistant {
		return assistant(m)
	}
	p := anthropic.MessageParam{Role: anthropic.MessageParamRoleUser}
	for _, r := range m.Results {
		p.Content = append(p.Content, anthropic.NewToolResultBlock(r.ID, r.Text, r.Failed))
	}
	if m.Text != "" {
		p.Content = append(p.Content, anthropic.NewTextBlock(m.Text))
	}
	if keep && len(p.Content) > 0 {
		if mark := p.Content[len(p.Content)-1].GetCacheControl(); mark != nil {
			*mark = anthropic.NewCacheControlEphemeralParam()
		}
	}
	return p
}

func assistant(m prompthooks.Message) anthropic.MessageParam {
	p := anthropic.MessageParam{Role: anthropic.MessageParamRoleAssistant}
	if m.Native != nil {
		p.SetExtraFields(map[string]any{"content": m.Native})
		return p
	}
	if m.Text != "" {
		p.Content = append(p.Content, anthropic.NewTextBlock(m.Text))
	}
	for _, c := range m.Calls {
		p.Content = append(p.Content, anthropic.NewToolUseBlock(c.ID, arguments(c.Args), c.Name))
	}
	return p
}

// arguments are an object, as the API wants them.
func arguments(args json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) != nil || fields == nil {
		return json.RawMessage("{}") // what is no object is no arguments
	}
	return args
}

func inputSchema(s *prompthooks.Schema) anthropic.ToolInputSchemaParam {
	p := anthropic.ToolInputSchemaParam{Type: "object"} // a zero value would be left out
	if s != nil {
		p.Properties, p.Required = object(s)["properties"], s.Required
	}
	return p
}

// object is a schema as the SDK takes it. What is inside keeps its order.
func object(s *prompthooks.Schema) map[string]any {
	raw, fields := map[string]json.RawMessage{}, map[string]any{}
	if b, err := json.Marshal(s); err == nil && json.Unmarshal(b, &raw) == nil {
		for name, value := range raw {
			fields[name] = value
		}
	}
	return fields
}

// response is an answer; one without content is empty, not an error.
func response(answer *anthropic.Message, content json.RawMessage) prompthooks.Response {
	r := prompthooks.Response{Message: prompthooks.Message{Role: prompthooks.Assistant, Native: content}}
	if answer == nil {
		return r
	}
	u := answer.Usage
	r.Usage = gate.Usage{
		// input_tokens is only what no cache had.
		PromptTokens: exchange.Tokens(u.InputTokens) + exchange.Tokens(u.CacheCreationInputTokens) + exchange.Tokens(u.CacheReadInputTokens),
		CachedTokens: exchange.Tokens(u.CacheReadInputTokens),
		OutputTokens: exchange.Tokens(u.OutputTokens),
	}
	r.Finish = finish(answer.StopReason)
	r.Detail = exchange.Clip(strings.TrimSpace(string(answer.StopReason)+" "+answer.StopDetails.Explanation), 200)
	for _, block := range answer.Content {
		switch block.Type {
		case "text":
			r.Message.Text += block.Text
		case "tool_use":
			args := block.Input
			if len(args) == 0 {
				args = json.RawMessage("{}")
			}
			r.Message.Calls = append(r.Message.Calls, prompthooks.Call{ID: block.ID, Name: block.Name, Args: args})
		} // thoughts are not the answer
	}
	return r
}

func finish(r anthropic.StopReason) prompthooks.Finish {
	switch r {
	case "", anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence, anthropic.StopReasonToolUse:
		return prompthooks.Finished
	// A turn that the server paused goes on when it is handed back, as one that
	// was cut off does.
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded, anthropic.StopReasonPauseTurn:
		return prompthooks.Truncated
	case anthropic.StopReasonRefusal:
		return prompthooks.Refused
	}
	return prompthooks.Malformed // a reason that we do not know
}
