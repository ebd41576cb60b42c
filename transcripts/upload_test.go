package transcripts

import (
	"strings"
	"testing"

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
		_, err = s.AppendFile(t.Context(), "s", formatClaudeCode, at, tail, strings.NewReader(text))
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
