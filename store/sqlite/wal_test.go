package sqlite

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/storetest"
)

// walBound is how long the WAL may be at any time, in bytes: its own bound, and what
// one transaction goes beyond it.
const walBound = walBytes + 2*batchBytes

// TestWALStaysBounded: many commits do not make the WAL grow without end.
func TestWALStaysBounded(t *testing.T) {
	s := openForTest(t, Options{Lock: true, Durability: Process})
	written := writeMegabytes(t, s, 128)
	written.Wait()
	if size := walSize(t, s); size > walBound {
		t.Errorf("the WAL has %d bytes, want at most %d", size, walBound)
	}
}

// TestWALWaitsForItsMove: where moving the WAL is slower than writing it, as on a
// machine that is busy with something else, the writer waits, and nothing fails.
func TestWALWaitsForItsMove(t *testing.T) {
	s := openForTest(t, Options{Lock: true, Durability: Process})
	s.writer.wal.moving.Lock() // one move that does not end
	written := writeMegabytes(t, s, 128)
	for end := time.Now().Add(time.Minute); walSize(t, s) <= walBytes; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the WAL has %d bytes after a minute: too little is written", walSize(t, s))
		}
	}
	time.Sleep(300 * time.Millisecond) // in which as much would have been written again
	if size := walSize(t, s); size > walBound {
		t.Errorf("the WAL has %d bytes while it is not moved, want at most %d", size, walBound)
	}
	s.writer.wal.moving.Unlock()
	written.Wait()
	if size := walSize(t, s); size > walBound {
		t.Errorf("the WAL has %d bytes, want at most %d", size, walBound)
	}
}

// writeMegabytes has so many MiB written by eight at once, in records of 256 KiB.
func writeMegabytes(t *testing.T, s *Store, megabytes int) *sync.WaitGroup {
	body := strings.Repeat("0123456789abcdef", 1<<14)
	running := &sync.WaitGroup{}
	for w := range 8 {
		running.Go(func() {
			for i := range megabytes / 2 {
				r := storetest.Record(w*1000 + i)
				r.Reason = body // heads are not compressed
				if err := s.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	return running
}

func walSize(t *testing.T, s *Store) int64 {
	info, err := os.Stat(s.writer.wal.file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
