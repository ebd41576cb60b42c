package transcripts

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// A conversation that has grown is found again as it was, wherever it lies; one
// that was shortened or written anew is none.
func TestMarkedIsWhatWasThere(t *testing.T) {
	root := t.TempDir()
	host := claudeUser("u", "null", "ask") + claudeSays("a", "u", "m", "first answer")
	more := claudeUser("v", "a", "more") + claudeSays("b", "v", "m2", "second answer")
	messages := `{"role":"user","content":"one"}` + "\n"
	inFile := func(name, format string) func(s *Store) (gate.Event, func(text string, anew bool)) {
		return func(*Store) (gate.Event, func(string, bool)) {
			path := filepath.Join(root, name)
			return gate.Event{Name: gate.Stop, Protocol: "claude-code", TranscriptPath: path, TranscriptFormat: format}, func(text string, anew bool) {
				how := os.O_APPEND
				if anew {
					how = os.O_TRUNC
				}
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|how, 0o600)
				if err == nil {
					_, err = f.WriteString(text)
					err = errors.Join(err, f.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	tests := []struct {
		name        string
		first, then string
		open        func(s *Store) (gate.Event, func(text string, anew bool))
	}{
		{"text file", "user: one\n", "user: two\n", inFile("talk.txt", "")},
		{"messages in a file", messages, strings.ReplaceAll(messages, "one", "two"), inFile("talk.jsonl", "")},
		{"host's file", host, more, inFile("host.jsonl", "claude-code")},
		{"uploaded messages", messages, strings.ReplaceAll(messages, "one", "two"), func(s *Store) (gate.Event, func(string, bool)) {
			return gate.Event{Name: gate.Stop, Session: "s"}, func(text string, anew bool) {
				put := s.Append
				if anew {
					put = s.Replace
				}
				if _, err := put(t.Context(), "s", 0, "application/x-ndjson", strings.NewReader(text)); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"uploaded host's file", host, more, func(s *Store) (gate.Event, func(string, bool)) {
			at, whole := int64(0), ""
			return gate.Event{Name: gate.Stop, Session: "main", TranscriptSession: "sub"}, func(text string, anew bool) {
				if anew {
					at, whole = 0, ""
				}
				tail, err := Tail(strings.NewReader(whole), at)
				if err == nil {
					_, err = s.AppendFile(t.Context(), "sub", 0, Part{Format: "claude-code", At: at, After: tail}, strings.NewReader(text))
				}
				if err != nil {
					t.Fatal(err)
				}
				whole += text
				at += int64(len(text))
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := openStore(t, Options{Roots: []string{root}})
			ev, add := test.open(s)
			if m, err := s.Mark(&ev); m != nil || err != nil {
				t.Errorf("of nothing there is the mark %+v, %v", m, err)
			}
			add(test.first, false)
			was := attach(t, s, &ev)
			text := viewText(t, was)
			mark, ok := was.(gate.Marked).Mark()
			if unread, err := s.Mark(&ev); !ok || err != nil || *unread != mark || mark.Bytes == 0 {
				t.Errorf("marks %+v and %+v, %v", mark, unread, err)
			}
			add(test.then, false)
			if now := viewText(t, attach(t, s, &ev)); now == text {
				t.Fatal("it has not grown")
			}
			ev.TranscriptMark = &mark
			marked := attach(t, s, &ev)
			if again := viewText(t, marked); again != text {
				t.Errorf("it was\n%s\nand is\n%s", text, again)
			}
			if path := marked.RawPath(); path != "" {
				if raw, err := os.ReadFile(path); err != nil || string(raw) != test.first {
					t.Errorf("scripts would read %q, %v", raw, err)
				}
				if err := marked.Close(); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(path); err == nil {
					t.Errorf("%s is left behind", path)
				}
			}
			if ev.TranscriptPath == "" {
				r, _, err := s.ReadMarked(t.Context(), &ev)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(r)
				if err != nil || string(got) != text || r.Close() != nil {
					t.Errorf("read %q, %v", got, err)
				}
				whole := ev
				whole.TranscriptMark = nil
				if now := viewText(t, attach(t, s, &whole)); !strings.Contains(now, "two") && !strings.Contains(now, "second") {
					t.Errorf("reading the beginning has shortened the whole: %q", now)
				}
			}
			for name, change := range map[string]func(){
				"changed":   func() { add(strings.NewReplacer("one", "0ne", "ask", "a5k").Replace(test.first)+test.then, true) },
				"shortened": func() { add(test.first[:len(test.first)/2]+"\n", true) },
			} {
				if name == "shortened" && test.name == "uploaded messages" {
					continue // half a message is refused before
				}
				change()
				v, err := s.Attach(t.Context(), &ev)
				if f, ok := errors.AsType[*gate.Failure](err); v != nil || !ok || f.Code != gate.TranscriptUnreadable {
					t.Errorf("%s: %v, %v", name, v, err)
				}
				if _, _, err := s.ReadMarked(t.Context(), &ev); ev.TranscriptPath == "" && gate.CodeOf(err) != gate.CodeConflict {
					t.Errorf("%s: read: %v", name, err)
				}
			}
		})
	}
}

func viewText(t *testing.T, v gate.Transcript) string {
	t.Helper()
	text, err := os.ReadFile(v.Path())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The answer that a payload lacks is the last one before the mark.
func TestAnswerMarked(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, Options{Roots: []string{root}})
	path := filepath.Join(root, "host.jsonl")
	host := claudeUser("u", "null", "ask") + claudeSays("a", "u", "m", "first answer")
	mark := markOf(strings.NewReader(host), int64(len(host)))
	if err := os.WriteFile(path, []byte(host+claudeUser("v", "a", "more")+claudeSays("b", "v", "m2", "second answer")), 0o600); err != nil {
		t.Fatal(err)
	}
	ev := gate.Event{Name: gate.Stop, TranscriptPath: path, TranscriptFormat: "claude-code", TranscriptMark: &mark}
	if text, err := s.AnswerMarked(t.Context(), &ev, time.Time{}); err != nil || text != "first answer" {
		t.Errorf("%q, %v", text, err)
	}
	mark.Tail = strings.Repeat("0", 64)
	if text, err := s.AnswerMarked(t.Context(), &ev, time.Time{}); err == nil {
		t.Errorf("of another file: %q", text)
	}
	ev.TranscriptPath = "/etc/passwd"
	if text, err := s.AnswerMarked(t.Context(), &ev, time.Time{}); err == nil {
		t.Errorf("outside of the roots: %q", text)
	}
}
