package gemini

import (
	"encoding/json"
	"net/http"
	"testing"

	"stopgate/prompthooks"
	"stopgate/prompthooks/modeltest"
)

// testKey is what must never be seen outside the one header.
const testKey = "AIza-very-secret"

// server is a Gemini API on this machine.
type server struct {
	*modeltest.Server
	t testing.TB
}

type request struct {
	path, query, key string
	raw              []byte
	body             map[string]any
}

func serve(t testing.TB, answers ...http.HandlerFunc) *server {
	return &server{modeltest.Serve(t, answers...), t}
}

// seen are the requests that came, read.
func (s *server) seen() (requests []request) {
	s.t.Helper()
	for _, r := range s.Requests() {
		req := request{path: r.Path, query: r.Query, key: r.Header.Get("x-goog-api-key"), raw: r.Body}
		if err := json.Unmarshal(r.Body, &req.body); err != nil {
			s.t.Errorf("the request's body is not JSON: %v", err)
		}
		requests = append(requests, req)
	}
	return requests
}

// provider is a Provider for s.
func (s *server) provider(t testing.TB) *Provider {
	t.Helper()
	p, err := New(t.Context(), Options{APIKey: testKey, BaseURL: s.URL, HTTPClient: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// judge asks s.
func (s *server) judge(t testing.TB) *prompthooks.Judge {
	t.Helper()
	p := s.provider(t)
	j, err := prompthooks.New(prompthooks.Options{Model: func(name string) (prompthooks.Model, string, error) {
		return p, "gemini-test", nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// says answers with one text.
func says(text string) http.HandlerFunc {
	b, _ := json.Marshal(text)
	return modeltest.Answer(200, `{"candidates":[{"content":{"role":"model","parts":[{"text":`+string(b)+`}]},"finishReason":"STOP"}],
		"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7,"thoughtsTokenCount":3}}`)
}

// parts answers with content parts as they are.
func parts(p string) http.HandlerFunc {
	return modeltest.Answer(200, `{"candidates":[{"content":{"role":"model","parts":[`+p+`]},"finishReason":"STOP"}]}`)
}
