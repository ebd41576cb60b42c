package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgate/prompthooks"
	"stopgate/prompthooks/exchange"
)

// brokenBodies of a success: each is an error, or an empty answer, and never a
// verdict.
func (p Provider) brokenBodies(t *testing.T) {
	whole := p.Says(`{"ok":true}`)
	for _, c := range []struct {
		name, body string
		want       prompthooks.ErrorKind // -1: an empty answer is as good
	}{
		{"empty object", `{}`, -1},
		{"nothing", ``, -1},
		{"null", `null`, prompthooks.Garbled},
		{"true", `true`, prompthooks.Garbled},
		{"list", `[]`, prompthooks.Garbled},
		{"HTML", `<html><body>{"ok":true}</body></html>`, prompthooks.Garbled},
		{"half", whole[:len(whole)/2], prompthooks.Garbled},
		{"all but the last brace", strings.TrimSuffix(strings.TrimSpace(whole), "}"), prompthooks.Garbled},
		{"deep", strings.Repeat("[", 100_000), prompthooks.Garbled},
		{"too large", `{"x":"` + strings.Repeat("x", exchange.MaxBodyBytes) + `"}`, prompthooks.Garbled},
		{"an error", `{"error":{"message":"quota"}}`, prompthooks.Garbled},
		{"an error in words", `{"error":"quota"}`, prompthooks.Garbled},
		{"an error that is a list", `{"error":[{"code":429}]}`, prompthooks.Garbled},
		{"an error that is true", `{"error":true}`, prompthooks.Garbled},
		{"an error that says 429", `{"error":{"code":429,"message":"quota"}}`, prompthooks.RateLimited},
		{"an error that says 503 as a text", `{"error":{"code":"503","message":"quota"}}`, prompthooks.Unavailable},
		{"an error of the rate_limit type", `{"error":{"type":"rate_limit_error","message":"quota"}}`, prompthooks.RateLimited},
		{"an error beside an answer", `{"error":"quota",` + strings.TrimPrefix(strings.TrimSpace(whole), "{"), prompthooks.Garbled},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := p.ask(t, Answer(200, c.body), question())
			switch {
			case err == nil && (c.want != -1 || got.Message.Text != "" || len(got.Message.Calls) > 0):
				t.Errorf("taken for an answer: %+v", got)
			case err != nil && c.want == -1 && kindOf(t, err) != prompthooks.Garbled, err != nil && c.want != -1 && kindOf(t, err) != c.want:
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a right answer of the wrong content type", func(t *testing.T) {
		got, _, err := p.ask(t, Answer(200, whole, "Content-Type", "text/plain"), question())
		if err != nil || got.Message.Text != `{"ok":true}` {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// wrongTypes puts wrong values in every place of an answer. Some make SDKs
// panic (fault gx-078). None may be taken for another answer than it was.
func (p Provider) wrongTypes(t *testing.T) {
	s := Serve(t, Answer(200, `{}`))
	model := p.Open(t, s.URL)
	for _, body := range []string{p.Says(`{"ok":false}`), p.Calls} {
		right, _ := p.answer(t, body, withTools())
		for where, wrong := range mutants(t, body) {
			s.mu.Lock()
			s.answers = []http.HandlerFunc{Answer(200, wrong)}
			s.mu.Unlock()
			got, err := model.Generate(t.Context(), withTools())
			if err != nil {
				kindOf(t, err)
				continue
			}
			if text := got.Message.Text; text != "" && text != right.Message.Text && !strings.Contains(where, "content") {
				t.Errorf("%s: text %q", where, text)
			}
			if got.Usage.PromptTokens > 1<<40 {
				t.Errorf("%s: usage %+v", where, got.Usage)
			}
		}
	}
}

// mutants of a JSON body: for each place in it, the body with something else
// there.
func mutants(t *testing.T, body string) map[string]string {
	t.Helper()
	all := map[string]string{}
	var walk func(path string, v any, put func(any))
	var root any
	if err := json.Unmarshal([]byte(body), &root); err != nil {
		t.Fatalf("a body of the suite: %v", err)
	}
	walk = func(path string, v any, put func(any)) {
		for i, wrong := range []any{nil, true, -1.5, "x", []any{}, []any{nil}, map[string]any{}, map[string]any{"x": []any{1}}} {
			put(wrong)
			b, err := json.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%s #%d", path, i)] = string(b)
		}
		put(v)
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Collect(maps.Keys(v)) {
				walk(path+"."+name, v[name], func(w any) { v[name] = w })
			}
		case []any:
			for i := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), v[i], func(w any) { v[i] = w })
			}
		}
	}
	walk("", root, func(v any) { root = v })
	return all
}

