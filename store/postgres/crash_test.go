package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/postgres/postgrestest"
	"stopgate/store/storetest"
)

// TestServerCrashes: one of the server's processes is killed in the middle of it
// all, so that the server gives up every connection and recovers. What was
// acknowledged is there, once, and the counts are those of the records.
func TestServerCrashes(t *testing.T) {
	const workers, each = 4, 40
	url := postgrestest.Database(t)
	all := []*Store{openForTest(t, url), openForTest(t, url)}
	key := gate.LedgerKey{Agent: "builder", Session: "s1"}
	acked := make([]bool, 1+workers*each)
	var running sync.WaitGroup
	var done atomic.Int32
	for w := range workers {
		running.Go(func() {
			for i := range each {
				n := 1 + w*each + i
				acked[n] = all[w%2].Commit(context.Background(), rejecting(key, gate.Counts{}, n)) == nil
				done.Add(1)
			}
		})
	}
	for done.Load() < workers*each/4 {
		time.Sleep(time.Millisecond)
	}
	var pid int
	if err := all[0].pool.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // of the server that this process has started
		t.Fatal(err)
	}
	running.Wait()
	for until := time.Now().Add(30 * time.Second); all[0].Ping(t.Context()) != nil; {
		if time.Now().After(until) {
			t.Fatal("the store does not come back")
		}
	}
	seen := map[int]bool{}
	for n := 1; n < len(acked); n++ {
		r, err := all[1].Record(t.Context(), storetest.ID(n))
		switch {
		case err == nil && seen[r.StopRejectionCount]:
			t.Errorf("two records have the count %d", r.StopRejectionCount)
		case err == nil:
			seen[r.StopRejectionCount] = true
		case gate.CodeOf(err) != gate.CodeNotFound:
			t.Fatal(err)
		case acked[n]:
			t.Errorf("record %d was acknowledged and is not there", n)
		}
	}
	counts, _, err := all[0].Counts(t.Context(), key)
	if err != nil || counts.StopRejections != len(seen) || !seen[len(seen)] {
		t.Errorf("%d are counted (%v), %d recorded", counts.StopRejections, err, len(seen))
	}
	if len(seen) < workers*each/2 {
		t.Errorf("%d of %d were stored: the store did not go on", len(seen), workers*each)
	}
}
