package postgres

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/postgres/postgrestest"
	"stopgate/store/storetest"
)

func openForTest(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// rejecting is a commit that counts one, as record n.
func rejecting(key gate.LedgerKey, seen gate.Counts, n int) gate.Commit {
	return gate.Commit{Key: key, Seen: seen, Settle: func(now gate.Counts) (gate.Counts, gate.Record) {
		now.StopRejections++
		r := storetest.Record(n)
		r.StopRejectionCount = now.StopRejections
		return now, r
	}}
}

// TestLostAnswer: a commit whose connection breaks is stored once, and the
// caller hears how it ended, wherever it broke.
func TestLostAnswer(t *testing.T) {
	for _, c := range []struct {
		name, words string
		fate        fate
		stored      int // record 1
		acked       bool
	}{
		{"at begin", "begin", cutBefore, 1, true},
		{"in the middle", "pg_advisory", cutBefore, 1, true},
		{"before the commit", "commit\x00", cutBefore, 1, true},
		{"after the commit", "commit\x00", cutAnswer, 1, true},
		{"after the commit, and the server stays away", "commit\x00", cutAnswers, 1, false},
	} {
		for _, session := range []string{"s1", ""} {
			t.Run(c.name+" in session "+session, func(t *testing.T) {
				database := postgrestest.Database(t)
				p, url := through(t, database)
				s := openForTest(t, url)
				key := gate.LedgerKey{Agent: "builder", Session: session}
				request := gate.Request{Key: gate.IdempotencyKey{Key: "k"}}
				w := rejecting(key, gate.Counts{}, 1)
				w.Idempotency = request
				p.set(func(p *proxy) { p.watch = once(c.words, c.fate) })
				err := s.Commit(t.Context(), w)
				if (err == nil) != c.acked || err != nil && !strings.Contains(err.Error(), "it may have come about") {
					t.Errorf("commit: %v", err)
				}
				direct := openForTest(t, database)
				r, err := direct.Record(t.Context(), storetest.ID(1))
				if err != nil || r.StopRejectionCount != 1 {
					t.Errorf("record has the count %d (%v), want 1", r.StopRejectionCount, err)
				}
				if counts, _, err := direct.Counts(t.Context(), key); session != "" && (err != nil || counts.StopRejections != 1) {
					t.Errorf("%d counted (%v), want 1", counts.StopRejections, err)
				}
				if held, err := direct.Reserve(t.Context(), request, time.Minute); err != nil || held.Evaluation != storetest.ID(1) {
					t.Errorf("the key answers %q (%v)", held.Evaluation, err)
				}
			})
		}
	}
}

// TestBrokenConnections: a store goes on with new ones, in the middle of it all.
func TestBrokenConnections(t *testing.T) {
	p, url := through(t, postgrestest.Database(t))
	s := openForTest(t, url)
	key := gate.LedgerKey{Agent: "builder", Session: "s1"}
	for n := range 5 {
		if err := s.Commit(t.Context(), rejecting(key, gate.Counts{StopRejections: n}, n+1)); err != nil {
			t.Fatal(err)
		}
		p.cut()
		if counts, _, err := s.Counts(t.Context(), key); err != nil || counts.StopRejections != n+1 {
			t.Errorf("after the cut %d are counted (%v), want %d", counts.StopRejections, err, n+1)
		}
		p.cut()
	}
}

// TestServerGoesAway: every call ends soon with an error that says so and holds
// no password; when the server is back, so is the store.
func TestServerGoesAway(t *testing.T) {
	for name, away := range map[string]func(p *proxy){
		"it refuses":      func(p *proxy) { p.refuse = true },
		"it stands still": func(p *proxy) { p.freeze = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, url := through(t, postgrestest.Database(t))
			s := openForTest(t, strings.Replace(url, "stopgate@", "stopgate:hushhush@", 1))
			if err := s.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.patience = time.Second // the background's first sweep is a minute away
			p.set(away)
			if name == "it refuses" {
				p.cut()
			}
			for what, call := range calls(s) {
				began := time.Now()
				err := call(t.Context())
				if err == nil || !strings.HasPrefix(err.Error(), "store cannot be reached, or does not answer") || strings.Contains(err.Error(), "hushhush") {
					t.Errorf("%s: %v", what, err)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("%s took %v", what, took)
				}
			}
			p.set(func(p *proxy) { p.refuse, p.freeze = false, false })
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("ping when the server is back: %v", err)
			}
		})
	}
}

func calls(s *Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"ping":   s.Ping,
		"commit": func(ctx context.Context) error { return s.Commit(ctx, rejecting(gate.LedgerKey{}, gate.Counts{}, 1)) },
		"counts": func(ctx context.Context) error {
			_, _, err := s.Counts(ctx, gate.LedgerKey{Session: "s"})
			return err
		},
	}
}

// TestOpenDeadServer: one that accepts and says nothing, as a machine behind a
// broken network does, and one that is not there.
func TestOpenDeadServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for name, l := range map[string]net.Listener{"silent": silent, "gone": gone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := Open(t.Context(), Options{URL: "postgres://me:hushhush@" + l.Addr().String() + "/db?connect_timeout=1"})
			if err == nil || !strings.Contains(err.Error(), "cannot be reached, or does not answer") || strings.Contains(err.Error(), "hushhush") {
				t.Errorf("open: %v", err)
			}
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestVanishedReplica: one that stands still inside a transaction, with its
// locks, holds up the others for a moment only.
func TestVanishedReplica(t *testing.T) {
	database := postgrestest.Database(t)
	s, vanished := openForTest(t, database), openForTest(t, database)
	key := gate.LedgerKey{Agent: "builder", Session: "s1"}
	conn, err := vanished.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `BEGIN`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, lockOf("counts", key.Session, key.Agent, "")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.Commit(t.Context(), rejecting(key, gate.Counts{}, 1)); err != nil {
		t.Error(err)
	}
	if time.Since(began) < idleTimeout/2 {
		t.Error("the commit did not meet the lock: this test shows nothing")
	}
}
