package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"stopgate/gate"
	"stopgate/store/storetest"
)

// Ledgers that hold nothing are not looked up, and what others do to them is seen all
// the same: two stores of one directory, of which one is a server's, commit, erase and
// fail by turns, and each commit settles with what the last one left.
func TestIdleLedgersAreNotBelievedForLong(t *testing.T) {
	dir := t.TempDir()
	stores := []*Store{openForTest(t, Options{Dir: dir, Lock: true}), openForTest(t, Options{Dir: dir})}
	rng := rand.New(rand.NewPCG(1, 2))
	left, skipped := map[string]int{}, 0
	for n := range 600 {
		s, session := stores[min(rng.IntN(6), 5)/5], fmt.Sprint("s", rng.IntN(3))
		key := gate.LedgerKey{Agent: "builder", Session: session}
		switch rng.IntN(12) {
		case 0:
			if err := s.EraseSession(t.Context(), session); err != nil {
				t.Fatal(err)
			}
			delete(left, session)
		case 1: // written, and given up
			_ = s.writer.do(t.Context(), doing(func(c *conn) error {
				c.idle.set(key, true)
				if err := writeCounts(c, key, gate.Counts{StopRejections: 9}); err != nil {
					return err
				}
				return errors.New("the disk fails")
			}))
		default:
			was, leaves := -1, max(0, rng.IntN(8)-5)
			err := s.Commit(t.Context(), gate.Commit{Key: key, Settle: func(now gate.Counts) (gate.Counts, gate.Record) {
				was = now.StopRejections
				r := storetest.Record(n + 1)
				r.Session, r.Agent = session, key.Agent
				return gate.Counts{StopRejections: leaves}, r
			}})
			if err != nil {
				t.Fatal(err)
			}
			if was != left[session] {
				t.Fatalf("step %d: %s is settled with %d, want %d", n, session, was, left[session])
			}
			left[session] = leaves
			if s.writer.conn.idle.has(key) { // the writer waits for its next job
				skipped++
			}
			if got, err := s.SessionAgents(t.Context(), session); err != nil || len(got) != 1 {
				t.Fatalf("step %d: agents of %s are %v (%v)", n, session, got, err)
			}
		}
	}
	if skipped < 100 {
		t.Errorf("%d ledgers were known to hold nothing: this tries nothing", skipped)
	}
}
