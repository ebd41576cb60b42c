package transcripts

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// Two files of one session (a resumed conversation, a fork, a second machine)
// that are sent at once: what is kept is one of them, never the head of one and
// the tail of the other, which no judge could tell from a conversation.
func TestAppendFileMixesNoTwoFiles(t *testing.T) {
	s := openStore(t, Options{})
	line := func(who string) string {
		return `{"type":"user","message":{"role":"user","content":"` + who + `"},"uuid":"` + who + `"}` + "\n"
	}
	send := func(at int64, before, text string) error {
		t.Helper()
		tail, err := Tail(strings.NewReader(before), int64(len(before)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.AppendFile(t.Context(), "s", 0, Part{Format: formatClaudeCode, At: at, After: tail}, strings.NewReader(text))
		return err
	}
	anna, bert := line("anna"), line("bert")
	at := int64(len(anna))
	for _, first := range []string{anna, bert} {
		if err := send(0, "", first); err != nil {
			t.Fatal(err)
		}
	}
	if err := send(at, anna, anna); gate.CodeOf(err) != gate.CodeConflict {
		t.Errorf("the tail of another file: %v", err)
	}
	if err := send(at, bert, line("and more")); err != nil {
		t.Error(err)
	}
	if err := send(3, bert[:3], anna); gate.CodeOf(err) != gate.CodeConflict {
		t.Errorf("in the middle: %v", err)
	}
	text, err := attach(t, s, &gate.Event{Session: "s"}).ReadFile(t.Context(), 1, 100)
	if err != nil || strings.Contains(text, "anna") || !strings.Contains(text, "and more") {
		t.Errorf("%v: %s", err, text)
	}
}

// A part fits only where the last one ended: a gap or an overlap would make a
// file that nobody wrote.
func TestAppendFileLeavesNoGap(t *testing.T) {
	s := openStore(t, Options{})
	const first, second = `{"type":"user.message","data":{"content":"one"}}` + "\n", `{"type":"user.message","data":{"content":"two"}}` + "\n"
	send := func(format string, at int, before, text string) error {
		t.Helper()
		tail, err := Tail(strings.NewReader(before), int64(len(before)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.AppendFile(t.Context(), "s", 0, Part{Format: format, At: int64(at), After: tail}, strings.NewReader(text))
		return err
	}
	for _, c := range []struct {
		name, format string
		at           int
		before       string
		want         gate.Code
	}{
		{"nothing is here yet", formatCopilot, len(first), first, gate.CodeConflict},
		{"from the start", formatCopilot, 0, "", ""},
		{"beyond the end", formatCopilot, len(first) + 1, first + "x", gate.CodeConflict},
		{"of another format", formatCodex, len(first), first, gate.CodeConflict},
		{"of no format", "notes", 0, "", gate.CodeValidation},
		{"before the start", formatCopilot, -1, "", gate.CodeValidation},
		{"at the end", formatCopilot, len(first), first, ""},
		{"at what was the end", formatCopilot, len(first), first, gate.CodeConflict},
	} {
		text := second
		if c.at == 0 {
			text = first
		}
		if err := send(c.format, c.at, c.before, text); (err == nil) != (c.want == "") || err != nil && gate.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if text := readUpload(t, s, "s"); text != "=== user ===\none\n=== user ===\ntwo\n" {
		t.Errorf("read %q", text)
	}
}

// readUpload is what GET of a session shows that has a host's file.
func readUpload(t *testing.T, s *Store, session string) string {
	t.Helper()
	r, _, err := s.Read(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The answer under judgement stands in the view of an uploaded file, and once.
func TestClaudeCode10UploadEndsWithTheAnswer(t *testing.T) {
	s := openStore(t, Options{})
	if _, err := s.AppendFile(t.Context(), "s", 0, Part{Format: formatClaudeCode}, strings.NewReader(claudeUser("u", "null", "ask")+claudeSays("a", "u", "m", "half"))); err != nil {
		t.Fatal(err)
	}
	for final, added := range map[string]int{"Done.": 1, "half": 0} {
		lines, err := attach(t, s, &gate.Event{TranscriptSession: "s", Session: "other", FinalOutput: final}).ReadFile(t.Context(), 1, 100)
		if err != nil || strings.Count(lines, "half") != 1 || strings.Count(lines, "Done.") != added {
			t.Errorf("final %q: %v\n%s", final, err, lines)
		}
	}
}

// The answer of a Stop is found in an uploaded file as in one of this machine.
func TestClaudeCode10UploadedAnswer(t *testing.T) {
	s := openStore(t, Options{})
	const file = `{"type":"user.message","data":{"content":"ask"}}` + "\n" + `{"type":"assistant.message","data":{"content":"the answer"}}` + "\n" +
		`{"type":"hook.start","data":{"input":{"timestamp":1796041762879}}}` + "\n" + `{"type":"assistant.message","data":{"content":"later"}}` + "\n"
	if _, err := s.AppendFile(t.Context(), "s", 0, Part{Format: formatCopilot}, strings.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Replace(t.Context(), "text", 0, "text/plain", strings.NewReader("assistant: hi")); err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(1796041762879)
	for _, c := range []struct {
		name, session string
		since         time.Time
		want          string // empty: it is not there
	}{
		{"of that Stop", "s", at, "the answer"},
		{"the last", "s", time.Time{}, "later"},
		{"of a Stop that the file does not have", "s", at.Add(time.Second), ""},
		{"of a session without a file", "none", at, ""},
		{"of one that is no host's file", "text", at, ""},
	} {
		got, err := s.UploadedAnswer(t.Context(), c.session, c.since)
		failure, unread := errors.AsType[*gate.Failure](err)
		if got != c.want || (c.want == "") != (unread && failure.Code == gate.TranscriptUnreadable) {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}
