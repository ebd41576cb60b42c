package modeltest

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/prompthooks"
)

// Run holds a provider to the contract of [prompthooks.Model].
func Run(t *testing.T, p Provider) {
	t.Run("text", p.text)
	t.Run("tool loop", p.toolLoop)
	t.Run("schema", p.schema)
	t.Run("forced tool", p.force)
	t.Run("ends", p.ends)
	t.Run("statuses", p.statuses)
	t.Run("retry after", p.retryAfter)
	t.Run("lacking", p.lacking)
	t.Run("broken bodies", p.brokenBodies)
	t.Run("wrong types", p.wrongTypes)
	t.Run("connections", p.connections)
	t.Run("key", p.key)
	t.Run("redirect", p.redirect)
	t.Run("environment", p.environment)
	t.Run("at once", p.atOnce)
}

// ask makes one request of a server that gives the answer, and holds the
// provider to exactly that one.
func (p Provider) ask(t *testing.T, answer http.HandlerFunc, req prompthooks.Request) (prompthooks.Response, Asked, error) {
	t.Helper()
	s := Serve(t, answer)
	got, err := p.Open(t, s.URL).Generate(t.Context(), req)
	seen := s.Requests()
	if len(seen) != 1 {
		t.Fatalf("%d requests, want 1 (%v)", len(seen), err)
	}
	return got, p.Asked(t, seen[0]), err
}

// answer is ask where an answer is due.
func (p Provider) answer(t *testing.T, body string, req prompthooks.Request) (prompthooks.Response, Asked) {
	t.Helper()
	got, asked, err := p.ask(t, Answer(200, body), req)
	if err != nil {
		t.Fatal(err)
	}
	if got.Message.Role != prompthooks.Assistant {
		t.Errorf("role %q", got.Message.Role)
	}
	return got, asked
}

// kindOf is the kind of a provider's error, which is of one type and clean.
func kindOf(t *testing.T, err error) prompthooks.ErrorKind {
	t.Helper()
	bad, ok := errors.AsType[*prompthooks.Error](err)
	if !ok {
		t.Fatalf("error is %#v, want a *prompthooks.Error", err)
	}
	if bad.Message == "" || len(bad.Message) > 600 || strings.ContainsAny(bad.Message, "\n\x1b\x00") || strings.Contains(bad.Message, Key) {
		t.Errorf("message %q", bad.Message)
	}
	return bad.Kind
}

