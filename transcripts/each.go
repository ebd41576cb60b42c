package transcripts

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// Count is how many sessions have a transcript here.
func (s *Store) Count() (int, error) {
	n := 0
	err := s.eachKey(func(key) error { n++; return nil })
	return n, err
}

// Each hands every transcript that is here to put, named and described as a
// [gate.SharedTexts] has it, and gives up at the first error.
func (s *Store) Each(put func(key [32]byte, form string, r io.ReaderAt, n int64) error) error {
	return s.eachKey(func(k key) error {
		f, m, err := openCommitted(s.sessionDir(k))
		if err != nil {
			return fmt.Errorf("transcript in %q: %w", s.sessionDir(k), err)
		}
		defer f.Close()
		return put(k, m.form(), f, m.Bytes)
	})
}

// eachKey visits the sessions that have a commit record: what a writer that was
// killed left is none.
func (s *Store) eachKey(visit func(key) error) error {
	entries, err := os.ReadDir(s.sessions)
	if err != nil {
		return fmt.Errorf("transcripts: %w", err)
	}
	for _, e := range entries {
		b, err := hex.DecodeString(e.Name())
		if err != nil || len(b) != len(key{}) {
			continue
		}
		if _, err := readMeta(s.sessionDir(key(b))); os.IsNotExist(err) {
			continue
		}
		if err := visit(key(b)); err != nil {
			return err
		}
	}
	return nil
}
