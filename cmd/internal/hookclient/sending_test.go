package hookclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
		h := call{Flags: Flags{Transcript: c.flag, Server: c.server}}
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

// sender is a call of `stopgate hook` that has a conversation to send.
func sender(data, path string, part int64) *call {
	return &call{Flags: Flags{Data: data}, Process: Process{Getenv: func(string) string { return "" }}, part: part,
		event: gate.Event{Name: gate.Stop, Session: "s", TranscriptPath: path}}
}

// A conversation goes in parts, each kept by itself: what a first send had no
// time for is sent by the next.
func TestSendTranscriptInParts(t *testing.T) {
	u := takeParts(t)
	data, path := t.TempDir(), filepath.Join(t.TempDir(), "s.jsonl")
	h := sender(data, path, 4)
	send := func(content string) []string {
		t.Helper()
		write(t, path, content)
		if err := h.sendTranscript(t.Context(), NewClient(u.url, "")); err != nil {
			t.Fatal(err)
		}
		return u.got()
	}
	if diff := cmp.Diff([]string{"s at=0 0123", "s at=4 4567", "s at=8 89"}, send("0123456789")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"s at=10 abcd", "s at=14 e"}, send("0123456789abcde")); diff != "" {
		t.Error(diff)
	}
}

// A server that redacts takes whole lines: parts end with one, a line that is longer
// than a part goes in one that is larger, and what the host has not ended comes with
// the next event.
func TestSendTranscriptInWholeLines(t *testing.T) {
	u := takeParts(t)
	u.whole = true
	data, path := t.TempDir(), filepath.Join(t.TempDir(), "s.jsonl")
	h := sender(data, path, 8)
	for _, c := range []struct {
		content string
		want    []string
	}{
		{"one\ntwo\nthree\nfour", []string{"s at=0 one\ntwo\n", "s at=8 three\n", "s at=14 "}},
		{"one\ntwo\nthree\nfour\n", []string{"s at=14 four\n"}},
		{"one\ntwo\nthree\nfour\na line of many bytes\nx", []string{"s at=19 ", "s at=19 ", "s at=19 a line of many bytes\n", "s at=40 "}},
	} {
		write(t, path, c.content)
		if err := h.sendTranscript(t.Context(), NewClient(u.url, "")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, u.got()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.content, diff)
		}
	}
}

// A server that says it has what was never sent, or nothing, is none to go on with.
func TestSendTranscriptBelievesNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	write(t, path, "one\n")
	for _, answer := range []string{``, `{}`, `{"bytes":5}`, `{"bytes":-1}`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
		if err := sender(t.TempDir(), path, 8).sendTranscript(t.Context(), NewClient(s.URL, "")); err == nil {
			t.Errorf("%q is believed", answer)
		}
		s.Close()
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
	u := takeParts(t)
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
	if err := h.sendTranscript(t.Context(), NewClient(u.url, "")); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || slices.Contains(left, old) || !slices.Contains(left, young) || !slices.Contains(left, foreign) {
		t.Errorf("left: %v, %v", left, err)
	}
}

// takenParts is a server that takes conversations.
type takenParts struct {
	url   string
	whole bool // it takes whole lines alone
	mu    sync.Mutex
	parts []string // "session at=… text"
}

func takeParts(t *testing.T) *takenParts {
	u := &takenParts{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		at, err := strconv.Atoi(r.URL.Query().Get("at"))
		if err != nil {
			t.Error(err)
		}
		if u.whole {
			body = body[:bytes.LastIndexByte(body, '\n')+1]
		}
		fmt.Fprintf(w, `{"bytes":%d}`, at+len(body))
		u.parts = append(u.parts, strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/v1/sessions/"), "/transcript")+" at="+r.URL.Query().Get("at")+" "+string(body))
	}))
	t.Cleanup(s.Close)
	u.url = s.URL
	return u
}

// got are the parts since it was last called.
func (u *takenParts) got() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	parts := u.parts
	u.parts = nil
	return parts
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
