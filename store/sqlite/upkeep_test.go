package sqlite

import (
	"bytes"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/storetest"
)

// clock is a settable time.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func TestRetention(t *testing.T) {
	first := storetest.Record(0).Time
	for _, c := range []struct {
		name      string
		retention time.Duration
		age       time.Duration
		kept      int
	}{
		{"for ever", 0, 10000 * time.Hour, 500},
		{"young", 72 * time.Hour, 71 * time.Hour, 500},
		{"half", 72 * time.Hour, 72*time.Hour + 250*time.Millisecond, 250},
		{"old", 72 * time.Hour, 100 * time.Hour, 0},
		{"less than a day is a day", time.Hour, 23 * time.Hour, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := &clock{t: first}
			s := openForTest(t, Options{Lock: true, Durability: Process, Retention: c.retention, Now: clock.now})
			for n := range 500 {
				r := storetest.Full(n)
				if err := s.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}); err != nil {
					t.Fatal(err)
				}
			}
			clock.add(c.age)
			if err := s.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, f := range []gate.RecordFilter{{Limit: 1000}, {Hook: "judge", Limit: 1000}} {
				items, _, err := s.Records(t.Context(), f)
				if err != nil || len(items) != c.kept {
					t.Errorf("%d records by %+v (%v), want %d", len(items), f, err, c.kept)
				}
			}
		})
	}
}

// TestKeysLast24Hours: an answered key is kept for its day and then forgotten;
// one that is still running is not.
func TestKeysLast24Hours(t *testing.T) {
	clock := &clock{t: storetest.Record(0).Time}
	s := openForTest(t, Options{Lock: true, Now: clock.now})
	answered, running := gate.IdempotencyKey{Key: "answered"}, gate.IdempotencyKey{Key: "running"}
	reserve := func(k gate.IdempotencyKey, body byte) (gate.Reservation, error) {
		return s.Reserve(t.Context(), gate.Request{Key: k, Body: [32]byte{body}}, time.Minute)
	}
	var held gate.Reservation // of running
	for _, k := range []gate.IdempotencyKey{answered, running} {
		var err error
		if held, err = reserve(k, 1); err != nil {
			t.Fatal(err)
		}
	}
	c := plainCommit(1)
	c.Idempotency = gate.Request{Key: answered, Body: [32]byte{1}}
	if err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	keys := func() (n int) {
		t.Helper()
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.reads.QueryRow(`SELECT count(*) FROM idempotency`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	clock.add(24*time.Hour - time.Second)
	if err := s.Renew(t.Context(), held, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got, err := reserve(answered, 1); err != nil || got.Evaluation != storetest.ID(1) {
		t.Errorf("a second before its end the key answers %q, %v", got.Evaluation, err)
	}
	if n := keys(); n != 2 {
		t.Errorf("%d keys are kept, want 2", n)
	}
	clock.add(time.Second)
	if _, err := reserve(running, 1); gate.CodeOf(err) != gate.CodeConflict {
		t.Errorf("a key still running after a day: %v, want a conflict", err)
	}
	if got, err := reserve(answered, 2); err != nil || got.Evaluation != "" {
		t.Errorf("after its day the key answers %q, %v; want it free for any body", got.Evaluation, err)
	}
	if n := keys(); n != 2 {
		t.Errorf("%d keys are kept, want the new one and the one still running", n)
	}
	clock.add(24 * time.Hour)
	c = plainCommit(2)
	c.Idempotency = gate.Request{Key: answered, Body: [32]byte{3}} // not swept yet, and not reserved
	if err := s.Commit(t.Context(), c); err != nil {
		t.Errorf("a commit under a key whose day is over: %v", err)
	}
	if got, err := reserve(answered, 3); err != nil || got.Evaluation != storetest.ID(2) {
		t.Errorf("the key answers %q, %v; want the new answer", got.Evaluation, err)
	}
	clock.add(48 * time.Hour)
	if n := keys(); n != 0 {
		t.Errorf("%d keys are kept after all their time, want none", n)
	}
}

// TestErasedBytes: nothing of an erased session is in any file.
func TestErasedBytes(t *testing.T) {
	s := openForTest(t, Options{Lock: true})
	const secret = "bytes-to-be-erased"
	r := storetest.Full(1)
	r.Session, r.Agent, r.Reason = secret, secret, secret
	r.Payload = []byte(secret)
	r.Hooks[0].Evidence.Stdout = secret
	key := gate.LedgerKey{Agent: secret, Session: secret}
	if err := s.Commit(t.Context(), gate.Commit{Key: key, Settle: func(gate.Counts) (gate.Counts, gate.Record) {
		return gate.Counts{StopRejections: 1, LastReason: secret}, r
	}}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetActive(t.Context(), secret, "h", true, gate.Actor{Name: "me"}); err != nil {
		t.Fatal(err)
	}
	found := func() bool {
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(s.file + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(b, []byte(secret)) {
				return true
			}
		}
		return false
	}
	if !found() {
		t.Fatal("the secret is not even there before: the test looks in the wrong place")
	}
	if err := s.EraseSession(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if found() {
		t.Error("erased bytes are still on disk")
	}
	for _, table := range []string{"evaluations", "evaluation_hooks", "counts", "activations", "session_agents"} {
		var rows int
		if err := s.reads.QueryRow(`SELECT count(*) FROM ` + table).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%s has %d rows (%v), want none", table, rows, err)
		}
	}
}

// TestRecordSize: a record of a 433 byte body without hooks takes at most 4 KB
// (DESIGN §9).
func TestRecordSize(t *testing.T) {
	s := openForTest(t, Options{Lock: true, Durability: Process})
	const records = 2000
	noise := rand.NewChaCha8([32]byte{})
	for n := range records {
		r := storetest.Record(n)
		r.Payload = make([]byte, 433) // bytes that do not compress: the worst case
		noise.Read(r.Payload)
		if err := s.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}); err != nil {
			t.Fatal(err)
		}
	}
	s.upkeep.emptyWAL()
	info, err := os.Stat(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if each := info.Size() / records; each > 4096 {
		t.Errorf("a record takes %d bytes, want at most 4096", each)
	} else {
		t.Logf("a record takes %d bytes", each)
	}
}
