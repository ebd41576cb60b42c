package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/modeltest"
)

var update = flag.Bool("update", false, "rewrite golden files")

// goldenJSON compares bodies as indented JSON.
func goldenJSON(t *testing.T, name string, body []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// page is a transcript of one line.
type page struct{}

func (page) Path() string    { return "/t/view.txt" }
func (page) RawPath() string { return "" }
func (page) Close() error    { return nil }
func (page) ReadFile(context.Context, int, int) (string, error) {
	return "1\tuser: make the tests green\n", nil
}
func (page) Fingerprint(context.Context) ([32]byte, bool) { return [32]byte{}, false }

func (page) Outline(context.Context, int) (string, bool, error) { return "", false, nil }

func (page) GrepSearch(context.Context, gate.Grep) (string, error) {
	return "1\tuser: make the tests green\n", nil
}

// at walks a decoded JSON value by keys and indexes.
func at(v any, path ...any) any {
	for _, p := range path {
		switch key := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[key]
		case int:
			l, _ := v.([]any)
			if key < 0 {
				key += len(l)
			}
			if key < 0 || key >= len(l) {
				return nil
			}
			v = l[key]
		}
	}
	return v
}

func TestRequestBodies(t *testing.T) {
	req := prompthooks.Request{Model: "gemini-test", System: "Judge <this>.", MaxOutputTokens: 512,
		Messages: []prompthooks.Message{{Role: prompthooks.User, Text: "Is it done? \"€\""}},
		Schema: &prompthooks.Schema{Type: "object", Required: []string{"ok"}, Order: []string{"reason", "ok"}, Properties: map[string]*prompthooks.Schema{
			"ok": {Type: "boolean"}, "reason": {Type: "string", Description: "Why."}}}}
	s := serve(t, says(`{"ok":true}`))
	p := s.provider(t)
	if _, err := p.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	goldenJSON(t, "schema.json", s.seen()[0].raw)
	t.Run("fault gx-076: a schema goes with its MIME type", func(t *testing.T) {
		c := at(s.seen()[0].body, "generationConfig")
		if at(c, "responseMimeType") != "application/json" || at(c, "responseSchema", "type") != "OBJECT" {
			t.Errorf("generationConfig %v", c)
		}
	})

	req.Tools = []prompthooks.Tool{{Name: "GrepSearch", Description: "Finds.", Parameters: req.Schema}, {Name: "submit_verdict", Description: "Ends."}}
	req.Schema, req.Force = nil, "submit_verdict"
	req.Messages = append(req.Messages,
		prompthooks.Message{Role: prompthooks.Assistant, Native: json.RawMessage(`{"role":"model","parts":[{"functionCall":{"name":"GrepSearch","args":{}}}]}`)},
		prompthooks.Message{Role: prompthooks.User, Results: []prompthooks.Result{{Name: "GrepSearch", Text: "found"}, {ID: "c2", Name: "X", Text: "no such tool", Failed: true}}})
	if _, err := p.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	goldenJSON(t, "tools.json", s.seen()[1].raw)

	for _, r := range s.seen() {
		if r.path != "/v1beta/models/gemini-test:generateContent" || r.query != "" || r.key != testKey {
			t.Errorf("request to %s?%s with key %q", r.path, r.query, r.key)
		}
	}
}