// connections that hang, break or never come about.
func (p Provider) connections(t *testing.T) {
	part := p.Says(`{"ok":true}`)
	part = part[:len(part)/2]
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   prompthooks.ErrorKind
	}{
		"dropped": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, prompthooks.Unavailable},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, part)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, prompthooks.Unavailable},
		"without end": {func(w http.ResponseWriter, r *http.Request) {
			chunk := []byte(strings.Repeat(" ", 64<<10))
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, prompthooks.Garbled},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := p.ask(t, c.answer, question())
			if got := kindOf(t, err); got != c.want {
				t.Errorf("kind %d, want %d: %v", got, c.want, err)
			}
		})
	}
	for name, answer := range map[string]http.HandlerFunc{
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"drop by drop": func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for {
				_, _ = io.WriteString(w, " ")
				w.(http.Flusher).Flush()
				select {
				case <-tick.C:
				case <-r.Context().Done():
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := p.Open(t, Serve(t, answer).URL).Generate(ctx, question())
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the context's end", err)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		s := Serve(t, Answer(200, `{}`))
		model := p.Open(t, s.URL)
		s.Close()
		if _, err := model.Generate(t.Context(), question()); kindOf(t, err) != prompthooks.Unavailable {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a request that cannot be made", func(t *testing.T) {
		s := Serve(t, Answer(200, p.Says("x")))
		req := question()
		req.Messages = append(req.Messages, prompthooks.Message{Role: prompthooks.Assistant, Native: json.RawMessage("{" + Key)})
		if _, err := p.Open(t, s.URL).Generate(t.Context(), req); kindOf(t, err) != prompthooks.Rejected || len(s.Requests()) != 0 {
			t.Errorf("got %v, %d requests", err, len(s.Requests()))
		}
	})
}

// key: a server that echoes what it was sent does not make the provider tell
// the key, in an error or in an answer, which goes to records and as a reason to
// the gated agent.
func (p Provider) key(t *testing.T) {
	if p.Keyless {
		t.Skip("no key is sent")
	}
	echo := func(status int, body string) http.HandlerFunc {
		return Answer(status, strings.ReplaceAll(body, "KEY", Key))
	}
	for name, answer := range map[string]http.HandlerFunc{
		"in an error":            echo(400, `{"error":{"message":"bad key KEY"}}`),
		"in a proxy's page":      echo(502, `<html>KEY</html>`),
		"across the cut":         echo(400, strings.Repeat("x", 290)+"KEY"),
		"in a page with 200":     echo(200, `<html>KEY`),
		"in an error inside 200": echo(200, `{"error":{"message":"KEY"}}`),
		"in an answer":           echo(200, p.Says(`{"ok":false,"reason":"KEY"}`)),
		"in a call":              echo(200, strings.ReplaceAll(p.Calls, "tests", "KEY")),
		"in a refusal":           echo(200, strings.ReplaceAll(p.Refused, "policy", "KEY")),
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := p.ask(t, answer, withTools())
			got.Message.Native = nil // goes back to the server alone
			all, _ := json.Marshal(got)
			if strings.Contains(string(all)+fmt.Sprintf("%v %+v", err, err), Key[:20]) {
				t.Errorf("%s %v", all, err)
			}
		})
	}
}

func (p Provider) redirect(t *testing.T) {
	elsewhere := Serve(t, Answer(200, p.Says(`{"ok":true}`)))
	for _, status := range []int{301, 302, 307, 308} {
		for _, location := range []string{elsewhere.URL, "/elsewhere"} { // ask counts the requests to the same server
			_, _, err := p.ask(t, Answer(status, ``, "Location", location), question())
			if kindOf(t, err) != prompthooks.Rejected || len(elsewhere.Requests()) != 0 {
				t.Errorf("status %d to %s: %v, %d requests elsewhere", status, location, err, len(elsewhere.Requests()))
			}
		}
	}
}

// environment: nothing that SDKs read by themselves changes a request.
func (p Provider) environment(t *testing.T) {
	s := Serve(t, Answer(200, p.Says(`{"ok":true}`)))
	if _, err := p.Open(t, s.URL).Generate(t.Context(), withTools()); err != nil {
		t.Fatal(err)
	}
	elsewhere := Serve(t, Answer(200, p.Says(`{"ok":true}`)))
	for _, name := range p.Env {
		value := "from-the-environment"
		switch {
		case strings.Contains(name, "URL"):
			value = elsewhere.URL
		case strings.Contains(name, "HEADERS"):
			value = "X-Environment: yes\nAuthorization: Bearer other"
		case strings.Contains(name, "_USE_"):
			value = "true"
		}
		t.Setenv(name, value)
	}
	if _, err := p.Open(t, s.URL).Generate(t.Context(), withTools()); err != nil {
		t.Fatal(err)
	}
	if n := len(elsewhere.Requests()); n != 0 {
		t.Fatalf("%d requests went elsewhere", n)
	}
	before, after := s.Requests()[0], s.Requests()[1]
	for name := range after.Header {
		if !slices.Equal(before.Header[name], after.Header[name]) {
			t.Errorf("header %s: %q, without the environment %q", name, after.Header[name], before.Header[name])
		}
	}
	if before.Path != after.Path || before.Query != after.Query || string(before.Body) != string(after.Body) {
		t.Errorf("request to %s?%s\n%s\nwithout the environment to %s?%s\n%s", after.Path, after.Query, after.Body, before.Path, before.Query, before.Body)
	}
}
