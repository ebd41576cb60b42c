//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// turn is one answer of the scripted model: a shell command that it wants run,
// or else a text that ends its turn.
type turn struct{ command, text string }

// maxRequests is after how many requests the model answers no more, so that no
// agent loops for ever: the longest scenario needs a dozen.
const maxRequests = 40

// model is a scripted model on loopback. It speaks the API of every agent, and
// that of the gate's own judge below /judge.
type model struct {
	url string
	// play is the script: the answer to the n-th request of the agent, from 1,
	// all of whose texts are given.
	play func(n int, request string) turn

	mu     sync.Mutex
	asked  []string // the texts of each of the agent's requests
	judged []string // the texts of each of the judge's
	total  int
}

// startModel serves a script until the test ends.
func startModel(t *testing.T, play func(n int, request string) turn) *model {
	m := &model{play: play}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /judge/", m.judge)
	mux.HandleFunc("POST /v1/responses", m.answer(api{openAIResponses, "exec_command"}))
	mux.HandleFunc("POST /v1/chat/completions", m.answer(api{chatCompletions, "run_shell_command"}))
	mux.HandleFunc("POST /v1beta/models/{call}", m.answer(api{gemini, "run_shell_command"}))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

// api is how a turn is written for one agent.
type api struct {
	write func(w http.ResponseWriter, r *http.Request, say turn, tool string)
	tool  string // the agent's own shell tool
}

// answer plays the script to requests that offer the shell tool. Agents make
// other requests beside those, to name a session or to choose a model: they get
// an answer that says nothing.
func (m *model) answer(a api) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
		if err != nil {
			return
		}
		var request struct{ Tools json.RawMessage }
		if err := json.Unmarshal(body, &request); err != nil {
			http.Error(w, `{"error":{"message":"not JSON"}}`, http.StatusBadRequest)
			return
		}
		say := turn{text: sideAnswer}
		main := strings.Contains(string(request.Tools), `"`+a.tool+`"`)
		m.mu.Lock()
		m.total++
		over := m.total > maxRequests
		if main && !over {
			m.asked = append(m.asked, texts(body))
			say = m.play(len(m.asked), m.asked[len(m.asked)-1])
		}
		m.mu.Unlock()
		if over { // a status that agents do not try again
			http.Error(w, `{"error":{"code":400,"message":"the scripted model has said enough","status":"INVALID_ARGUMENT"}}`, http.StatusBadRequest)
			return
		}
		a.write(w, r, say, a.tool)
	}
}

// sideAnswer has the members that Gemini CLI looks for in its own requests.
const sideAnswer = `{"reasoning":"scripted","next_speaker":"user","model_choice":"flash","complexity_score":1,"complexity_reasoning":"scripted"}`

// judge is the model of the gate's prompt hooks: it looks for the tool's result
// in the conversation, and whatever it finds, it refuses.
func (m *model) judge(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil {
		return
	}
	m.mu.Lock()
	m.judged = append(m.judged, texts(body))
	m.mu.Unlock()
	part := map[string]any{"functionCall": map[string]any{"name": "GrepSearch", "args": map[string]any{"pattern": soughtResult}}}
	if strings.Contains(string(body), `"functionResponse"`) {
		part = map[string]any{"functionCall": map[string]any{"name": "submit_verdict", "args": map[string]any{"ok": false, "reason": neverReason}}}
	}
	w.Header().Set("Content-Type", "application/json")
	write(w, geminiAnswer(part))
}

// requests are the texts of what the agent has asked so far.
func (m *model) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.asked...)
}

// judgements are the texts of what the judge was asked so far.
func (m *model) judgements() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.judged...)
}

// texts are all strings of a JSON document, a line each, so that a search does
// not depend on how an agent nests or escapes them.
func texts(document []byte) string {
	var v any
	if json.Unmarshal(document, &v) != nil {
		return ""
	}
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			fmt.Fprintln(&b, v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(v)
	return b.String()
}

func write(w io.Writer, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(http.ErrAbortHandler) // the agent has gone away
	}
}
