package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/modeltest"
)

// completion is an answer as OpenAI's reference of Chat Completions shows it.
func completion(message, finish string) string {
	return `{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1741569952,"model":"gpt-6-luna-2026-09-22",
		"choices":[{"index":0,"message":` + message + `,"logprobs":null,"finish_reason":"` + finish + `"}],
		"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,
			"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},
			"completion_tokens_details":{"reasoning_tokens":192,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},
		"service_tier":"default","system_fingerprint":"fp_44709d6fcb"}`
}

func says(text string) string {
	b, _ := json.Marshal(text)
	return completion(`{"role":"assistant","content":`+string(b)+`,"refusal":null,"annotations":[]}`, "stop")
}

const toolCalls = `[{"id":"call_abc123","type":"function","function":{"name":"GrepSearch","arguments":"{\"pattern\":\"tests\"}"}},` +
	`{"id":"call_def456","type":"function","function":{"name":"ReadFile","arguments":"{\"offset\":7}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]`

// suite of OpenAI; the flavours differ in where they are and how they let a
// request in.
func suite(open func(base string) Options, key func(modeltest.Request) string) modeltest.Provider {
	return modeltest.Provider{
		Open: func(t testing.TB, base string) prompthooks.Model {
			p, err := New(open(base))
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Asked: func(t testing.TB, r modeltest.Request) modeltest.Asked {
			a := asked(t, r.Body)
			a.Key = key(r)
			return a
		},
		Env: []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET",
			"OPENAI_CUSTOM_HEADERS", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION"},
		Says:    says,
		Calls:   completion(`{"role":"assistant","content":null,"reasoning_content":"I search.","refusal":null,"tool_calls":`+toolCalls+`}`, "tool_calls"),
		CallIDs: [2]string{"call_abc123", "call_def456"},
		Native:  `{"content":null,"reasoning_content":"I search.","role":"assistant","tool_calls":` + toolCalls + `}`,
		Usage:   gate.Usage{PromptTokens: 2006, CachedTokens: 1920, OutputTokens: 300},
		Refused: completion(`{"role":"assistant","content":null,"refusal":"I'm sorry, this is against policy."}`, "stop"),

		Truncated:   completion(`{"role":"assistant","content":"{\"ok\":tr","refusal":null}`, "length"),
		Malformed:   completion(`{"role":"assistant","content":"{\"ok\":true}","refusal":null}`, "insufficient_system_resource"),
		RateLimited: modeltest.Fault{Status: 429, Body: `{"error":{"message":"Rate limit reached for gpt-6-luna in organization org-x on tokens per min (TPM): Limit 30000, Used 29500, Requested 900.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`},
		Down:        modeltest.Fault{Status: 503, Body: `{"error":{"message":"The engine is currently overloaded, please try again later","type":"server_error","param":null,"code":null}}`},
		Denied:      modeltest.Fault{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: key-****6789. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`},
		Lacking: []modeltest.Lack{
			lack("OpenAI: thinking beside tools", 400, prompthooks.Thinking, `{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.","type":"invalid_request_error","param":"reasoning_effort","code":null}}`),
			lack("OpenAI: a schema", 400, prompthooks.Schemas, `{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.","type":"invalid_request_error","param":null,"code":null}}`),
			lack("Azure: a schema in an old version", 400, prompthooks.Schemas, `{"error":{"message":"response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later","type":"invalid_request_error","param":"response_format","code":"BadRequest"}}`),
			lack("Ollama: tools", 400, prompthooks.Tools, `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error","param":null,"code":null}}`),
			lack("vLLM: tools", 400, prompthooks.Tools, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}`),
			lack("llama.cpp: tools", 500, prompthooks.Tools, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`),
			lack("OpenRouter: tools", 404, prompthooks.Tools, `{"error":{"message":"No endpoints found that support tool use. Try disabling \"GrepSearch\".","code":404}}`),
			lack("LM Studio: a forced tool", 400, prompthooks.Forcing, `{"error":"Invalid tool_choice type: 'object'. Supported string values: none, auto, required"}`),
			lack("DeepSeek: a forced tool", 400, prompthooks.Forcing, `{"error":{"message":"deepseek-reasoner does not support this tool_choice","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`),
			lack("DeepSeek: a schema", 400, prompthooks.Schemas, `{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`),
			lack("Groq: a schema", 400, prompthooks.Schemas, `{"error":{"message":"This model does not support response format `+"`json_schema`"+`","type":"invalid_request_error"}}`),
		},
	}
}

func lack(name string, status int, f prompthooks.Features, body string) modeltest.Lack {
	return modeltest.Lack{Name: name, Fault: modeltest.Fault{Status: status, Body: body}, Feature: f}
}

// asked reads a request's body.
func asked(t testing.TB, body []byte) (a modeltest.Asked) {
	var b struct {
		Model    string
		Messages []json.RawMessage
		Tools    []struct {
			Type     string
			Function struct {
				Name       string
				Parameters struct{ Type string }
			}
		}
		ToolChoice struct {
			Type     string
			Function struct{ Name string }
		} `json:"tool_choice"`
		Format struct {
			Type       string
			JSONSchema struct {
				Name   string
				Schema struct{ Properties json.RawMessage }
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	a.Model, a.Force = b.Model, b.ToolChoice.Function.Name
	for _, raw := range b.Messages {
		var m struct {
			Role, Content string
			ID            string `json:"tool_call_id"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		switch m.Role {
		case "system":
			a.System += m.Content
		case "user":
			a.Users = append(a.Users, m.Content)
		case "assistant":
			a.Native = append(a.Native, string(raw))
		case "tool":
			a.Results = append(a.Results, prompthooks.Result{ID: m.ID, Text: m.Content, Failed: strings.HasPrefix(m.Content, "Error: ")})
		default:
			t.Errorf("message %s", raw)
		}
	}
	for _, tool := range b.Tools {
		if tool.Type != "function" || tool.Function.Parameters.Type != "object" {
			t.Errorf("tool %+v", tool)
		}
		a.Tools = append(a.Tools, tool.Function.Name)
	}
	if b.Format.Type == "json_schema" && b.Format.JSONSchema.Name != "" {
		a.Schema = keys(t, b.Format.JSONSchema.Schema.Properties)
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

func bearer(r modeltest.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func TestOpenAI(t *testing.T) {
	modeltest.Run(t, suite(func(base string) Options { return Options{APIKey: modeltest.Key, BaseURL: base + "/v1"} },
		func(r modeltest.Request) string {
			if r.Path != "/v1/chat/completions" {
				return "request to " + r.Path
			}
			return bearer(r)
		}))
}

func TestAzure(t *testing.T) {
	modeltest.Run(t, suite(func(base string) Options {
		return Options{APIKey: modeltest.Key, BaseURL: base, AzureVersion: "2024-10-21"}
	},
		func(r modeltest.Request) string {
			if r.Path != "/openai/deployments/"+modeltest.Deployment+"/chat/completions" || r.Query != "api-version=2024-10-21" || bearer(r) != "" {
				return fmt.Sprintf("request to %s?%s, %v", r.Path, r.Query, r.Header)
			}
			return r.Header.Get("Api-Key")
		}))
}

// A server of one's own wants no key, and none is sent.
func TestCompatible(t *testing.T) {
	p := suite(func(base string) Options { return Options{BaseURL: base + "/v1/"} },
		func(r modeltest.Request) string {
			if r.Path != "/v1/chat/completions" || r.Header["Authorization"] != nil || r.Header["Api-Key"] != nil {
				return fmt.Sprintf("request to %s, %v", r.Path, r.Header)
			}
			return modeltest.Key // as if
		})
	p.Keyless = true
	modeltest.Run(t, p)
}
