package modeltest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Request is one request of a provider's.
type Request struct {
	Path, Query string // escaped, as they were sent
	Header      http.Header
	Body        []byte
}

// Server stands for a provider's service on this machine: it answers with its
// handlers in turn, the last one again and again, and keeps every request.
type Server struct {
	*httptest.Server
	mu      sync.Mutex
	asked   []Request
	answers []http.HandlerFunc
}

// Serve starts a Server that lives as long as the test.
func Serve(t testing.TB, answers ...http.HandlerFunc) *Server {
	s := &Server{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the request's body: %v", err)
		}
		s.mu.Lock()
		s.asked = append(s.asked, Request{Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header, Body: body})
		answer := s.answers[min(len(s.asked), len(s.answers))-1]
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// Requests are those that came so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Answer answers with a status, a body and headers as they are. Without another
// the content type is JSON's.
func Answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}
