package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"stopgate/gate"
	"stopgate/store/postgres/postgrestest"
	"stopgate/store/storetest"
)

func store(t *testing.T, s *Store, r gate.Record) {
	t.Helper()
	if err := s.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}); err != nil {
		t.Fatal(err)
	}
}

func undelivered(t *testing.T, s *Store, who gate.Lease) (places []int64) {
	t.Helper()
	if err := s.Undelivered(t.Context(), "a", who, func(d gate.Delivery) bool { places = append(places, d.Place); return true }); err != nil {
		t.Fatal(err)
	}
	return places
}

// TestOneReplicaDelivers: while one has the lease no other is given anything; when
// it was killed, or has let go, another is.
func TestOneReplicaDelivers(t *testing.T) {
	url := postgrestest.Database(t)
	first, second := openForTest(t, url), openForTest(t, url)
	if _, err := first.KeepSinks(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	store(t, first, storetest.Record(1))
	one, other := gate.Lease{Holder: "one", Length: time.Minute}, gate.Lease{Holder: "other", Length: 300 * time.Millisecond}
	want := func(step string, s *Store, who gate.Lease, n int) {
		t.Helper()
		if got := undelivered(t, s, who); len(got) != n {
			t.Errorf("%s: %d records, want %d", step, len(got), n)
		}
	}
	want("the first", first, one, 1)
	want("another meanwhile", second, other, 0)
	want("the first again", first, one, 1)
	if err := first.ReleaseSink(t.Context(), "a", "other"); err != nil {
		t.Fatal(err)
	}
	want("let go by one who does not have it", second, other, 0)
	if err := first.ReleaseSink(t.Context(), "a", "one"); err != nil {
		t.Fatal(err)
	}
	want("let go", second, other, 1)
	want("the first meanwhile", first, one, 0)
	time.Sleep(400 * time.Millisecond)
	want("the other was killed", first, one, 1)
}

// TestLateCommitIsDelivered: a record whose place was given early, and which was
// committed late, is not passed over.
func TestLateCommitIsDelivered(t *testing.T) {
	url := postgrestest.Database(t)
	s := openForTest(t, url)
	if _, err := s.KeepSinks(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	store(t, s, storetest.Record(1))
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `WITH late AS (INSERT INTO stopgate.evaluations (seq, id, agent, session, event, decision, dry_run, head)
			SELECT seq + 1, 'late', agent, session, event, decision, dry_run, head FROM stopgate.evaluations RETURNING seq)
		INSERT INTO stopgate.outbox (sink, seq) SELECT 'a', seq FROM late`); err != nil {
		t.Fatal(err)
	}
	store(t, s, storetest.Record(2))
	who := gate.Lease{Holder: "me", Length: time.Minute}
	places := undelivered(t, s, who)
	if len(places) != 2 {
		t.Fatalf("%d records, want 2", len(places))
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Delivered(t.Context(), "a", places); err != nil {
		t.Fatal(err)
	}
	if late := undelivered(t, s, who); len(late) != 1 || late[0] <= places[0] || late[0] >= places[1] {
		t.Errorf("the late one is %v, want one between %v", late, places)
	}
}

// TestForgottenSinks: what nobody has configured for a day is forgotten, with what
// was to be sent.
func TestForgottenSinks(t *testing.T) {
	url := postgrestest.Database(t)
	s := openForTest(t, url)
	if _, err := s.KeepSinks(t.Context(), []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	store(t, s, storetest.Record(1))
	if gone, err := s.KeepSinks(t.Context(), []string{"b"}); err != nil || len(gone) > 0 {
		t.Fatalf("too early: %v, %v", gone, err)
	}
	postgrestest.Exec(t, url, fmt.Sprintf(`UPDATE stopgate.sinks SET seen = seen - %d`, gate.SinkLife.Milliseconds()+1))
	gone, err := s.KeepSinks(t.Context(), []string{"b"})
	if err != nil || len(gone) != 1 || gone[0].Name != "a" || gone[0].Pending != 1 {
		t.Errorf("forgotten: %v, %v", gone, err)
	}
	if left, err := s.SinkStates(t.Context()); err != nil || len(left) != 1 || left[0].Pending != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if got := undelivered(t, s, gate.Lease{Holder: "me", Length: time.Minute}); len(got) != 0 {
		t.Errorf("%d records for a sink that is forgotten", len(got))
	}
}

// TestMaxBytes: the oldest records go until the rest comes to less than it may,
// those of sessions in use stay, and what a sink lacks is counted.
func TestMaxBytes(t *testing.T) {
	url := postgrestest.Database(t)
	s := openForTest(t, url)
	if _, err := s.KeepSinks(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	const records = 120
	now := time.Now()
	for n := range records {
		r := storetest.Full(n)
		r.Session = fmt.Sprint("s", n)
		r.Time = now.Add(-48*time.Hour + time.Duration(n)*time.Minute)
		store(t, s, r)
	}
	// The oldest session of all is in use.
	in := storetest.Record(records)
	in.Session, in.Time = "s0", now
	store(t, s, in)
	whole, err := s.goOn(t.Context(), measure{})
	if err != nil {
		t.Fatal(err)
	}
	s.maxBytes = whole.bytes
	sweepAndCount := func(want int) {
		t.Helper()
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		items, _, err := s.Records(t.Context(), gate.RecordFilter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if len(items) != want {
			t.Errorf("%d records are left, want %d", len(items), want)
		}
	}
	sweepAndCount(records + 1)
	s.maxBytes--
	// One step, of those that are the oldest and not in use.
	sweepAndCount(records + 1 - shrinkLimit)
	for n, want := range map[int]bool{0: true, 1: false, shrinkLimit: false, shrinkLimit + 1: true, records: true} {
		if _, err := s.Record(t.Context(), storetest.ID(n)); (err == nil) != want {
			t.Errorf("record %d: %v, want that it is there: %v", n, err, want)
		}
	}
	states, err := s.SinkStates(t.Context())
	if err != nil || states[0].Dropped != shrinkLimit || states[0].Pending != records+1-shrinkLimit {
		t.Errorf("states %+v, %v", states, err)
	}
}

// TestMaxTextBytes: the texts that were not added to for longest go first; those
// of the last hour stay.
func TestMaxTextBytes(t *testing.T) {
	url := postgrestest.Database(t)
	s := openForTest(t, url)
	put := func(n byte) {
		if _, err := s.ReplaceText(t.Context(), [32]byte{n}, 0, "", strings.NewReader("1234567890"), 10); err != nil {
			t.Fatal(err)
		}
		postgrestest.Exec(t, url, fmt.Sprintf(`UPDATE stopgate.texts SET touched = touched - %d WHERE key = '\x%02x%062x'`, int(40-n)*600_000, n, 0))
	}
	for n := range byte(40) { // the last six were touched within the hour
		put(n + 1)
	}
	count := func() (n int) {
		for i := range byte(40) {
			state, err := s.TextState(t.Context(), [32]byte{i + 1})
			if err != nil {
				t.Fatal(err)
			}
			if state.Bytes > 0 {
				n++
			} else if n > 0 {
				t.Errorf("text %d went before an older one", i+1)
			}
		}
		return n
	}
	for _, c := range []struct {
		most int64
		left int
	}{{400, 40}, {399, 39}, {155, 15}, {10, 6}} {
		s.maxTexts = c.most
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != c.left {
			t.Errorf("at most %d bytes: %d texts are left, want %d", c.most, n, c.left)
		}
	}
	if state, err := s.TextState(t.Context(), [32]byte{40}); err != nil || state.Bytes != 10 {
		t.Errorf("the newest: %+v, %v", state, err)
	}
}
