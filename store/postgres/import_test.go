package postgres

import (
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"stopgate/gate"
	"stopgate/store/postgres/postgrestest"
	"stopgate/store/record"
)

// seqOf is rows, and then an error unless that is nil.
func seqOf[T any](err error, rows ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// dumpOf is one ledger, and then an error unless that is nil.
func dumpOf(err error) record.Dump {
	one := record.Counts{LedgerKey: gate.LedgerKey{Agent: "a", Session: "s"}, Counts: gate.Counts{StopRejections: 1}}
	return record.Dump{Counts: seqOf(err, one), Evaluations: seqOf[record.Evaluation](nil), Hooks: seqOf[record.Hook](nil), Specs: seqOf[record.Spec](nil),
		Activations: seqOf[record.Activation](nil), Keys: seqOf[record.Key](nil),
		Claims: seqOf[record.Claim](nil), APIKeys: seqOf[record.APIKey](nil), Changes: seqOf[record.Change](nil), Overrides: seqOf[record.Override](nil),
		Sinks: seqOf[record.Sink](nil), Unsent: seqOf[record.Unsent](nil), Rows: record.Rows{Counts: 1}}
}

// oneText is a text of four bytes, and then an error unless that is nil.
func oneText(err error) Texts {
	return func(put func(key [32]byte, form string, r io.ReaderAt, n int64) error) error {
		return errors.Join(put([32]byte{1}, "f", strings.NewReader("text"), 4), err)
	}
}

// TestImportAllOrNothing: what is not whole leaves nothing.
func TestImportAllOrNothing(t *testing.T) {
	for _, c := range []struct {
		name, says string
		change     func(d *record.Dump) Texts
	}{
		{"whole", "", func(*record.Dump) Texts { return oneText(nil) }},
		{"a row less than there are", "nothing was kept", func(d *record.Dump) Texts { d.Rows.Counts = 2; return oneText(nil) }},
		{"a sequence that breaks off", "disk is gone", func(d *record.Dump) Texts { *d = dumpOf(errors.New("disk is gone")); return oneText(nil) }},
		{"texts that break off", "disk is gone", func(*record.Dump) Texts { return oneText(errors.New("disk is gone")) }},
		{"a source that panics", "panicked", func(*record.Dump) Texts {
			return func(func([32]byte, string, io.ReaderAt, int64) error) error { panic("no") }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openForTest(t, postgrestest.Database(t))
			d := dumpOf(nil)
			texts := c.change(&d)
			steps := 0
			err := s.Import(t.Context(), d, texts, func() { steps++ })
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("import: %v, want %q", err, c.says)
			}
			counts, _, countsErr := s.Counts(t.Context(), gate.LedgerKey{Agent: "a", Session: "s"})
			state, stateErr := s.TextState(t.Context(), [32]byte{1})
			if countsErr != nil || stateErr != nil || (counts.StopRejections == 1) != (err == nil) || (state.Bytes == 4) != (err == nil) {
				t.Errorf("it holds %+v and %+v (%v, %v)", counts, state, countsErr, stateErr)
			}
			if err == nil && steps != 2 {
				t.Errorf("%d steps were told, want 2", steps)
			}
		})
	}
}

// TestImportNeedsAnEmptyDatabase, whatever it is that is there.
func TestImportNeedsAnEmptyDatabase(t *testing.T) {
	for name, use := range map[string]func(s *Store) error{
		"a record": func(s *Store) error { return s.Commit(t.Context(), rejecting(gate.LedgerKey{}, gate.Counts{}, 1)) },
		"a spec": func(s *Store) error {
			put(t, s, "a")
			return s.DeleteSpec(t.Context(), gate.AgentSpec, "a", gate.Actor{}, "")
		},
		"an activation": func(s *Store) error { return s.SetActive(t.Context(), "s", "h", true, gate.Actor{}) },
		"a key": func(s *Store) error {
			_, err := s.Reserve(t.Context(), gate.Request{}, 0)
			return err
		},
		"an API key": func(s *Store) error { return s.AddKey(t.Context(), gate.Key{ID: "a", Name: "a"}, gate.Actor{}) },
		"a claim": func(s *Store) error {
			return s.ClaimSession(t.Context(), "s", "a", 0, func(string) bool { return true })
		},
		"a text": func(s *Store) error {
			_, err := s.AppendText(t.Context(), [32]byte{9}, 0, gate.TextState{}, "", strings.NewReader("x"), 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openForTest(t, postgrestest.Database(t))
			if err := use(s); err != nil {
				t.Fatal(err)
			}
			if err := s.Import(t.Context(), dumpOf(nil), oneText(nil), func() {}); gate.CodeOf(err) != gate.CodeConflict {
				t.Errorf("import: %v, want a conflict", err)
			}
			if counts, _, err := s.Counts(t.Context(), gate.LedgerKey{Agent: "a", Session: "s"}); err != nil || counts != (gate.Counts{}) {
				t.Errorf("it holds %+v (%v)", counts, err)
			}
		})
	}
}
