package sqlite

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/storetest"
)

// TestMaxBytes: the oldest records go until the file uses less than it may, those
// of sessions in use stay, and what a sink lacks is counted.
func TestMaxBytes(t *testing.T) {
	const records, large = 400, 10_000
	clock := &clock{t: storetest.Record(0).Time}
	s := openForTest(t, Options{Lock: true, Durability: Process, Now: clock.now})
	if _, err := s.KeepSinks(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	noise := rand.NewChaCha8([32]byte{})
	put := func(n int, session string) {
		r := storetest.Full(n)
		r.Session, r.Time = session, clock.now()
		r.Payload = make(gate.Payload, large)
		_, _ = noise.Read(r.Payload) // which S2 makes no shorter
		if err := s.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range records {
		put(n, fmt.Sprint("s", n))
		clock.add(time.Second)
	}
	clock.add(2 * gate.SessionInUse)
	put(records, "s0") // the oldest of all is in use
	left := func() (n int) {
		t.Helper()
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.reads.QueryRow(`SELECT count(*) FROM evaluations`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := left(); n != records+1 {
		t.Fatalf("without a bound %d are left", n)
	}
	s.opt.MaxBytes = records * large / 2
	n := left()
	// Each takes a little more than its payload, and a step may go too far.
	if n > records/2 || n < records/2-100 {
		t.Errorf("%d of %d are left where half has room", n, records)
	}
	for id, want := range map[int]bool{0: true, 1: false, records - n: false, records - n + 5: true, records: true} {
		if _, err := s.Record(t.Context(), storetest.ID(id)); (err == nil) != want {
			t.Errorf("record %d: %v, want that it is there: %v", id, err, want)
		}
	}
	states, err := s.SinkStates(t.Context())
	if err != nil || states[0].Dropped != int64(records+1-n) || states[0].Pending != int64(n) {
		t.Errorf("states %+v, %v; %d are left", states, err, n)
	}
	if left() != n {
		t.Error("it goes on though it is enough")
	}
	s.opt.MaxBytes = 1
	if n := left(); n != 2 {
		t.Errorf("%d are left of the session in use, want 2", n)
	}
}

// TestForgottenSinks: what nobody has configured for a day is forgotten, with what
// was to be sent.
func TestForgottenSinks(t *testing.T) {
	clock := &clock{t: storetest.Record(0).Time}
	s := openForTest(t, Options{Lock: true, Durability: Process, Now: clock.now})
	keep := func(names ...string) []gate.SinkState {
		t.Helper()
		gone, err := s.KeepSinks(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		return gone
	}
	keep("a", "b")
	r := storetest.Record(1)
	if err := s.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}); err != nil {
		t.Fatal(err)
	}
	clock.add(gate.SinkLife)
	if gone := keep("b"); len(gone) > 0 {
		t.Errorf("too early: %v", gone)
	}
	clock.add(time.Millisecond)
	if gone := keep("b"); len(gone) != 1 || gone[0].Name != "a" || gone[0].Pending != 1 {
		t.Errorf("forgotten: %v", gone)
	}
	if left, err := s.SinkStates(t.Context()); err != nil || len(left) != 1 || left[0].Pending != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
