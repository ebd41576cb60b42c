package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/modeltest"
)

// answer is one as Anthropic's reference of the Messages API shows it.
func answer(content, stop, details string) string {
	return `{"id":"msg_013Zva2CMHLNnjNjJJKqJ2EF","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":` + content + `,
		"stop_reason":"` + stop + `","stop_sequence":null,"stop_details":` + details + `,
		"usage":{"input_tokens":86,"cache_creation_input_tokens":0,"cache_read_input_tokens":1920,"output_tokens":300,
			"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}}`
}

func says(text string) string {
	b, _ := json.Marshal(text)
	return answer(`[{"type":"text","text":`+string(b)+`,"citations":null}]`, "end_turn", "null")
}

const turn = `[{"type":"thinking","thinking":"I search.","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk="},` +
	`{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix"},` +
	`{"type":"text","text":"Let me see."},` +
	`{"type":"tool_use","id":"toolu_01A09q90qw90lq917835lq9","name":"GrepSearch","input":{"pattern":"tests"}},` +
	`{"type":"tool_use","id":"toolu_01B0","name":"ReadFile","input":{"offset":7},"caller":{"type":"direct"}},` +
	`{"type":"of_the_future","x":[1,2]}]`

// fault is an error as the service sends it.
func fault(status int, kind, message string) modeltest.Fault {
	b, _ := json.Marshal(message)
	return modeltest.Fault{Status: status, Body: `{"type":"error","error":{"type":"` + kind + `","message":` + string(b) + `},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`}
}

func TestAnthropic(t *testing.T) {
	modeltest.Run(t, modeltest.Provider{
		Open: func(t testing.TB, base string) prompthooks.Model {
			p, err := New(Options{APIKey: modeltest.Key, BaseURL: base})
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Asked: asked,
		Env: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_PROFILE", "ANTHROPIC_CUSTOM_HEADERS",
			"ANTHROPIC_CONFIG_DIR", "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_IDENTITY_TOKEN",
			"ANTHROPIC_WEBHOOK_SIGNING_KEY", "ANTHROPIC_WORKSPACE_ID"},
		Says:        says,
		Calls:       answer(turn, "tool_use", "null"),
		CallIDs:     [2]string{"toolu_01A09q90qw90lq917835lq9", "toolu_01B0"},
		Native:      turn,
		Usage:       gate.Usage{PromptTokens: 2006, CachedTokens: 1920, OutputTokens: 300},
		Refused:     answer(`[]`, "refusal", `{"type":"refusal","category":"cyber","explanation":"against policy"}`),
		Truncated:   answer(`[{"type":"text","text":"{\"ok\":tr"}]`, "max_tokens", "null"),
		Malformed:   answer(`[{"type":"text","text":"{\"ok\":true}"}]`, "solar_flare", "null"),
		RateLimited: fault(429, "rate_limit_error", "This request would exceed your organization's rate limit of 50,000 input tokens per minute."),
		Down:        fault(529, "overloaded_error", "Overloaded"),
		Denied:      fault(401, "authentication_error", "invalid x-api-key"),
		Lacking: []modeltest.Lack{
			{Name: "a forced tool while thinking", Feature: prompthooks.Forcing,
				Fault: fault(400, "invalid_request_error", "Thinking may not be enabled when tool_choice forces tool use.")},
			{Name: "a schema", Feature: prompthooks.Schemas,
				Fault: fault(400, "invalid_request_error", "'claude-haiku-3' does not support output format.")},
			{Name: "a schema on an older gateway", Feature: prompthooks.Schemas,
				Fault: fault(400, "invalid_request_error", "output_config: Extra inputs are not permitted")},
			{Name: "tools", Feature: prompthooks.Tools,
				Fault: fault(400, "invalid_request_error", "claude-2.1 does not support tools.")},
		},
	})
}

// asked reads a request.
func asked(t testing.TB, r modeltest.Request) modeltest.Asked {
	var b struct {
		Model     string
		MaxTokens int `json:"max_tokens"`
		System    []struct{ Text string }
		Messages  []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct {
			Name        string
			InputSchema struct{ Type string } `json:"input_schema"`
		}
		ToolChoice struct{ Type, Name string } `json:"tool_choice"`
		Output     struct {
			Format struct {
				Type   string
				Schema struct{ Properties json.RawMessage }
			}
		} `json:"output_config"`
	}
	if err := json.Unmarshal(r.Body, &b); err != nil {
		t.Fatalf("%v in %s", err, r.Body)
	}
	if r.Path != "/v1/messages" || r.Query != "" || r.Header.Get("Anthropic-Version") == "" || b.MaxTokens < 512 {
		t.Errorf("request to %s?%s, %v, max_tokens %d", r.Path, r.Query, r.Header, b.MaxTokens)
	}
	a := modeltest.Asked{Key: r.Header.Get("X-Api-Key"), Model: b.Model, Force: b.ToolChoice.Name}
	for _, s := range b.System {
		a.System += s.Text
	}
	for _, m := range b.Messages {
		if m.Role == "assistant" {
			a.Native = append(a.Native, string(m.Content))
			continue
		}
		var blocks []struct {
			Type, Text string
			ID         string `json:"tool_use_id"`
			Failed     bool   `json:"is_error"`
			Content    []struct{ Text string }
		}
		if err := json.Unmarshal(m.Content, &blocks); err != nil || m.Role != "user" {
			t.Fatalf("%v in the %s's %s", err, m.Role, m.Content)
		}
		for _, block := range blocks {
			switch block.Type {
			case "text":
				a.Users = append(a.Users, block.Text)
			case "tool_result":
				a.Results = append(a.Results, prompthooks.Result{ID: block.ID, Text: block.Content[0].Text, Failed: block.Failed})
			}
		}
	}
	for _, tool := range b.Tools {
		if tool.InputSchema.Type != "object" {
			t.Errorf("tool %+v", tool)
		}
		a.Tools = append(a.Tools, tool.Name)
	}
	if b.Output.Format.Type == "json_schema" {
		a.Schema = keys(t, b.Output.Format.Schema.Properties)
	}
	return a
}

// keys of an object, in order.
func keys(t testing.TB, object json.RawMessage) (names []string) {
	dec := json.NewDecoder(strings.NewReader(string(object)))
	if _, err := dec.Token(); err != nil {
		t.Fatalf("%v in %q", err, object)
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			t.Fatalf("%v in %s", err, object)
		}
		names = append(names, fmt.Sprint(name))
	}
	return names
}
