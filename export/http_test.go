package export

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHTTP(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string // in the error; empty: it is confirmed
	}{
		{"taken", func(http.ResponseWriter, *http.Request) {}, ""},
		{"taken, without content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, ""},
		{"refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) }, "status 400"},
		{"down", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "status 503"},
		{"elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		}, "status 307"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("half"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "broke off"},
		{"an answer without end", func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = w.Write(make([]byte, 32<<10))
			}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				body, err := io.ReadAll(r.Body)
				if err != nil || string(body) != text(linesOf(0, 3)) || r.Method != http.MethodPost || r.URL.Path != "/in" ||
					r.Header.Get("Content-Type") != "application/x-ndjson" || r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("%s %s %v: %q", r.Method, r.URL, r.Header, body)
				}
				c.answer(w, r)
			}))
			t.Cleanup(s.Close)
			roots := x509.NewCertPool()
			roots.AddCert(s.Certificate())
			h := NewHTTP(HTTPOptions{URL: s.URL + "/in", Headers: map[string]string{"Authorization": "Bearer secret"}, RootCAs: roots})
			defer h.Close()
			err := h.Send(t.Context(), nil, linesOf(0, 3))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

func TestHTTPTrustsNobodyElse(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it says that we hang up
	s.StartTLS()
	t.Cleanup(s.Close)
	h := NewHTTP(HTTPOptions{URL: s.URL + "/?token=secret", RootCAs: x509.NewCertPool()})
	defer h.Close()
	err := h.Send(t.Context(), nil, linesOf(0, 1))
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

func TestHTTPEndsInTime(t *testing.T) {
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(func() { close(over); s.Close() })
	h := NewHTTP(HTTPOptions{URL: s.URL})
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := h.Send(ctx, nil, linesOf(0, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
