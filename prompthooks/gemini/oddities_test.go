package gemini

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/prompthooks/exchange"
	"stopgate/prompthooks/modeltest"
)

// stop is a prompt hook on a Stop.
func stop(transcript gate.Transcript) gate.Input {
	return gate.Input{
		Hook:       &gate.Hook{Name: "h", Event: gate.Stop, Type: gate.PromptHook, Prompt: "Are the tests green?", Model: "Fast", Timeout: 5 * time.Second},
		Event:      &gate.Event{Name: gate.Stop},
		Context:    []byte(`{"hook_event_name":"Stop","final_output":"All tests pass."}`),
		Transcript: transcript,
	}
}

func evaluate(t testing.TB, s *server, in gate.Input) gate.Verdict {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), in.Hook.Timeout)
	defer cancel()
	v := s.judge(t).Evaluate(ctx, in)
	if v.Failure != nil && (v.Failure.Message == "" || strings.Contains(v.Failure.Message, testKey)) {
		t.Errorf("failure's message: %q", v.Failure.Message)
	}
	if (v.Failure != nil) != (v.Outcome == gate.NoVerdict) {
		t.Errorf("outcome %s with failure %v", v.Outcome, v.Failure)
	}
	return v
}

// Every body that a server may send instead of an answer: what it comes to,
// and how many requests that takes. None may ever allow.
func TestAzure32OddBodies(t *testing.T) {
	candidate := func(fields string) string { return `{"candidates":[{` + fields + `}]}` }
	content := `"content":{"role":"model","parts":[{"text":"{\"ok\":true}"}]}`
	for _, c := range []struct {
		name, body string
		code       gate.FailureCode
		requests   int // 2: one repair
	}{
		{"fault G32: empty object", `{}`, gate.BadVerdict, 2},
		{"empty body", ``, gate.BadVerdict, 2},
		{"no candidates", `{"candidates":[]}`, gate.BadVerdict, 2},
		{"candidate null", `{"candidates":[null]}`, gate.ModelUnavailable, 1},
		{"no content", candidate(`"finishReason":"STOP"`), gate.BadVerdict, 2},
		{"no parts", candidate(`"content":{"role":"model"},"finishReason":"STOP"`), gate.BadVerdict, 2},
		{"only a thought", candidate(`"content":{"role":"model","parts":[{"thought":true,"text":"{\"ok\":true}"}]},"finishReason":"STOP"`), gate.BadVerdict, 2},
		{"blocked prompt", `{"promptFeedback":{"blockReason":"SAFETY"}}`, gate.ModelRefused, 1},
		{"blocked prompt with an answer", `{"promptFeedback":{"blockReason":"OTHER"},"candidates":[{` + content + `}]}`, gate.ModelRefused, 1},
		{"SAFETY", candidate(`"finishReason":"SAFETY"`), gate.ModelRefused, 1},
		{"SAFETY after a verdict", candidate(content + `,"finishReason":"SAFETY"`), gate.ModelRefused, 1},
		{"RECITATION", candidate(content + `,"finishReason":"RECITATION"`), gate.ModelRefused, 1},
		{"PROHIBITED_CONTENT", candidate(content + `,"finishReason":"PROHIBITED_CONTENT"`), gate.ModelRefused, 1},
		{"MAX_TOKENS", candidate(`"content":{"role":"model","parts":[{"text":"{\"ok\":tr"}]},"finishReason":"MAX_TOKENS"`), gate.ModelTruncated, 2},
		{"MAX_TOKENS after a verdict", candidate(content + `,"finishReason":"MAX_TOKENS"`), gate.ModelTruncated, 2},
		{"CONTINUATION makes no hidden request", candidate(content + `,"finishReason":"CONTINUATION","continuationToken":"AAAA"`), gate.ModelTruncated, 2},
		{"a continuation token alone makes none either", candidate(`"content":{"parts":[{"text":"x"}]},"continuationToken":"AAAA"`), gate.BadVerdict, 2},
		{"MALFORMED_FUNCTION_CALL", candidate(`"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print(x)"`), gate.BadVerdict, 2},
		{"OTHER", candidate(`"finishReason":"OTHER"`), gate.BadVerdict, 2},
		{"a reason of the future", candidate(content + `,"finishReason":"SOLAR_FLARE"`), gate.BadVerdict, 2},
		{"prose", candidate(`"content":{"parts":[{"text":"The response is not supported."}]},"finishReason":"STOP"`), gate.BadVerdict, 2},
		{"HTML", `<html><body>{"ok":true}</body></html>`, gate.ModelUnavailable, 1},
		{"half a JSON", `{"candidates":[{"content":{"parts":[{"text":"{\"ok\":true}"`, gate.ModelUnavailable, 1},
		{"fault gx-078: null makes the SDK panic", `null`, gate.ModelUnavailable, 1},
		{"array", `[]`, gate.ModelUnavailable, 1},
		{"true", `true`, gate.ModelUnavailable, 1},
		{"fault gx-078: candidates of the wrong type", `{"candidates":"x"}`, gate.ModelUnavailable, 1},
		{"candidate of the wrong type", `{"candidates":["x"]}`, gate.ModelUnavailable, 1},
		{"citations of the wrong type", candidate(content + `,"citationMetadata":3`), gate.ModelUnavailable, 1},
		{"content of the wrong type", candidate(`"content":"{\"ok\":true}"`), gate.ModelUnavailable, 1},
		{"parts of the wrong type", candidate(`"content":{"parts":{"text":"{\"ok\":true}"}}`), gate.ModelUnavailable, 1},
		{"signature that is not base64", candidate(`"content":{"parts":[{"text":"x","thoughtSignature":"%"}]}`), gate.ModelUnavailable, 1},
		{"a refusal dressed as success", `{"error":{"code":400,"message":"bad"}}`, gate.ModelUnavailable, 1},
		{"too large", `{"x":"` + strings.Repeat("x", exchange.MaxBodyBytes) + `"}`, gate.ModelUnavailable, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, modeltest.Answer(200, c.body))
			v := evaluate(t, s, stop(nil))
			if v.Outcome != gate.NoVerdict || v.Failure.Code != c.code {
				t.Errorf("got %s %+v, want %s", v.Outcome, v.Failure, c.code)
			}
			if n := len(s.seen()); n != c.requests {
				t.Errorf("%d requests, want %d (%v)", n, c.requests, v.Failure)
			}
		})
	}
}

