package transcripts

import (
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