// The straight road: search, read, verdict, on the wire.
func TestAzure29ToolLoop(t *testing.T) {
	const native = `{"role":"model","parts":[` +
		`{"text":"","thoughtSignature":"c2lnbmVk"},` +
		`{"functionCall":{"name":"GrepSearch","args":{"pattern":"tests","limit":12345678901234567890}},"thoughtSignature":"AAEC/+8="},` +
		`{"functionCall":{"id":"call-7","name":"ReadFile","args":{"offset":1}},"partOfTheFuture":{"x":[1,2]}}]}`
	s := serve(t,
		modeltest.Answer(200, `{"candidates":[{"content":`+native+`,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":5}}`),
		parts(`{"functionCall":{"name":"submit_verdict","args":{"ok":false,"reason":"run the tests"}}}`))
	v := evaluate(t, s, stop(page{}))
	if v.Outcome != gate.Block || v.Reason != "run the tests" || v.Model != "gemini-test" {
		t.Fatalf("got %s %q %+v", v.Outcome, v.Reason, v.Failure)
	}
	requests := s.seen()
	if len(requests) != 2 {
		t.Fatalf("%d requests, want 2", len(requests))
	}
	t.Run("fault gx-080: the model's turn goes back unchanged", func(t *testing.T) {
		var body struct{ Contents []json.RawMessage }
		if err := json.Unmarshal(requests[1].raw, &body); err != nil {
			t.Fatal(err)
		}
		if got := string(body.Contents[1]); got != native {
			t.Errorf("got  %s\nwant %s", got, native)
		}
	})
	t.Run("fault gx-081: a result has an id only if its call had one", func(t *testing.T) {
		first := at(requests[1].body, "contents", 2, "parts", 0, "functionResponse").(map[string]any)
		second := at(requests[1].body, "contents", 2, "parts", 1, "functionResponse").(map[string]any)
		if _, has := first["id"]; has || first["name"] != "GrepSearch" || second["id"] != "call-7" || second["name"] != "ReadFile" {
			t.Errorf("results %v and %v", first, second)
		}
	})
	t.Run("faults gx-049, gx-072, gx-073: no JSON form beside the tools", func(t *testing.T) {
		for _, r := range requests {
			c, _ := at(r.body, "generationConfig").(map[string]any)
			if at(r.body, "tools", 0, "functionDeclarations", 2, "name") != "submit_verdict" || c["responseMimeType"] != nil || c["responseSchema"] != nil {
				t.Errorf("tools %v, generationConfig %v", at(r.body, "tools"), c)
			}
		}
	})
	t.Run("fault promptctx-02: question and answer are on the wire", func(t *testing.T) {
		text, _ := at(requests[0].body, "contents", 0, "parts", 0, "text").(string)
		if !strings.Contains(text, "Are the tests green?") || !strings.Contains(text, "All tests pass.") {
			t.Errorf("asked %q", text)
		}
	})
	t.Run("fault G65: the same prefix in every request", func(t *testing.T) {
		a, _ := json.Marshal(at(requests[0].body, "systemInstruction"))
		b, _ := json.Marshal(at(requests[1].body, "systemInstruction"))
		if !bytes.Equal(a, b) || len(a) < 100 {
			t.Errorf("%s\n%s", a, b)
		}
	})
}

func TestUnknownToolForEver(t *testing.T) {
	s := serve(t, parts(`{"functionCall":{"name":"DropTables","args":{}}}`))
	v := evaluate(t, s, stop(page{}))
	if v.Failure == nil || v.Failure.Code != gate.BadVerdict {
		t.Errorf("got %s %+v", v.Outcome, v.Failure)
	}
	requests := s.seen()
	if want := prompthooks.DefaultMaxRounds + 2; len(requests) != want {
		t.Errorf("%d requests, want %d", len(requests), want)
	}
	if mode := at(requests[len(requests)-1].body, "toolConfig", "functionCallingConfig", "mode"); mode != "ANY" {
		t.Errorf("the last request's mode is %v", mode)
	}
}

func TestUsage(t *testing.T) {
	s := serve(t, says("hm"), says(`{"ok":true}`))
	v := evaluate(t, s, stop(nil))
	if want := (gate.Usage{Calls: 2, PromptTokens: 200, CachedTokens: 120, OutputTokens: 20}); *v.Usage != want {
		t.Errorf("usage %+v, want %+v", *v.Usage, want)
	}
}

func TestThoughtsAreNotTheAnswer(t *testing.T) {
	s := serve(t, parts(`{"text":"{\"ok\":true}","thought":true},{"text":"{\"ok\":false,"},{"text":"\"reason\":\"x\"}"}`))
	v := evaluate(t, s, stop(nil))
	if v.Outcome != gate.Block || v.Reason != "x" || len(s.seen()) != 1 {
		t.Errorf("got %s %q %+v", v.Outcome, v.Reason, v.Failure)
	}
}

