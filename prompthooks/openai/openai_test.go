package openai

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"stopgate/prompthooks"
	"stopgate/prompthooks/modeltest"
)

const testKey = "sk-very-secret-0123456789"

// generate asks a server that answers with a status and a body, once.
func generate(t *testing.T, o Options, status int, body string, req prompthooks.Request) (prompthooks.Response, map[string]any, modeltest.Request, error) {
	t.Helper()
	s := modeltest.Serve(t, modeltest.Answer(status, body))
	o.BaseURL = s.URL + o.BaseURL
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Generate(t.Context(), req)
	asked := s.Requests()
	if len(asked) != 1 {
		t.Fatalf("%d requests, want 1 (%v)", len(asked), err)
	}
	var sent map[string]any
	if err := json.Unmarshal(asked[0].Body, &sent); err != nil {
		t.Errorf("%v in %s", err, asked[0].Body)
	}
	return got, sent, asked[0], err
}

func ask(model string) prompthooks.Request {
	return prompthooks.Request{Model: model, Messages: []prompthooks.Message{{Role: prompthooks.User, Text: "Is it done?"}}}
}

func TestAzureWhere(t *testing.T) {
	for _, c := range []struct{ version, model, path, query string }{
		{"2024-10-21", "judge 1", "/openai/deployments/judge%201/chat/completions", "api-version=2024-10-21"},
		{"v1", "judge-1", "/openai/v1/chat/completions", ""},
	} {
		_, sent, r, err := generate(t, Options{APIKey: testKey, AzureVersion: c.version}, 200, says("x"), ask(c.model))
		if err != nil || r.Path != c.path || r.Query != c.query || r.Header.Get("Api-Key") != testKey || sent["model"] != c.model {
			t.Errorf("%s: %v, request to %s?%s, model %v", c.version, err, r.Path, r.Query, sent["model"])
		}
	}
	t.Run("a deployment stays in its place", func(t *testing.T) {
		p, err := New(Options{APIKey: testKey, BaseURL: "http://127.0.0.1:1", AzureVersion: "2024-10-21"})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"", "..", "a/../../b", strings.Repeat("m", 201)} {
			_, err := p.Generate(t.Context(), ask(name))
			if bad, ok := errors.AsType[*prompthooks.Error](err); !ok || bad.Kind != prompthooks.Rejected {
				t.Errorf("%q: %v", name, err)
			}
		}
		_, _, r, err := generate(t, Options{APIKey: testKey, AzureVersion: "2024-10-21"}, 200, says("x"), ask("a/b?c#d"))
		if err != nil || r.Path != "/openai/deployments/a%2Fb%3Fc%23d/chat/completions" {
			t.Errorf("%v, request to %s", err, r.Path)
		}
	})
}

