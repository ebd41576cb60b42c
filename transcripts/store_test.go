package transcripts

import (
	"io"
	"strings"
	"testing"

	"stopgate/gate"
)

func openStore(t testing.TB, opt Options) *Store {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	s, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// attach opens an event's transcript, which must be there.
func attach(t testing.TB, s *Store, ev *gate.Event) gate.Transcript {
	t.Helper()
	v, err := s.Attach(t.Context(), ev)
	if err != nil {
		t.Fatal(err)
	}
	if v == nil {
		t.Fatal("there is no transcript")
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func readAll(t testing.TB, s *Store, session string) string {
	t.Helper()
	r, size, err := s.Read(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != size.Bytes || countLines(string(b)) != size.Lines {
		t.Errorf("the size says %+v; the text has %d bytes and %d lines", size, len(b), countLines(string(b)))
	}
	return string(b)
}

func countLines(text string) int64 {
	n := int64(strings.Count(text, "\n"))
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
