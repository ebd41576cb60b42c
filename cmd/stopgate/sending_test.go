package main

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// takenUploads is a server that takes conversations and says on each decision what
// it was asked with.
type takenUploads struct {
	url string
	// hold keeps an upload waiting until its sender gives up.
	hold bool

	mu      sync.Mutex
	parts   []string // "at=… text"
	queries []url.Values
}

func takeUploads(t *testing.T) *takenUploads {
	u := &takenUploads{}
	u.url = serveOnce(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		if !strings.HasSuffix(r.URL.Path, "/transcript") {
			u.queries = append(u.queries, r.URL.Query())
			_, _ = w.Write([]byte(`{"decision":"block","reason":"x"}`))
			return
		}
		u.parts = append(u.parts, strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/v1/sessions/"), "/transcript")+" at="+r.URL.Query().Get("at")+" "+string(body))
		if u.hold {
			u.mu.Unlock()
			<-r.Context().Done()
			u.mu.Lock()
		}
	})
	return u
}

// got are the uploads and the decisions' queries since it was last called.
func (u *takenUploads) got() ([]string, []url.Values) {
	u.mu.Lock()
	defer u.mu.Unlock()
	parts, queries := u.parts, u.queries
	u.parts, u.queries = nil, nil
	return parts, queries
}

// Sending takes no more than half of the time; the server then decides with
// what it has.
func TestSendingLeavesTimeToDecide(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		u := takeUploads(t)
		u.hold = true
		path := filepath.Join(t.TempDir(), "s.jsonl")
		write(t, path, `{"type":"user"}`+"\n")
		out, code := hookRun{args: []string{"--protocol", "codex", "--server", u.url, "--transcript", "send", "--deadline", "2", "--data", t.TempDir()},
			payload: []byte(`{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"x","transcript_path":"` + path + `"}`)}.by(t, hook)
		if _, queries := u.got(); code != exitDone || !strings.Contains(out, "block") || len(queries) != 1 || queries[0].Get("stale") != "true" {
			t.Errorf("exit %d, %q, asked with %v", code, out, queries)
		}
	})
}

// A conversation that lacks the answer is not passed off as whole: it is waited
// for, and then called stale (spec/claude-code.md 10).
func TestSendingWaitsForTheAnswer(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		u := takeUploads(t)
		path := filepath.Join(t.TempDir(), "events.jsonl")
		write(t, path, `{"type":"user.message","data":{"content":"Deploy it."}}`+"\n")
		_, code := hookRun{args: []string{"--protocol", "copilot", "--event", "agentStop", "--server", u.url, "--transcript", "send", "--data", t.TempDir()},
			payload: []byte(`{"sessionId":"s","timestamp":1796041762879,"transcriptPath":"` + path + `","stopReason":"end_turn"}`)}.by(t, hook)
		if parts, queries := u.got(); code != exitDone || len(queries) != 1 || queries[0].Get("stale") != "true" || len(parts) > 0 {
			t.Errorf("exit %d, sent %q, asked with %v", code, parts, queries)
		}
	})
}

// hook.log is turned over when it is large, and the line that did it is kept.
func TestHookLogTurnsOver(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		data := t.TempDir()
		log := filepath.Join(data, "hook.log")
		const size = 1 << 20 // at which it is turned over
		fail := func() {
			hookRun{args: []string{"--protocol", "codex", "--server", "http://127.0.0.1:1", "--data", data}, payload: []byte(stopPayload)}.by(t, hook)
		}
		write(t, log, strings.Repeat("x", size))
		fail()
		if _, err := os.Stat(log + ".1"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("turned over too early: %v", err)
		}
		fail()
		content, err := os.ReadFile(log)
		if err != nil || strings.Count(string(content), "\n") != 1 || !strings.Contains(string(content), "no server at http://127.0.0.1:1") {
			t.Errorf("%v, %.300q", err, content)
		}
		if older, err := os.Stat(log + ".1"); err != nil || older.Size() <= size {
			t.Errorf("%v: what was there is lost", err)
		}
	})
}
