package gemini

import (
	"encoding/json"
	"strings"

	"google.golang.org/genai"

	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/exchange"
)

// config is everything of a request but its model.
//
// The conversation, the system text, the tools and the answer's schema go straight
// into the body. Through the SDK the conversation would not stay as the model sent
// it (fault gx-080), and all of it would be held in several copies while the server
// thinks, by each request that waits.
func config(req prompthooks.Request) *genai.GenerateContentConfig {
	return &genai.GenerateContentConfig{
		MaxOutputTokens:       int32(req.MaxOutputTokens),
		AutomaticContinuation: new(bool), // off: it makes requests of its own
		HTTPOptions: &genai.HTTPOptions{ExtrasRequestProvider: func(body map[string]any) map[string]any {
			fill(body, req)
			return body
		}},
	}
}

// fill adds to a body what the SDK was not given.
func fill(body map[string]any, req prompthooks.Request) {
	body["contents"] = contents(req.Messages)
	if req.System != "" {
		body["systemInstruction"] = &genai.Content{Parts: []*genai.Part{{Text: req.System}}}
	}
	if len(req.Tools) > 0 {
		tool := &genai.Tool{}
		for _, t := range req.Tools {
			tool.FunctionDeclarations = append(tool.FunctionDeclarations,
				&genai.FunctionDeclaration{Name: t.Name, Description: t.Description, Parameters: schema(t.Parameters)})
		}
		body["tools"] = []*genai.Tool{tool}
	}
	if req.Force != "" {
		body["toolConfig"] = &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{
			Mode: genai.FunctionCallingConfigModeAny, AllowedFunctionNames: []string{req.Force}}}
	}
	if req.Schema != nil { // one without the other is ignored or refused (fault gx-076)
		limits, ok := body["generationConfig"].(map[string]any)
		if !ok {
			limits = map[string]any{}
			body["generationConfig"] = limits
		}
		limits["responseMimeType"], limits["responseSchema"] = "application/json", schema(req.Schema)
	}
}

// contents is the conversation; each turn a *genai.Content, or the bytes that
// the model itself sent.
func contents(messages []prompthooks.Message) []any {
	turns := make([]any, len(messages))
	for i, m := range messages {
		if m.Native != nil {
			turns[i] = m.Native
			continue
		}
		c := &genai.Content{Role: genai.RoleUser}
		if m.Role == prompthooks.Assistant {
			c.Role = genai.RoleModel
		}
		for _, r := range m.Results {
			key := "output"
			if r.Failed {
				key = "error"
			}
			c.Parts = append(c.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{
				ID: r.ID, Name: r.Name, Response: map[string]any{key: r.Text}}})
		}
		if m.Text != "" {
			c.Parts = append(c.Parts, &genai.Part{Text: m.Text})
		}
		for _, f := range m.Calls {
			var args map[string]any
			_ = json.Unmarshal(f.Args, &args) // what is no object is no arguments
			c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: f.ID, Name: f.Name, Args: args}})
		}
		turns[i] = c
	}
	return turns
}

func schema(s *prompthooks.Schema) *genai.Schema {
	if s == nil {
		return nil
	}
	g := &genai.Schema{Type: genai.Type(strings.ToUpper(s.Type)), Description: s.Description, Enum: s.Enum,
		Items: schema(s.Items), Required: s.Required, PropertyOrdering: s.Order}
	for name, p := range s.Properties {
		if g.Properties == nil {
			g.Properties = map[string]*genai.Schema{}
		}
		g.Properties[name] = schema(p)
	}
	return g
}

// response is the first candidate. A blocked prompt has none; an answer that
// is nothing at all is empty, not an error.
func response(answer *genai.GenerateContentResponse, content json.RawMessage) prompthooks.Response {
	r := prompthooks.Response{Message: prompthooks.Message{Role: prompthooks.Assistant}, Usage: usage(answer.UsageMetadata)}
	if f := answer.PromptFeedback; f != nil && f.BlockReason != "" {
		r.Finish, r.Detail = prompthooks.Refused, "the prompt was blocked: "+exchange.Clip(string(f.BlockReason)+" "+f.BlockReasonMessage, 200)
		return r
	}
	if len(answer.Candidates) == 0 || answer.Candidates[0] == nil {
		return r
	}
	c := answer.Candidates[0]
	r.Finish = finish(c.FinishReason)
	r.Detail = exchange.Clip(strings.TrimSpace(string(c.FinishReason)+" "+c.FinishMessage), 200)
	if c.Content == nil {
		return r
	}
	r.Message.Native = content
	for _, p := range c.Content.Parts {
		switch {
		case p == nil || p.Thought: // a thought is not the answer
		case p.FunctionCall != nil:
			r.Message.Calls = append(r.Message.Calls, call(p.FunctionCall))
		default:
			r.Message.Text += p.Text
		}
	}
	return r
}

func call(f *genai.FunctionCall) prompthooks.Call {
	args := json.RawMessage("{}")
	if f.Args != nil {
		if b, err := json.Marshal(f.Args); err == nil { // it came from JSON
			args = b
		}
	}
	return prompthooks.Call{ID: f.ID, Name: f.Name, Args: args}
}

func finish(r genai.FinishReason) prompthooks.Finish {
	switch r {
	case "", genai.FinishReasonUnspecified, genai.FinishReasonStop:
		return prompthooks.Finished
	case genai.FinishReasonMaxTokens, genai.FinishReasonContinuation:
		return prompthooks.Truncated
	case genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonLanguage,
		genai.FinishReasonBlocklist, genai.FinishReasonProhibitedContent, genai.FinishReasonSPII:
		return prompthooks.Refused
	}
	return prompthooks.Malformed // a broken function call, OTHER, or a reason that we do not know
}

func usage(u *genai.GenerateContentResponseUsageMetadata) gate.Usage {
	if u == nil {
		return gate.Usage{}
	}
	return gate.Usage{
		PromptTokens: exchange.Tokens(int64(u.PromptTokenCount)) + exchange.Tokens(int64(u.ToolUsePromptTokenCount)),
		CachedTokens: exchange.Tokens(int64(u.CachedContentTokenCount)),
		OutputTokens: exchange.Tokens(int64(u.CandidatesTokenCount)) + exchange.Tokens(int64(u.ThoughtsTokenCount)),
	}
}
