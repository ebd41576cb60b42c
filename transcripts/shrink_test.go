package transcripts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// TestMaxTotal: the transcripts that were not added to for longest go first, no
// more than needed, and none of a session in use.
func TestMaxTotal(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name string
		most int64
		left []int // of ten, each of 100 bytes; the n-th was added to n hours and a half ago
	}{
		{"enough room", 1000, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"a byte too much", 999, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{"half of it", 500, []int{0, 1, 2, 3, 4}},
		{"next to none", 1, []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(Options{Dir: t.TempDir(), MaxTotal: c.most})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for n := range 10 {
				session := fmt.Sprint(n)
				if _, err := s.Replace(t.Context(), session, 0, "text/plain", strings.NewReader(strings.Repeat("x", 100))); err != nil {
					t.Fatal(err)
				}
				at := now.Add(-time.Duration(n)*gate.SessionInUse - gate.SessionInUse/2)
				if err := os.Chtimes(filepath.Join(s.sessionDir(keyOf(session)), metaName), at, at); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.shrink(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			var left []int
			for n := range 10 {
				if _, known, err := s.Stat(t.Context(), fmt.Sprint(n)); err != nil {
					t.Fatal(err)
				} else if known {
					left = append(left, n)
				}
			}
			if !slices.Equal(left, c.left) {
				t.Errorf("left are %v, want %v", left, c.left)
			}
		})
	}
}
