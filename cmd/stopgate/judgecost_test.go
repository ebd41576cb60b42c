package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
	"stopgate/internal/contract"
)

// bytesPerToken is what English text and JSON have, near enough for a ratio.
const bytesPerToken = 4

// cost is what one verdict sends to the model, in tokens, and what the whole
// conversation in one call would have been.
type cost struct{ spent, whole int }

func (c cost) share() float64 { return float64(c.spent) / float64(c.whole) }

// judgeCost has a Stop judged by a model that searches for what decides, reads
// round it, and quotes it.
func judgeCost(t testing.TB, s *service, session, answer, pattern string) (cost, gate.Decision) {
	t.Helper()
	steps := []string{
		`call:{"name":"GrepSearch","args":{"pattern":"` + pattern + `","context":3,"limit":5}}`,
		`call:{"name":"ReadFile","args":{"offset":1,"limit":20}}`,
	}
	s.mu.Lock()
	s.requests = nil
	s.answer = func(request string) string {
		switch n := len(s.requests); {
		case !strings.Contains(request, `"name":"GrepSearch"`): // no tools: no conversation
			return `{"ok":false,"reason":"there is no conversation"}`
		case strings.Contains(request, "The conversation, whole"): // nothing is left to be read
			return `{"ok":false,"reason":"nothing shows it"}`
		case n <= len(steps):
			return steps[n-1]
		case strings.Contains(request, answer):
			return `{"ok":true,"evidence":[{"line":1,"quote":` + strconvQuote(answer) + `}]}`
		}
		return `{"ok":false,"reason":"nothing shows it"}`
	}
	s.mu.Unlock()
	d := s.evaluate(`{"hook_event_name":"Stop","agent_name":"judged","session_id":"` + session + `","final_output":"It is done."}`)
	_, text := s.do(http.MethodGet, "/v1/sessions/"+session+"/transcript", "", nil)
	c := cost{whole: len(text)}
	for i, request := range s.requests {
		c.spent += len(request)
		if i == 0 { // the contract and the check are in both
			var first struct {
				SystemInstruction json.RawMessage `json:"systemInstruction"`
			}
			if err := json.Unmarshal([]byte(request), &first); err != nil {
				t.Fatal(err)
			}
			c.whole += len(first.SystemInstruction)
		}
	}
	return cost{c.spent / bytesPerToken, c.whole / bytesPerToken}, d
}

func strconvQuote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// longTalk is a conversation of 2,000 messages in which what decides stands
// once, at a share of the way.
func longTalk(answer string, at float64) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	say := func(m map[string]any) {
		if err := enc.Encode(m); err != nil {
			panic(err)
		}
	}
	say(map[string]any{"role": "user", "content": "Refund order 4711, and go through the other orders as well."})
	for i := 1; i < 1000; i++ {
		result := fmt.Sprintf(`{"order":%d,"state":"shipped","items":[{"sku":"A-%d","name":"a thing of some sort with a long name","price":%d}],"address":{"street":"Some Street %d","city":"Somewhere","zip":"%05d"},"history":["created","paid","packed","shipped","%s"]}`,
			5000+i, i, i%90, i, i, strings.Repeat("a note of the warehouse ", 20))
		if i == int(at*999)+1 {
			result = `{"order":4711,"state":"` + answer + `"}`
		}
		say(map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{"id": fmt.Sprint("c", i), "name": "order", "arguments": map[string]any{"number": 5000 + i}}}})
		say(map[string]any{"role": "tool", "tool_call_id": fmt.Sprint("c", i), "content": result})
	}
	return b.String()
}

func judgedService(t testing.TB) *service {
	s := newService(t)
	spec := `{"name":"judged","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"Does a tool result show that order 4711 was refunded?","evidence":"required"}]}}}`
	if status, answer := s.do(http.MethodPut, agents+"judged", "application/json", []byte(spec)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	return s
}

// What decides is found wherever it stands, for at most a tenth of the tokens of
// the whole conversation.
func TestJudgeFindsWhatDecidesForATenth(t *testing.T) {
	s := judgedService(t)
	const answer = "refunded in full"
	for i, at := range []float64{0, 0.5, 0.999} {
		session := fmt.Sprint("long", i)
		s.do(http.MethodPut, "/v1/sessions/"+session+"/transcript", "application/x-ndjson", []byte(longTalk(answer, at)))
		c, d := judgeCost(t, s, session, answer, "refund")
		if d.Outcome != gate.Allow || d.Degraded {
			t.Errorf("at %v: %+v", at, d)
		}
		if c.share() > 0.10 {
			t.Errorf("at %v: %d tokens, %.1f %% of the %d that the whole would be", at, c.spent, 100*c.share(), c.whole)
		}
	}
	s.do(http.MethodPut, "/v1/sessions/never/transcript", "application/x-ndjson", []byte(longTalk("shipped", 0.5)))
	if _, d := judgeCost(t, s, "never", answer, "refund"); d.Outcome != gate.Block {
		t.Errorf("what is nowhere was found: %+v", d)
	}
}

// BenchmarkJudgeTokens prints what a verdict costs on the captured sessions and
// on a long one, and what the whole conversation in one call would.
func BenchmarkJudgeTokens(b *testing.B) {
	captured := contract.Dir(b, "wire")
	s := judgedService(b)
	sessions := map[string]string{"2000-messages": longTalk("refunded in full", 0.5)}
	files, err := filepath.Glob(filepath.Join(captured, "*", "transcript.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		sessions[filepath.Base(filepath.Dir(file))] = string(text)
	}
	for name, text := range sessions {
		b.Run(name, func(b *testing.B) {
			path := "/v1/sessions/" + name + "/transcript"
			if name == "2000-messages" {
				s.do(http.MethodPut, path, "application/x-ndjson", []byte(text))
			} else {
				s.do(http.MethodPost, path+"?format="+name+"&at=0", "application/x-ndjson", []byte(text))
			}
			var c cost
			for b.Loop() {
				c, _ = judgeCost(b, s, name, "refunded in full", "refund")
			}
			b.ReportMetric(float64(c.spent), "tokens")
			b.ReportMetric(float64(c.whole), "whole-tokens")
			b.ReportMetric(float64(len(text)/bytesPerToken), "raw-file-tokens")
			b.ReportMetric(c.share(), "of-whole")
		})
	}
}
