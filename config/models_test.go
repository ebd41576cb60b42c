package config

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestModelsFromTheEnvironment(t *testing.T) {
	one := func(p Provider) map[string]Provider { return map[string]Provider{p.Kind: p} }
	for _, c := range []struct {
		name, text string
		env        map[string]string
		want       map[string]Provider
	}{
		{"none", "", nil, map[string]Provider{}},
		{"a base URL alone is no provider", "", map[string]string{"GOOGLE_GEMINI_BASE_URL": "http://h", "ANTHROPIC_BASE_URL": "http://h"}, map[string]Provider{}},
		{"Gemini key", "", map[string]string{"GEMINI_API_KEY": "k", "GOOGLE_API_KEY": "other"}, one(Provider{Kind: "gemini", APIKey: "k"})},
		{"Google key and base URL", "", map[string]string{"GOOGLE_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "http://h"},
			one(Provider{Kind: "gemini", APIKey: "k", BaseURL: "http://h"})},
		{"Gemini before the others", "", map[string]string{"GEMINI_API_KEY": "k", "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}, one(Provider{Kind: "gemini", APIKey: "k"})},
		{"Anthropic before OpenAI", "", map[string]string{"ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": "http://h", "OPENAI_API_KEY": "o"},
			one(Provider{Kind: "anthropic", APIKey: "a", BaseURL: "http://h"})},
		{"OpenAI key", "", map[string]string{"OPENAI_API_KEY": "o"}, one(Provider{Kind: "openai", APIKey: "o"})},
		{"a server that speaks OpenAI's API", "", map[string]string{"OPENAI_BASE_URL": "http://h/v1"}, one(Provider{Kind: "openai", BaseURL: "http://h/v1"})},
		{"a provider of the file takes what it leaves out", "models: {providers: {gemini: {}}}", map[string]string{"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "http://h"},
			one(Provider{Kind: "gemini", APIKey: "k", BaseURL: "http://h"})},
		{"Vertex too", "models: {providers: {vertex: {}}}", map[string]string{"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l", "GEMINI_API_KEY": "k"},
			one(Provider{Kind: "vertex", Project: "p", Location: "l"})},
		{"and Azure", "models: {providers: {azure-openai: {model: judge}}}", map[string]string{"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://h"},
			one(Provider{Kind: "azure-openai", APIKey: "k", BaseURL: "https://h", APIVersion: "2024-10-21", Model: "judge"})},
		{"and Ollama", "models: {providers: {ollama: {}}}", map[string]string{"OLLAMA_HOST": "0.0.0.0"}, one(Provider{Kind: "ollama", BaseURL: "http://127.0.0.1:11434"})},
		{"the file's server does not get OpenAI's key", "models: {providers: {openai: {base_url: http://h/v1}}}", map[string]string{"OPENAI_API_KEY": "o"},
			one(Provider{Kind: "openai", BaseURL: "http://h/v1"})},
		{"no providers means none", "models: {providers: {}}", map[string]string{"GEMINI_API_KEY": "k"}, map[string]Provider{}},
		{"everything", "models: {providers: {openai: {api_key: k, base_url: http://h/v1, model: m, tools: false, schema: false}}}", nil,
			one(Provider{Kind: "openai", APIKey: "k", BaseURL: "http://h/v1", Model: "m", NoTools: true, NoSchema: true})},
		{"everything as it is anyway", "models: {providers: {azure-openai: {api_key: k, base_url: http://h, model: m, tools: true, schema: true, api_version: v1}}}", nil,
			one(Provider{Kind: "azure-openai", APIKey: "k", BaseURL: "http://h", Model: "m", APIVersion: "v1"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{"HOME": "/h"}
			maps.Copy(env, c.env)
			s := load(t, c.text, environment(env))
			if diff := cmp.Diff(c.want, s.Models.Providers); diff != "" {
				t.Error(diff)
			}
			if provider, _ := s.Models.Resolve("ReasoningFast"); (provider == "") != (len(c.want) == 0) {
				t.Errorf("provider is %q", provider)
			}
			if none := len(c.want) == 0 && c.text == ""; (s.Models.Probe != "") != none {
				t.Errorf("an Ollama is looked for at %q", s.Models.Probe)
			}
		})
	}
}

// Every service with models of its own has one for each tier.
func TestDefaultTiers(t *testing.T) {
	for _, s := range services {
		if got := slices.Sorted(maps.Keys(s.tiers)); s.tiers != nil && !slices.Equal(got, slices.Sorted(slices.Values(tierNames))) {
			t.Errorf("%s has %v", s.name, got)
		}
	}
	s := load(t, "models: {providers: {claude: {kind: anthropic, api_key: k}}, tiers: {Fast: claude/own}}", environment(map[string]string{"HOME": "/h"}))
	if _, fast := s.Models.Resolve("fast"); fast != "own" || s.Models.Tiers["Reasoning"] != "claude/claude-opus-5-5" {
		t.Errorf("tiers %v", s.Models.Tiers)
	}
	s = load(t, "models: {providers: {ollama: {model: qwen3}}}", environment(map[string]string{"HOME": "/h"}))
	if got := strings.Join(slices.Collect(maps.Values(s.Models.Tiers)), " "); got != strings.TrimSpace(strings.Repeat("ollama/qwen3 ", 5)) || s.Models.Unlisted() {
		t.Errorf("tiers %v", got)
	}
}

// What a server has is known when it has said so.
func TestOffer(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		listed []string
		want   string // of ReasoningFast and Fast
	}{
		"Ollama's first":             {"models: {providers: {ollama: {}}, tiers: {Fast: ollama/own}}", []string{"nomic-embed-text", "qwen3:8b", "llama3.2"}, "qwen3:8b own"},
		"nothing":                    {"models: {providers: {ollama: {}}, tiers: {Fast: ollama/own}}", nil, " own"},
		"nothing that judges":        {"models: {providers: {ollama: {}}, tiers: {Fast: ollama/own}}", []string{"nomic-embed-text"}, " own"},
		"vLLM's only":                {"models: {providers: {openai: {base_url: http://h}}}", []string{"Qwen/Qwen3-8B"}, "Qwen/Qwen3-8B Qwen/Qwen3-8B"},
		"a gateway's, the usual":     {"models: {providers: {openai: {base_url: http://h}}}", []string{"a", "gpt-6-sol", "gpt-6.1-terra", "gpt-6-luna"}, "gpt-6.1-terra gpt-6-luna"},
		"a gateway that lists none":  {"models: {providers: {openai: {base_url: http://h}}}", nil, "gpt-6.1-terra gpt-6-luna"},
		"a gateway's, not all usual": {"models: {providers: {openai: {base_url: http://h}}}", []string{"a", "gpt-6-sol"}, "a a"},
	} {
		t.Run(name, func(t *testing.T) {
			before := load(t, c.text, environment(map[string]string{"HOME": "/h"})).Models
			if _, deployment := before.Resolve("ReasoningFast"); !before.Unlisted() || deployment != "" {
				t.Errorf("before: %q, unlisted %v", deployment, before.Unlisted())
			}
			m := before.Offer(c.listed)
			_, standard := m.Resolve("ReasoningFast")
			_, fast := m.Resolve("Fast")
			if got := standard + " " + fast; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if _, deployment := before.Resolve("ReasoningFast"); deployment != "" {
				t.Error("the models were changed in place")
			}
		})
	}
	m := Models{Probe: "http://127.0.0.1:11434", Tiers: map[string]string{}}.Ollama().Offer([]string{"qwen3"})
	if provider, deployment := m.Resolve(""); provider != "ollama" || deployment != "qwen3" || m.Probe != "" {
		t.Errorf("%q %q", provider, deployment)
	}
}

func TestOllamaHost(t *testing.T) {
	for host, want := range map[string]string{
		"": "http://127.0.0.1:11434", "0.0.0.0": "http://127.0.0.1:11434", "0.0.0.0:1234": "http://127.0.0.1:1234", ":1234": "http://127.0.0.1:1234",
		"[::]:1234": "http://127.0.0.1:1234", "::1": "http://[::1]:11434", "[::1]": "http://[::1]:11434", "gpu": "http://gpu:11434", "gpu:80": "http://gpu:80",
		"http://gpu": "http://gpu:80", "https://gpu/": "https://gpu:443", "https://gpu:8443/ollama/": "https://gpu:8443/ollama", " gpu ": "http://gpu:11434",
		"ftp://gpu": "", "a b": "",
	} {
		if got := ollamaURL(host); got != want {
			t.Errorf("%q is %q, want %q", host, got, want)
		}
	}
}

func TestAzure50ModelNames(t *testing.T) {
	s := load(t, `
models:
  providers:
    gemini: {api_key: k}
    second: {kind: gemini, api_key: k}
  default: gemini
  tiers: {"fast reasoning": second/quick, LONGCONTEXT: second/long}
  models: {judge: second/vendor/model-1, gemini-2.5-pro: second/pinned}
`, atHome)
	for given, want := range map[string]string{
		"ReasoningFast": "second quick", "reasoningfast": "second quick", "REASONINGFAST": "second quick", "Reasoning Fast": "second quick",
		"Fast Reasoning": "second quick", "fast reasoning": "second quick", "": "second quick",
		"Reasoning": "gemini gemini-3.8-flash", "generalPURPOSE": "gemini gemini-3.6-flash", "Fast": "gemini gemini-3.5-flash-lite", "LongContext": "second long",
		"judge": "second vendor/model-1", "gemini-2.5-pro": "second pinned",
		"second/quick-2": "second quick-2", "second/vendor/m": "second vendor/m", "third/quick": "gemini third/quick", "second/": "gemini second/",
		"Judge": "gemini Judge", "gpt-5-mini": "gemini gpt-5-mini", "publishers/x/models/y": "gemini publishers/x/models/y", "reasoning-fast": "gemini reasoning-fast",
	} {
		provider, deployment := s.Models.Resolve(given)
		if got := provider + " " + deployment; got != want {
			t.Errorf("%q is %q, want %q", given, got, want)
		}
	}
	if provider, deployment := (Models{}).Resolve("Fast"); provider != "" || deployment != "Fast" {
		t.Errorf("without providers: %q %q", provider, deployment)
	}
}

func TestModelsKnows(t *testing.T) {
	m := Models{Providers: map[string]Provider{"gemini": {Kind: "gemini"}, "azure": {Kind: "azure-openai", Model: "mine"}}, Default: "gemini",
		Tiers: map[string]string{"ReasoningFast": "gemini/flash"}, Named: map[string]string{"strict": "azure/mine"}}
	for model, want := range map[string]bool{"": true, "reasoningfast": true, "LongContext": true, "haiku": true, "strict": true, "azure/other": true, "flash": true,
		"mine": false, "gpt-9": false, "nobody/flash": false} {
		if got := m.Knows(model); got != want {
			t.Errorf("Knows(%q) = %t", model, got)
		}
	}
}
