package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/sqlite"
	"stopgate/store/storetest"
)

// payload is a PostToolUse event of about n bytes.
func payload(n int) gate.Payload {
	var b bytes.Buffer
	b.WriteString(`{"hook_event_name":"PostToolUse","agent_name":"builder","session_id":"7c0b8b1e-1111-4a0c-9d55-2f6f3c1d2e3f",` +
		`"current_turn":3,"max_turns":50,"tool_name":"Bash","tool_input":{"command":"go test ./... && echo done","timeout":120},` +
		`"tool_succeeded":true,"tool_result":"`)
	for i := 0; b.Len() < n-2; i++ {
		fmt.Fprintf(&b, "ok  example.com/pkg%d\\t0.%03ds\\n", i*7919%1000, i*37%1000)
	}
	b.WriteString(`"}`)
	return b.Bytes()
}

// BenchmarkCommit is durable commits (synchronous FULL) at so many callers at
// once; "alone" is the same insert in a transaction of its own through
// database/sql, for comparison within one run.
func BenchmarkCommit(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		for _, size := range []int{433, 8192} {
			b.Run(fmt.Sprintf("callers=%d/bytes=%d", callers, size), func(b *testing.B) {
				s := open(b, sqlite.Options{Dir: b.TempDir(), Lock: true})
				body := payload(size)
				parallel(b, callers, func(n int) error {
					r := storetest.Record(n)
					r.Payload, r.Time = body, time.Now()
					return s.Commit(context.Background(), gate.Commit{
						Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }})
				})
			})
			b.Run(fmt.Sprintf("alone/callers=%d/bytes=%d", callers, size), func(b *testing.B) {
				db := openAlone(b)
				body := payload(size)
				parallel(b, callers, func(n int) error {
					_, err := db.Exec(`INSERT INTO records (id, payload) VALUES (?, ?)`, storetest.ID(n), []byte(body))
					return err
				})
			})
		}
	}
}

// BenchmarkCommitCounted is a commit with a ledger, each caller in its own
// session.
func BenchmarkCommitCounted(b *testing.B) {
	s := open(b, sqlite.Options{Dir: b.TempDir(), Lock: true})
	body := payload(433)
	parallel(b, 64, func(n int) error {
		key := gate.LedgerKey{Agent: "builder", Session: fmt.Sprint("s", n%64)}
		seen, _, err := s.Counts(context.Background(), key)
		if err != nil {
			return err
		}
		r := storetest.Record(n)
		r.Payload, r.Time, r.Session = body, time.Now(), key.Session
		return s.Commit(context.Background(), gate.Commit{Key: key, Seen: seen,
			Settle: func(now gate.Counts) (gate.Counts, gate.Record) { now.StopRejections++; return now, r }})
	})
}

// BenchmarkRecords is a page of 100 out of 20,000.
func BenchmarkRecords(b *testing.B) {
	s := open(b, sqlite.Options{Dir: b.TempDir(), Lock: true, Durability: sqlite.Process})
	for n := range 20000 {
		r := storetest.Record(n)
		r.Payload = payload(433)
		if err := s.Commit(b.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}); err != nil {
			b.Fatal(err)
		}
	}
	for name, f := range map[string]gate.RecordFilter{"all": {}, "session": {Session: "s1"}, "agent": {Agent: "builder"}, "nothing found by event": {Event: gate.Stop}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Records(b.Context(), f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func parallel(b *testing.B, callers int, commit func(n int) error) {
	b.ReportAllocs()
	b.SetParallelism((callers + 1) / 2)
	if callers == 1 {
		b.SetParallelism(1)
	}
	var n atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := commit(int(n.Add(1))); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

func openAlone(b *testing.B) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "alone.db")+
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE records (id TEXT PRIMARY KEY, payload BLOB)`); err != nil {
		b.Fatal(err)
	}
	return db
}