func TestAzure32Statuses(t *testing.T) {
	for _, c := range []struct {
		name     string
		answer   http.HandlerFunc
		code     gate.FailureCode // empty: the second answer allows
		requests int
	}{
		{"429 then an answer", modeltest.Answer(429, `{"error":{"code":429,"message":"slow down"}}`), "", 2},
		{"500 then an answer", modeltest.Answer(500, `{"error":{"code":500,"message":"oops"}}`), "", 2},
		{"503 of a proxy then an answer", modeltest.Answer(503, `<html>down</html>`), "", 2},
		{"fault gx-077: 500 without an error object", modeltest.Answer(500, `{"some_field":1}`), "", 2},
		{"fault gx-077: 500 with error null", modeltest.Answer(500, `{"error":null}`), "", 2},
		{"500 that says it is 400", modeltest.Answer(500, `{"error":{"code":400,"message":"x"}}`), "", 2},
		{"connection dropped then an answer", drop, "", 2},
		{"body broken off then an answer", breakOff, "", 2},
		{"429 in a success", modeltest.Answer(200, `{"error":{"code":429,"message":"slow down"}}`), "", 2},
		{"400", modeltest.Answer(400, `{"error":{"code":400,"message":"API key not valid"}}`), gate.ModelUnavailable, 1},
		{"400 that says it is 429", modeltest.Answer(400, `{"error":{"code":429,"message":"x"}}`), gate.ModelUnavailable, 1},
		{"401", modeltest.Answer(401, ``), gate.ModelUnavailable, 1},
		{"403", modeltest.Answer(403, `forbidden`), gate.ModelUnavailable, 1},
		{"404", modeltest.Answer(404, `{"error":{"code":404,"message":"model gemini-test is not found"}}`), gate.ModelUnavailable, 1},
		{"408 is a 4xx", modeltest.Answer(408, ``), gate.ModelUnavailable, 1},
		{"204 without a body is an empty answer", modeltest.Answer(204, ``), "", 2},
		{"redirect is not followed", modeltest.Answer(307, ``, "Location", "/elsewhere"), gate.ModelUnavailable, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.answer, says(`{"ok":true}`))
			v := evaluate(t, s, stop(nil))
			switch {
			case c.code == "" && v.Outcome != gate.Allow:
				t.Errorf("got %s %+v, want allow", v.Outcome, v.Failure)
			case c.code != "" && (v.Failure == nil || v.Failure.Code != c.code):
				t.Errorf("got %s %+v, want %s", v.Outcome, v.Failure, c.code)
			}
			if n := len(s.seen()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
		})
	}
}

// drop ends the connection without an answer.
func drop(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }

// breakOff promises more than it sends.
func breakOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	io.WriteString(w, `{"candidates":[`)
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// hang answers nothing until the client has gone.
func hang(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// drip sends headers and then a byte now and again, for ever.
func drip(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		io.WriteString(w, " ")
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func TestAzure32Hang(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"no answer": hang, "an answer without end": drip} {
		t.Run("fault G33: "+name, func(t *testing.T) {
			s := serve(t, answer)
			in := stop(nil)
			in.Hook.Timeout = 300 * time.Millisecond
			began := time.Now()
			v := evaluate(t, s, in)
			if took := time.Since(began); took > in.Hook.Timeout+time.Second {
				t.Errorf("took %s", took)
			}
			if v.Failure == nil || v.Failure.Code != gate.Timeout {
				t.Errorf("got %s %+v, want timeout", v.Outcome, v.Failure)
			}
		})
	}
}