// A filter that stops the prompt is a refusal, though it comes as an error.
func TestFilteredPrompt(t *testing.T) {
	for name, body := range map[string]string{
		"Azure":  `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`,
		"OpenAI": `{"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy.","type":"invalid_request_error","param":null,"code":"invalid_prompt"}}`,
	} {
		got, _, _, err := generate(t, Options{APIKey: testKey}, 400, body, ask("m"))
		if err != nil || got.Finish != prompthooks.Refused || !strings.Contains(got.Detail, "polic") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestFinish(t *testing.T) {
	for reason, want := range map[string]prompthooks.Finish{
		"stop": prompthooks.Finished, "tool_calls": prompthooks.Finished, "": prompthooks.Finished, "length": prompthooks.Truncated,
		"content_filter": prompthooks.Refused, "error": prompthooks.Malformed, "solar_flare": prompthooks.Malformed,
	} {
		got, _, _, err := generate(t, Options{APIKey: testKey}, 200, completion(`{"role":"assistant","content":"{\"ok\":true}"}`, reason), ask("m"))
		if err != nil || got.Finish != want {
			t.Errorf("%q: %d, %v", reason, got.Finish, err)
		}
	}
}

// Local models think in the text. Only what stands before the answer is
// thought: a verdict must not be cut away by a tag that it quotes.
func TestThoughtsInTheText(t *testing.T) {
	for text, want := range map[string]string{
		"<think>\n{\"ok\":true}?\n</think>\n\n{\"ok\":false}":        `{"ok":false}`,
		" \n<think></think>{\"ok\":false}":                           `{"ok":false}`,
		"{\"ok\":false} since it wrote <think></think>{\"ok\":true}": "{\"ok\":false} since it wrote <think></think>{\"ok\":true}",
		"{\"ok\":false} since it wrote </think>{\"ok\":true}":        "{\"ok\":false} since it wrote </think>{\"ok\":true}",
		"<think>cut off":         "<think>cut off",
		"<thinking>x</thinking>": "<thinking>x</thinking>",
		"<think>a</think>{\"ok\":false,\"reason\":\"it wrote </think>\"}": "{\"ok\":false,\"reason\":\"it wrote </think>\"}",
	} {
		got, _, _, err := generate(t, Options{APIKey: testKey}, 200, says(text), ask("m"))
		if err != nil || got.Message.Text != want {
			t.Errorf("%q is %q, want %q (%v)", text, got.Message.Text, want, err)
		}
	}
}

// What is not needed is not sent: strict servers refuse what they do not know.
func TestFieldsOfARequest(t *testing.T) {
	req := ask("m")
	_, sent, _, err := generate(t, Options{BaseURL: "/v1"}, 200, says("x"), req)
	if err != nil || len(sent) != 2 {
		t.Errorf("sent %v, %v", sent, err)
	}
	req.MaxOutputTokens, req.Unthinking = 512, true
	_, sent, _, err = generate(t, Options{BaseURL: "/v1"}, 200, says("x"), req)
	if err != nil || len(sent) != 4 || sent["max_completion_tokens"] != 512.0 || sent["reasoning_effort"] != "none" {
		t.Errorf("sent %v, %v", sent, err)
	}
}

// A model that must think cannot be asked not to; then it has no tools at all.
func TestMustThink(t *testing.T) {
	req := ask("m")
	req.Tools, req.Unthinking = []prompthooks.Tool{{Name: "ReadFile"}}, true
	_, _, _, err := generate(t, Options{APIKey: testKey}, 400, `{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low', 'medium', 'high', 'xhigh', and 'max'.","type":"invalid_request_error","param":"reasoning_effort","code":"unsupported_value"}}`, req)
	if bad, ok := errors.AsType[*prompthooks.Error](err); !ok || bad.Kind != prompthooks.Unsupported || bad.Lacks != prompthooks.Tools {
		t.Errorf("got %+v", err)
	}
}

// A key that is no secret but a word does not spoil what a model says.
func TestPlaceholderKey(t *testing.T) {
	got, _, r, err := generate(t, Options{APIKey: "ok", BaseURL: "/v1"}, 200, says(`{"ok":true}`), ask("m"))
	if err != nil || got.Message.Text != `{"ok":true}` || r.Header.Get("Authorization") != "Bearer ok" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestMessageOfAnotherProvider(t *testing.T) {
	req := ask("m")
	req.Messages = append(req.Messages, prompthooks.Message{Role: prompthooks.Assistant, Text: "hm",
		Calls: []prompthooks.Call{{ID: "c1", Name: "ReadFile", Args: json.RawMessage(`{"offset":1}`)}}})
	_, sent, _, err := generate(t, Options{APIKey: testKey}, 200, says("x"), req)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(sent["messages"].([]any)[1])
	if want := `{"content":"hm","role":"assistant","tool_calls":[{"function":{"arguments":"{\"offset\":1}","name":"ReadFile"},"id":"c1","type":"function"}]}`; string(got) != want {
		t.Errorf("sent %s", got)
	}
}

func TestNewChecksOptions(t *testing.T) {
	for _, o := range []Options{{}, {APIKey: testKey, AzureVersion: "v1"}, {BaseURL: "http://h", AzureVersion: "v1"},
		{APIKey: testKey, BaseURL: "ftp://x"}, {APIKey: testKey, BaseURL: "x"}, {APIKey: testKey, BaseURL: "http://"}, {APIKey: testKey, BaseURL: "http://h/?key=x"}} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), testKey) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if p, err := New(Options{APIKey: testKey, Lacks: prompthooks.Schemas}); err != nil || p.Lacks() != prompthooks.Schemas {
		t.Error(err)
	}
}

func TestModels(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   []string // nil: an error
	}{
		"OpenAI":    {200, `{"object":"list","data":[{"id":"gpt-6-luna","object":"model","created":1790000000,"owned_by":"openai"},{"id":"gpt-6-sol","object":"model"}]}`, []string{"gpt-6-luna", "gpt-6-sol"}},
		"odd names": {200, `{"data":[{"id":""},{"id":"` + strings.Repeat("x", 201) + `"},{"id":"m"},{}]}`, []string{"m"}},
		"none":      {200, `{"object":"list","data":null}`, []string{}},
		"HTML":      {200, `<html>`, nil},
		"404":       {404, `not found`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer "+testKey {
					t.Errorf("%s %s", r.Method, r.URL)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer s.Close()
			p, err := New(Options{APIKey: testKey, BaseURL: s.URL + "/v1"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Models(t.Context())
			if (err != nil) != (c.want == nil) || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// A key that comes back is not in the answer, however JSON spells it.
func TestEchoedKey(t *testing.T) {
	const key = "sk-abcd/efgh+ijkl"
	for name, spelt := range map[string]string{"as it is": key, "escaped": `sk-abcd\/efgh+ijkl`, "in hexadecimal": `\u0073k-abcd\u002Fefgh\u002bijkl`} {
		t.Run(name, func(t *testing.T) {
			got, _, _, err := generate(t, Options{APIKey: key}, 200, says("it is "+spelt), ask("m"))
			if err != nil || got.Message.Text != "it is [key]" || strings.Contains(string(got.Message.Native), "sk-") {
				t.Errorf("%+v %v", got.Message, err)
			}
			_, _, _, err = generate(t, Options{APIKey: key}, 400, `{"error":{"message":"no: `+spelt+`"}}`, ask("m"))
			if err == nil || !strings.HasSuffix(err.Error(), "no: [key]") {
				t.Error(err)
			}
		})
	}
}

func TestTokensOfAHostileServer(t *testing.T) {
	for _, n := range []string{"9223372036854775807", "-9223372036854775808"} {
		got, _, _, err := generate(t, Options{APIKey: testKey}, 200, `{"choices":[],"usage":{"prompt_tokens":`+n+`,"completion_tokens":`+n+`}}`, ask("m"))
		if u := got.Usage; err != nil || u.PromptTokens < 0 || u.OutputTokens < 0 || u.PromptTokens+u.OutputTokens < 0 {
			t.Errorf("%s: %+v %v", n, u, err)
		}
	}
}