func (p Provider) text(t *testing.T) {
	req := question()
	req.Messages = append(req.Messages, prompthooks.Message{Role: prompthooks.Assistant, Text: "hm"},
		prompthooks.Message{Role: prompthooks.User, Text: "Well?"})
	before, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	const said = "{\"ok\":false,\"reason\":\"run the \\\"tests\\\" €\"}"
	got, asked := p.answer(t, p.Says(said), req)
	if got.Message.Text != said || got.Finish != prompthooks.Finished || len(got.Message.Calls) != 0 {
		t.Errorf("got %+v", got)
	}
	if got.Usage != p.Usage {
		t.Errorf("usage %+v, want %+v", got.Usage, p.Usage)
	}
	asked.Native = nil // of a turn without one, each API's own form
	want := Asked{Key: Key, Model: Deployment, System: req.System, Users: []string{"Is it done? \"€\"", "Well?"}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if after, _ := json.Marshal(req); string(before) != string(after) {
		t.Error("the request was changed")
	}
}

// toolLoop is a model that asks for two tools at once, gets a result and a
// failure, and answers.
func (p Provider) toolLoop(t *testing.T) {
	s := Serve(t, Answer(200, p.Calls), Answer(200, p.Says(`{"ok":true}`)))
	model, req := p.Open(t, s.URL), withTools()
	first, err := model.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if first.Usage != p.Usage || first.Finish != prompthooks.Finished || len(first.Message.Calls) != 2 {
		t.Fatalf("got %+v", first)
	}
	for i, c := range first.Message.Calls {
		want := TwoCalls[i]
		if c.ID != p.CallIDs[i] || c.Name != want.Name || !sameJSON(c.Args, want.Args) {
			t.Errorf("call %d: %q %s %s", i, c.ID, c.Name, c.Args)
		}
	}
	req.Messages = append(req.Messages, first.Message, prompthooks.Message{Role: prompthooks.User, Results: []prompthooks.Result{
		{ID: p.CallIDs[0], Name: "GrepSearch", Text: "7\tmake the tests green"},
		{ID: p.CallIDs[1], Name: "ReadFile", Text: "Not run.", Failed: true}}})
	second, err := model.Generate(t.Context(), req)
	if err != nil || second.Message.Text != `{"ok":true}` {
		t.Fatalf("got %+v, %v", second, err)
	}
	asked := p.Asked(t, s.Requests()[1])
	if want := []string{"GrepSearch", "ReadFile", "submit_verdict"}; !slices.Equal(asked.Tools, want) || asked.Force != "" || asked.Schema != nil {
		t.Errorf("tools %v, forced %q, schema %v", asked.Tools, asked.Force, asked.Schema)
	}
	if want := []string{p.Native}; !slices.Equal(asked.Native, want) {
		t.Errorf("fault gx-080: the model's turn went back as\n%s\nwant\n%s", asked.Native, want)
	}
	if len(asked.Results) != 2 || !strings.Contains(asked.Results[0].Text, "make the tests green") || !strings.Contains(asked.Results[1].Text, "Not run.") ||
		asked.Results[0].ID != p.CallIDs[0] || asked.Results[1].ID != p.CallIDs[1] || asked.Results[0].Failed || !asked.Results[1].Failed {
		t.Errorf("results %+v", asked.Results)
	}
	// What one judge says must not depend on how it was told before: caches hit
	// on equal bytes only (fault G65).
	if a, b := p.Asked(t, s.Requests()[0]), asked; a.System != b.System || !slices.Equal(a.Tools, b.Tools) {
		t.Error("the prefix differs between rounds")
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}

func (p Provider) schema(t *testing.T) {
	req := question()
	req.Schema, req.MaxOutputTokens = form, 512
	_, asked := p.answer(t, p.Says(`{"reason":"x","ok":true}`), req)
	if want := []string{"reason", "ok"}; !slices.Equal(asked.Schema, want) || asked.Tools != nil {
		t.Errorf("schema %v, tools %v", asked.Schema, asked.Tools)
	}
}

func (p Provider) force(t *testing.T) {
	req := withTools()
	req.Force = "submit_verdict"
	_, asked := p.answer(t, p.Calls, req)
	if asked.Force != "submit_verdict" || len(asked.Tools) != 3 {
		t.Errorf("forced %q of %v", asked.Force, asked.Tools)
	}
}

func (p Provider) ends(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want prompthooks.Finish
	}{
		"refused": {p.Refused, prompthooks.Refused}, "truncated": {p.Truncated, prompthooks.Truncated}, "malformed": {p.Malformed, prompthooks.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := p.answer(t, c.body, question())
			if got.Finish != c.want || got.Detail == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// statuses: the status of the response decides, whatever its body says.
func (p Provider) statuses(t *testing.T) {
	for _, c := range []struct {
		name string
		Fault
		want prompthooks.ErrorKind
	}{
		{"rate limited", p.RateLimited, prompthooks.RateLimited},
		{"down", p.Down, prompthooks.Unavailable},
		{"denied", p.Denied, prompthooks.Rejected},
		{"429 of a proxy", Fault{429, "<html>slow down</html>"}, prompthooks.RateLimited},
		{"500 without a body", Fault{500, ""}, prompthooks.Unavailable},
		{"502 of a proxy", Fault{502, "<html>bad gateway</html>"}, prompthooks.Unavailable},
		{"503 with an answer in it", Fault{503, p.Says(`{"ok":true}`)}, prompthooks.Unavailable},
		{"500 with error null", Fault{500, `{"error":null}`}, prompthooks.Unavailable},
		{"500 that says it is 400", Fault{500, `{"error":{"code":400,"message":"x"}}`}, prompthooks.Unavailable},
		{"400 that says it is 429", Fault{400, `{"error":{"code":429,"message":"x"}}`}, prompthooks.Rejected},
		{"400 with an error of one word", Fault{400, `{"error":"bad"}`}, prompthooks.Rejected},
		{"404 in words", Fault{404, "not found"}, prompthooks.Rejected},
		{"408", Fault{408, ""}, prompthooks.Rejected},
		{"422 of FastAPI", Fault{422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`}, prompthooks.Rejected},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := p.ask(t, Answer(c.Status, c.Body), question())
			if got := kindOf(t, err); got != c.want {
				t.Errorf("kind %d, want %d: %v", got, c.want, err)
			}
		})
	}
}

func (p Provider) retryAfter(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		headers []string
		want    time.Duration
	}{
		{"seconds", p.RateLimited.Status, []string{"Retry-After", "7"}, 7 * time.Second},
		{"when it is down", p.Down.Status, []string{"Retry-After", "7"}, 7 * time.Second},
		{"too long for a duration", 429, []string{"Retry-After", "99999999999999999999"}, 24 * time.Hour},
		{"nonsense", 429, []string{"Retry-After", "soon"}, 0},
		{"below zero", 429, []string{"Retry-After", "-5"}, 0},
		{"no number", 429, []string{"Retry-After", "NaN"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := p.ask(t, Answer(c.status, `{}`, c.headers...), question())
			if bad, ok := errors.AsType[*prompthooks.Error](err); !ok || bad.RetryAfter != c.want {
				t.Errorf("got %+v, want to wait %s", err, c.want)
			}
		})
	}
}

// lacking: what a server cannot do at all is told from a mistake of ours.
func (p Provider) lacking(t *testing.T) {
	for _, c := range p.Lacking {
		t.Run(c.Name, func(t *testing.T) {
			req := withTools()
			switch c.Feature {
			case prompthooks.Forcing:
				req.Force = "submit_verdict"
			case prompthooks.Schemas:
				req = question()
				req.Schema = form
			}
			_, _, err := p.ask(t, Answer(c.Status, c.Body), req)
			if bad, ok := errors.AsType[*prompthooks.Error](err); !ok || bad.Kind != prompthooks.Unsupported || bad.Lacks != c.Feature {
				t.Errorf("got %+v", err)
			}
			if _, _, err := p.ask(t, Answer(c.Status, c.Body), question()); kindOf(t, err) == prompthooks.Unsupported {
				t.Errorf("what was not asked for is unsupported: %v", err)
			}
		})
	}
	t.Run("a mistake of ours", func(t *testing.T) {
		for _, message := range []string{"Invalid schema for function 'ReadFile': 'offset' is no integer", "Invalid value for tools[0].name"} {
			_, _, err := p.ask(t, Answer(400, `{"error":{"message":"`+message+`"}}`), withTools())
			if kindOf(t, err) != prompthooks.Rejected {
				t.Errorf("%q: %v", message, err)
			}
		}
	})
}

// atOnce is for the race detector.
func (p Provider) atOnce(t *testing.T) {
	s := Serve(t, Answer(200, p.Says(`{"ok":true}`)))
	model, req := p.Open(t, s.URL), withTools()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got, err := model.Generate(t.Context(), req); err != nil || got.Message.Text != `{"ok":true}` {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	all.Wait()
}
