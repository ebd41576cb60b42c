package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// Only a server on this machine, and without keys, reads the conversation where it lies.
func TestSends(t *testing.T) {
	for _, c := range []struct {
		flag, server string
		want         bool
	}{
		{"auto", "http://127.0.0.1:8790", false},
		{"auto", "http://localhost:8790", false},
		{"auto", "http://[::1]:8790", false},
		{"auto", "http://[::ffff:127.0.0.1]:8790", false},
		{"auto", "https://gate.example", true},
		{"auto", "http://localhost.example", true},
		{"auto", "http://10.0.0.1:8790", true},
		{"auto", "http://[2001:db8::1]", true},
		{"auto", "http://%zz", false},
		{"send", "http://127.0.0.1:8790", true},
		{"path", "https://gate.example", false},
	} {
		h := hookCall{hookCommand: hookCommand{Transcript: c.flag, Server: c.server}}
		if got := h.sends(false); got != c.want {
			t.Errorf("--transcript %s, %s: %t", c.flag, c.server, got)
		}
		// With a key the server may let nobody read its own files.
		if got, want := h.sends(true), c.flag != "path"; got != want {
			t.Errorf("--transcript %s, %s, with a key: %t", c.flag, c.server, got)
		}
	}
}

// A sub-agent's conversation does not become the session's.
func TestUploadName(t *testing.T) {
	for _, c := range []struct {
		event gate.Event
		want  string
	}{
		{gate.Event{Name: gate.Stop, Session: "s"}, "s"},
		{gate.Event{Name: gate.SubagentStop, Session: "s", SubAgent: "b"}, "s.b"},
		{gate.Event{Name: gate.SubagentStop, Session: "s"}, "s"},
		{gate.Event{Name: gate.PostToolUse, Session: "s", SubAgent: "b"}, "s"},
	} {
		if got := uploadName(&c.event); got != c.want {
			t.Errorf("%+v: %q", c.event, got)
		}
	}
}

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

// sender is a call of `stopgate hook` that has a conversation to send.
func sender(data, path string, part int64) *hookCall {
	return &hookCall{hookCommand: hookCommand{Data: data}, process: process{getenv: func(string) string { return "" }}, part: part,
		event: gate.Event{Name: gate.Stop, Session: "s", TranscriptPath: path}}
}

// A conversation goes in parts, each kept by itself: what a first send had no
// time for is sent by the next.
func TestSendTranscriptInParts(t *testing.T) {
	u := takeUploads(t)
	data, path := t.TempDir(), filepath.Join(t.TempDir(), "s.jsonl")
	h := sender(data, path, 4)
	send := func(content string) []string {
		t.Helper()
		write(t, path, content)
		if err := h.sendTranscript(t.Context(), newHookClient(u.url, "")); err != nil {
			t.Fatal(err)
		}
		sent, _ := u.got()
		return sent
	}
	if diff := cmp.Diff([]string{"s at=0 0123", "s at=4 4567", "s at=8 89"}, send("0123456789")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"s at=10 abcd", "s at=14 e"}, send("0123456789abcde")); diff != "" {
		t.Error(diff)
	}
}

// Sending takes no more than half of the time; the server then decides with
// what it has.
func TestSendingLeavesTimeToDecide(t *testing.T) {
	u := takeUploads(t)
	u.hold = true
	path := filepath.Join(t.TempDir(), "s.jsonl")
	write(t, path, `{"type":"user"}`+"\n")
	out, code := hookRun{args: []string{"--protocol", "codex", "--server", u.url, "--transcript", "send", "--deadline", "2", "--data", t.TempDir()},
		payload: []byte(`{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"x","transcript_path":"` + path + `"}`)}.run(t)
	if _, queries := u.got(); code != exitDone || !strings.Contains(out, "block") || len(queries) != 1 || queries[0].Get("stale") != "true" {
		t.Errorf("exit %d, %q, asked with %v", code, out, queries)
	}
}

// A conversation that lacks the answer is not passed off as whole: it is waited
// for, and then called stale (spec/claude-code.md 10).
func TestSendingWaitsForTheAnswer(t *testing.T) {
	u := takeUploads(t)
	path := filepath.Join(t.TempDir(), "events.jsonl")
	write(t, path, `{"type":"user.message","data":{"content":"Deploy it."}}`+"\n")
	_, code := hookRun{args: []string{"--protocol", "copilot", "--event", "agentStop", "--server", u.url, "--transcript", "send", "--data", t.TempDir()},
		payload: []byte(`{"sessionId":"s","timestamp":1796041762879,"transcriptPath":"` + path + `","stopReason":"end_turn"}`)}.run(t)
	if parts, queries := u.got(); code != exitDone || len(queries) != 1 || queries[0].Get("stale") != "true" || len(parts) > 0 {
		t.Errorf("exit %d, sent %q, asked with %v", code, parts, queries)
	}
}

// Of the hooks of one session one sends at a time.
func TestOpenSentIsExclusive(t *testing.T) {
	dir := t.TempDir()
	first, err := openSent(t.Context(), dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	noTime, cancel := context.WithCancel(t.Context())
	cancel()
	if second, err := openSent(noTime, dir, "s"); err == nil {
		second.close()
		t.Error("two at once")
	}
	first.close()
	second, err := openSent(noTime, dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	second.close()
}

// What is remembered of conversations that ended long ago goes, the rest stays.
func TestForgetOld(t *testing.T) {
	u := takeUploads(t)
	data, path := t.TempDir(), filepath.Join(t.TempDir(), "s.jsonl")
	dir := filepath.Join(data, "sent")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path, "x\n")
	old, young, foreign := filepath.Join(dir, sentName("old")), filepath.Join(dir, sentName("young")), filepath.Join(dir, "letter.txt")
	for _, name := range []string{old, young, foreign} {
		write(t, name, "{}")
		past := time.Now().Add(-sentAge - time.Hour)
		if name == young {
			past = past.Add(2 * time.Hour)
		}
		if err := os.Chtimes(name, past, past); err != nil {
			t.Fatal(err)
		}
	}
	h := sender(data, path, sentPart)
	if err := h.sendTranscript(t.Context(), newHookClient(u.url, "")); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || slices.Contains(left, old) || !slices.Contains(left, young) || !slices.Contains(left, foreign) {
		t.Errorf("left: %v, %v", left, err)
	}
}

// hook.log is turned over when it is large, and the line that did it is kept.
func TestHookLogTurnsOver(t *testing.T) {
	data := t.TempDir()
	log := filepath.Join(data, "hook.log")
	fail := func() {
		hookRun{args: []string{"--protocol", "codex", "--server", "http://127.0.0.1:1", "--data", data}, payload: []byte(stopPayload)}.run(t)
	}
	write(t, log, strings.Repeat("x", maxHookLog))
	fail()
	if _, err := os.Stat(log + ".1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("turned over too early: %v", err)
	}
	fail()
	content, err := os.ReadFile(log)
	if err != nil || strings.Count(string(content), "\n") != 1 || !strings.Contains(string(content), "no server at http://127.0.0.1:1") {
		t.Errorf("%v, %.300q", err, content)
	}
	if older, err := os.Stat(log + ".1"); err != nil || older.Size() <= maxHookLog {
		t.Errorf("%v: what was there is lost", err)
	}
}
