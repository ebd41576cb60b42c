package gemini

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/modeltest"
)

// candidate is an answer as Google's reference of generateContent has it.
func candidate(content, finish string) string {
	return `{"candidates":[{"content":` + content + `,"finishReason":"` + finish + `","avgLogprobs":-0.1,"index":0}],
		"usageMetadata":{"promptTokenCount":2006,"cachedContentTokenCount":1920,"candidatesTokenCount":108,"thoughtsTokenCount":192,"totalTokenCount":2306,
			"promptTokensDetails":[{"modality":"TEXT","tokenCount":2006}]},
		"modelVersion":"gemini-3.6-flash","createTime":"2026-11-02T10:00:00.000000Z","responseId":"mAitaLmkHPPlz7IPvtfUqQ4"}`
}

func fault(status int, word, message, details string) modeltest.Fault {
	b, _ := json.Marshal(map[string]any{"code": status, "message": message, "status": word, "details": json.RawMessage(details)})
	return modeltest.Fault{Status: status, Body: `{"error":` + string(b) + `}`}
}

// turn is a model's with two calls, signed.
const turn = `{"role":"model","parts":[{"text":"","thoughtSignature":"c2lnbmVk"},` +
	`{"functionCall":{"id":"call-6","name":"GrepSearch","args":{"pattern":"tests"}},"thoughtSignature":"AAEC/+8="},` +
	`{"functionCall":{"id":"call-7","name":"ReadFile","args":{"offset":7}},"partOfTheFuture":{"x":[1,2]}}]}`

func suite(open func(t testing.TB, base string) (*Provider, error), path string, key func(modeltest.Request) string) modeltest.Provider {
	return modeltest.Provider{
		Open: func(t testing.TB, base string) prompthooks.Model {
			p, err := open(t, base)
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Asked: func(t testing.TB, r modeltest.Request) modeltest.Asked {
			if r.Path != path || r.Query != "" {
				t.Errorf("request to %s?%s", r.Path, r.Query)
			}
			a := asked(t, r.Body)
			a.Key, a.Model = key(r), modeltest.Deployment // from the path
			return a
		},
		Env: []string{"GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
			"GOOGLE_CLOUD_REGION", "GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL",
			"GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_QUOTA_PROJECT"},
		Says: func(text string) string {
			b, _ := json.Marshal(text)
			return candidate(`{"role":"model","parts":[{"text":`+string(b)+`}]}`, "STOP")
		},
		Calls:   candidate(turn, "STOP"),
		CallIDs: [2]string{"call-6", "call-7"},
		Native:  turn,
		Usage:   gate.Usage{PromptTokens: 2006, CachedTokens: 1920, OutputTokens: 300},
		Refused: `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","blockReasonMessage":"against policy"},` +
			`"usageMetadata":{"promptTokenCount":2006,"totalTokenCount":2006},"modelVersion":"gemini-3.6-flash"}`,
		Truncated: candidate(`{"role":"model","parts":[{"text":"{\"ok\":tr"}]}`, "MAX_TOKENS"),
		Malformed: candidate(`{"role":"model","parts":[{"text":"{\"ok\":true}"}]}`, "MALFORMED_FUNCTION_CALL"),
		RateLimited: fault(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details.",
			`[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}]`),
		Down:   fault(503, "UNAVAILABLE", "The model is overloaded. Please try again later.", `[]`),
		Denied: fault(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers (callers without established identity).", `[]`),
		Lacking: []modeltest.Lack{
			{Name: "tools", Feature: prompthooks.Tools, Fault: fault(400, "INVALID_ARGUMENT", "Function calling is not enabled for models/gemma-3-27b-it", `[]`)},
			{Name: "a schema", Feature: prompthooks.Schemas, Fault: fault(400, "INVALID_ARGUMENT", "JSON mode is not enabled for models/gemma-3-27b-it", `[]`)},
		},
	}
}

func asked(t testing.TB, body []byte) (a modeltest.Asked) {
	var b struct {
		Contents []json.RawMessage
		System   struct{ Parts []struct{ Text string } } `json:"systemInstruction"`
		Tools    []struct {
			FunctionDeclarations []struct{ Name string }
		}
		ToolConfig struct {
			FunctionCallingConfig struct {
				Mode                 string
				AllowedFunctionNames []string
			}
		}
		GenerationConfig struct {
			ResponseMimeType string
			ResponseSchema   *struct{ PropertyOrdering []string }
		}
	}
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for _, p := range b.System.Parts {
		a.System += p.Text
	}
	for _, raw := range b.Contents {
		var c struct {
			Role  string
			Parts []struct {
				Text             string
				FunctionResponse *struct {
					ID, Name string
					Response struct{ Output, Error string }
				}
			}
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		if c.Role == "model" {
			a.Native = append(a.Native, string(raw))
			continue
		}
		for _, p := range c.Parts {
			if r := p.FunctionResponse; r != nil {
				a.Results = append(a.Results, prompthooks.Result{ID: r.ID, Name: r.Name, Text: r.Response.Output + r.Response.Error, Failed: r.Response.Error != ""})
			} else {
				a.Users = append(a.Users, p.Text)
			}
		}
	}
	for _, tool := range b.Tools {
		for _, f := range tool.FunctionDeclarations {
			a.Tools = append(a.Tools, f.Name)
		}
	}
	if f := b.ToolConfig.FunctionCallingConfig; f.Mode == "ANY" {
		a.Force = strings.Join(f.AllowedFunctionNames, " ")
	}
	if s := b.GenerationConfig.ResponseSchema; s != nil && b.GenerationConfig.ResponseMimeType == "application/json" {
		a.Schema = s.PropertyOrdering
	}
	return a
}

func TestGemini(t *testing.T) {
	modeltest.Run(t, suite(func(t testing.TB, base string) (*Provider, error) {
		return New(t.Context(), Options{APIKey: modeltest.Key, BaseURL: base})
	}, "/v1beta/models/"+modeltest.Deployment+":generateContent",
		func(r modeltest.Request) string { return r.Header.Get("X-Goog-Api-Key") }))
}

func TestVertex(t *testing.T) {
	modeltest.Run(t, suite(func(t testing.TB, base string) (*Provider, error) {
		return NewVertex(t.Context(), VertexOptions{Project: "my-project", Location: "europe-west4", BaseURL: base,
			Token: func(context.Context) (string, error) { return modeltest.Key, nil }})
	}, "/v1/projects/my-project/locations/europe-west4/publishers/google/models/"+modeltest.Deployment+":generateContent",
		func(r modeltest.Request) string {
			if r.Header["X-Goog-Api-Key"] != nil {
				return "an API key too"
			}
			return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		}))
}
