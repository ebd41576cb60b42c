package gemini

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"stopgate/prompthooks"
	"stopgate/prompthooks/modeltest"
)

const echoedKey = "AIzaSySecretKey0123456789"

func answerOf(t *testing.T, h http.HandlerFunc) (prompthooks.Response, error) {
	t.Helper()
	p, err := New(t.Context(), Options{APIKey: echoedKey, BaseURL: modeltest.Serve(t, h).URL})
	if err != nil {
		t.Fatal(err)
	}
	return p.Generate(t.Context(), prompthooks.Request{Model: "m", Messages: []prompthooks.Message{{Role: prompthooks.User, Text: "x"}}})
}

// The key leaves by no way: not in an answer's text (it goes to evidence, and
// as a reason to the gated agent), not in Detail (the hook's error), not in the
// arguments of a call.
func TestKeyInAnswers(t *testing.T) {
	for name, body := range map[string]string{
		"reason":       `{"candidates":[{"content":{"role":"model","parts":[{"text":"{\"ok\":false,\"reason\":\"bad key KEY\"}"}]},"finishReason":"STOP"}]}`,
		"detail":       `{"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"SAFETY","finishMessage":"KEY"}]}`,
		"block reason": `{"promptFeedback":{"blockReason":"OTHER","blockReasonMessage":"key KEY may not"}}`,
		"arguments":    `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"submit_verdict","args":{"ok":false,"reason":"KEY"}}}]},"finishReason":"STOP"}]}`,
		"call name":    `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"KEY","args":{}}}]},"finishReason":"STOP"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := answerOf(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, strings.ReplaceAll(body, "KEY", r.Header.Get("X-Goog-Api-Key")))
			})
			answer.Message.Native = nil // goes back to the server alone
			all, _ := json.Marshal(answer)
			if err != nil || strings.Contains(string(all), echoedKey) {
				t.Errorf("the key is in the response: %s (%v)", all, err)
			}
		})
	}
}
