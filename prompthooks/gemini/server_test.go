package gemini

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"stopgate/prompthooks"
)

// testKey is what must never be seen outside the one header.
const testKey = "AIza-very-secret"

// server is a Gemini API on this machine: it answers with its handlers in
// turn, the last one again and again, and keeps every request.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	answers  []http.HandlerFunc
}

type request struct {
	path, query, key string
	raw              []byte
	body             map[string]any
}

func serve(t testing.TB, answers ...http.HandlerFunc) *server {
	s := &server{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		req := request{path: r.URL.Path, query: r.URL.RawQuery, key: r.Header.Get("x-goog-api-key"), raw: raw}
		if err := json.Unmarshal(raw, &req.body); err != nil {
			t.Errorf("the request's body is not JSON: %v", err)
		}
		s.mu.Lock()
		s.requests = append(s.requests, req)
		answer := s.answers[min(len(s.requests), len(s.answers))-1]
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) seen() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.requests...)
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

// raw answers with a status and a body as they are.
func raw(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// says answers with one text.
func says(text string) http.HandlerFunc {
	b, _ := json.Marshal(text)
	return raw(200, `{"candidates":[{"content":{"role":"model","parts":[{"text":`+string(b)+`}]},"finishReason":"STOP"}],
		"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7,"thoughtsTokenCount":3}}`)
}

// parts answers with content parts as they are.
func parts(p string) http.HandlerFunc {
	return raw(200, `{"candidates":[{"content":{"role":"model","parts":[`+p+`]},"finishReason":"STOP"}]}`)
}
