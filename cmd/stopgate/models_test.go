package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgate/config"
	"stopgate/gate"
)

// ollama is a server that speaks OpenAI's API as Ollama does: its one model
// takes no tools.
func ollama(t *testing.T, asked *[]string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = append(*asked, r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/v1/models":
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"nomic-embed-text:latest","object":"model","created":1790000000,"owned_by":"library"},{"id":"gemma:2b","object":"model","created":1780000000,"owned_by":"library"}]}`)
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
		case strings.Contains(string(body), `"tools"`):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error","param":null,"code":null}}`)
		default:
			_, _ = io.WriteString(w, `{"id":"chatcmpl-1","object":"chat.completion","created":1790000000,"model":"gemma:2b","system_fingerprint":"fp_ollama",
				"choices":[{"index":0,"message":{"role":"assistant","content":"Sure! {\"ok\": false, \"reason\": \"run the tests\"}"},"finish_reason":"stop"}],
				"usage":{"prompt_tokens":900,"completion_tokens":20,"total_tokens":920}}`)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// modelsOf are those of a server file and an environment.
func modelsOf(t *testing.T, file string, env map[string]string) *models {
	t.Helper()
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "stopgate.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.LoadServer(path, func(name string) string { return env[name] }, func(s *config.Server) { s.Data = t.TempDir() })
	if err != nil {
		t.Fatal(err)
	}
	m, err := openModels(t.Context(), cfg.Models, cfg.Limits.Evaluations)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestModelsThatServe(t *testing.T) {
	var asked []string
	s := ollama(t, &asked)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, c := range []struct {
		name, file string
		env        map[string]string
		ok         bool
		reason     string // part of it
	}{
		{"Gemini", "", map[string]string{"GEMINI_API_KEY": "k"}, true, "provider gemini (gemini): ReasoningFast is gemini-3.6-flash"},
		{"Anthropic", "", map[string]string{"ANTHROPIC_API_KEY": "k"}, true, "provider anthropic (anthropic): ReasoningFast is claude-sonnet-5-5"},
		{"OpenAI", "", map[string]string{"OPENAI_API_KEY": "k"}, true, "provider openai (openai): ReasoningFast is gpt-6.1-terra"},
		{"Vertex", "models: {providers: {vertex: {project: p}}}", nil, true, "provider vertex (vertex): ReasoningFast is gemini-3.6-flash"},
		{"Azure", "models: {providers: {azure-openai: {api_key: k, base_url: https://h, model: judge}}}", nil, true, "ReasoningFast is judge"},
		{"an Ollama that is there", "", map[string]string{"OLLAMA_HOST": s.URL}, true, "provider ollama (ollama): ReasoningFast is gemma:2b"},
		{"an OpenAI-compatible server", "", map[string]string{"OPENAI_BASE_URL": s.URL + "/v1"}, true, "provider openai (openai): ReasoningFast is gemma:2b"},
		{"a gateway without a list", "", map[string]string{"OPENAI_BASE_URL": s.URL + "/nothing"}, true, "ReasoningFast is gpt-6.1-terra"},
		{"an Ollama of the file", "models: {providers: {local: {kind: ollama, base_url: " + s.URL + "/v1/}, gemini: {api_key: k}}, default: local}", nil, true,
			"provider local (ollama): ReasoningFast is gemma:2b; 1 more"},
		{"nothing", "", map[string]string{"OLLAMA_HOST": closed.URL}, false, "no model is configured: set GEMINI_API_KEY"},
		{"an Ollama of the file that is not there", "models: {providers: {ollama: {base_url: " + closed.URL + "}}}", nil, false, "did not say which models it has (connection refused)"},
		{"but its model is known", "models: {providers: {ollama: {base_url: " + closed.URL + ", model: m}}}", nil, true, "ReasoningFast is m"},
		{"none wanted", "models: {providers: {}}", map[string]string{"GEMINI_API_KEY": "k", "OLLAMA_HOST": s.URL}, false, "no model is configured"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := modelsOf(t, c.file, c.env)
			if got := m.check(); got.OK != c.ok || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("got %+v", got)
			}
			if place := strings.TrimPrefix(closed.URL, "http://"); strings.Contains(m.check().Reason, place) {
				t.Errorf("it says where the provider is: %s", m.check().Reason)
			}
			if _, deployment, err := m.find("Fast"); (err == nil) != c.ok || (deployment == "") == c.ok {
				t.Errorf("found %q, %v", deployment, err)
			}
		})
	}
	t.Run("a provider by its name", func(t *testing.T) {
		m := modelsOf(t, "models: {providers: {gemini: {api_key: k}, claude: {kind: anthropic, api_key: k}}, default: gemini}", nil)
		p, deployment, err := m.find("claude/claude-haiku-5-5")
		if err != nil || deployment != "claude-haiku-5-5" || p != m.providers["claude"] {
			t.Errorf("%q, %v", deployment, err)
		}
	})
}

// What needs no model asks for none: `stopgate hook -f` runs at every tool call
// of an agent.
func TestModelsAreAskedWhenNeeded(t *testing.T) {
	var asked []string
	s := ollama(t, &asked)
	m := modelsOf(t, "", map[string]string{"OLLAMA_HOST": s.URL})
	if len(asked) != 0 {
		t.Errorf("asked %v", asked)
	}
	for range 2 {
		if _, _, err := m.find(""); err != nil || len(asked) != 1 {
			t.Errorf("asked %v, %v", asked, err)
		}
	}
	t.Run("a server that never answers holds up nothing for long", func(t *testing.T) {
		hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		defer hangs.Close()
		began := time.Now()
		m := modelsOf(t, "", map[string]string{"OLLAMA_HOST": hangs.URL})
		if m.check().OK || time.Since(began) > probeTime+2*time.Second {
			t.Errorf("%+v after %s", m.check(), time.Since(began))
		}
	})
}

// A model of Ollama that takes no tools judges by a part of the conversation.
func TestOllamaWithoutTools(t *testing.T) {
	var asked []string
	s := ollama(t, &asked)
	var out strings.Builder
	p := process{ctx: t.Context(), stdout: &out, getenv: func(name string) string { return map[string]string{"OLLAMA_HOST": s.URL}[name] },
		stdin: strings.NewReader(`{"hook_event_name":"Stop","final_output":"All tests pass.",
			"transcript":[{"role":"user","content":"make the tests green"},{"role":"assistant","content":"I changed the tests."}]}`)}
	err := evalCommand{Files: []string{"../../examples/evidence-checklist.yaml"}, Event: "-", JSON: true, Sandbox: "off"}.Run(p)
	var d gate.Decision
	if e, ok := errors.AsType[exit](err); !ok || e.code != exitBlock || json.Unmarshal([]byte(out.String()), &d) != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if h := d.Hooks[0]; d.Reason != "run the tests" || h.Model != "gemma:2b" || h.Usage.PromptTokens != 900 {
		t.Errorf("decided %+v", d)
	}
	if len(asked) != 3 || !strings.Contains(asked[2], "The whole conversation") || !strings.Contains(asked[2], "make the tests green") {
		t.Errorf("asked %q", asked)
	}
}