// Google writes the wait into the body of an error.
func TestAzure32RetryAfter(t *testing.T) {
	info := `{"error":{"code":429,"message":"quota","details":[{"@type":"type.googleapis.com/google.rpc.Help"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17.5s"}]}}`
	huge := `{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"99999999999999s"}]}}`
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   time.Duration
	}{
		{"RetryInfo", modeltest.Answer(429, info), 17500 * time.Millisecond},
		{"both: the longer", modeltest.Answer(429, info, "Retry-After", "30"), 30 * time.Second},
		{"in a success", modeltest.Answer(200, info), 17500 * time.Millisecond},
		{"too long for a duration", modeltest.Answer(429, huge), 24 * time.Hour},
		{"nonsense", modeltest.Answer(429, `{"error":{"details":[{"retryDelay":"soon"},{"retryDelay":3}]}}`), 0},
		{"below zero", modeltest.Answer(429, `{"error":{"details":[{"retryDelay":"-5s"}]}}`), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := serve(t, c.answer).provider(t).Generate(t.Context(), prompthooks.Request{Model: "m"})
			bad, ok := errors.AsType[*prompthooks.Error](err)
			if !ok || bad.RetryAfter != c.want {
				t.Errorf("got %v, want to wait %s", err, c.want)
			}
		})
	}
	t.Run("a wait beyond the hook's time ends it at once", func(t *testing.T) {
		s := serve(t, modeltest.Answer(429, `{}`, "Retry-After", "60"))
		began := time.Now()
		v := evaluate(t, s, stop(nil))
		if v.Failure == nil || v.Failure.Code != gate.ModelRateLimited || time.Since(began) > 2*time.Second {
			t.Errorf("got %s %+v after %s", v.Outcome, v.Failure, time.Since(began))
		}
	})
}

func TestNewChecksOptions(t *testing.T) {
	for _, base := range []string{"ftp://x", "x", "http://", "://", "http://a b/", "http://x/\x7f", "http://x/?key=y", "http://x/#y"} {
		_, err := New(t.Context(), Options{APIKey: testKey, BaseURL: base})
		if err == nil || strings.Contains(err.Error(), testKey) {
			t.Errorf("%q: %v", base, err)
		}
	}
	if _, err := New(t.Context(), Options{APIKey: testKey}); err != nil {
		t.Error(err)
	}
}

func TestBaseURLKeepsItsPath(t *testing.T) {
	s := serve(t, says(`{"ok":true}`))
	p, err := New(t.Context(), Options{APIKey: testKey, BaseURL: s.URL + "/proxy/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Generate(t.Context(), prompthooks.Request{Model: "m"}); err != nil || s.seen()[0].path != "/proxy/v1beta/models/m:generateContent" {
		t.Errorf("%v, path %q", err, s.seen()[0].path)
	}
}

func TestModelNamesStayInTheirPath(t *testing.T) {
	s := serve(t, says(`{"ok":true}`))
	p := s.provider(t)
	for _, name := range []string{"", "../../v1/x", "a/../../b", "m?key=x", "m#x", "m x", "m\n", "m%2f..", "ü", strings.Repeat("m", 201)} {
		_, err := p.Generate(t.Context(), prompthooks.Request{Model: name})
		if bad, ok := errors.AsType[*prompthooks.Error](err); !ok || bad.Kind != prompthooks.Rejected {
			t.Errorf("%q: %v", name, err)
		}
	}
	if n := len(s.seen()); n != 0 {
		t.Errorf("%d requests", n)
	}
	for _, name := range []string{"gemini-3.1-pro-preview", "models/gemini-2.5-flash", "tunedModels/x-1"} {
		if _, err := p.Generate(t.Context(), prompthooks.Request{Model: name}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	const n = 200
	var open, most atomic.Int32
	all := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if open.Add(1) == n {
			close(all)
		}
		most.Store(max(most.Load(), open.Load()))
		<-all // every request is open at once, or none is answered
		says(`{"ok":true}`)(w, r)
	})
	p, err := New(t.Context(), Options{APIKey: testKey, BaseURL: s.URL}) // the client that New makes
	if err != nil {
		t.Fatal(err)
	}
	j, err := prompthooks.New(prompthooks.Options{Model: func(string) (prompthooks.Model, string, error) { return p, "m", nil }})
	if err != nil {
		t.Fatal(err)
	}
	in := stop(nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			in := in // the same question would be asked once
			in.Context = fmt.Appendf(nil, `{"current_turn":%d}`, i)
			if v := j.Evaluate(ctx, in); v.Outcome != gate.Allow {
				t.Errorf("got %s %+v", v.Outcome, v.Failure)
			}
		})
	}
	wg.Wait()
	if most.Load() != n {
		t.Errorf("%d at once, want %d", most.Load(), n)
	}
}

// One request to a server on this machine, the SDK's part included.
func BenchmarkGenerate(b *testing.B) {
	p := serve(b, says(`{"ok":true}`)).provider(b)
	req := prompthooks.Request{Model: "m", System: "s", MaxOutputTokens: 100,
		Messages: []prompthooks.Message{{Role: prompthooks.User, Text: strings.Repeat("x", 4000)}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Generate(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
