package postgres

import (
	"context"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/postgres/postgrestest"
)

func put(t *testing.T, s *Store, name string) {
	t.Helper()
	if _, err := s.PutSpec(t.Context(), gate.StoredSpec{Kind: gate.AgentSpec, Name: name, Document: []byte(`{}`)}, gate.Actor{}, ""); err != nil {
		t.Fatal(err)
	}
}

// told waits for a token. Ten seconds are for machines that are slow and busy.
func told(t *testing.T, changed <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, open := <-changed:
		if !open {
			t.Fatalf("%s: the channel is closed", what)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%s was not told", what)
	}
}

// hears waits until a replica listens, for polling not to do its work.
func hears(t *testing.T, s *Store) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if listeners(t, s) > 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatal("nobody listens")
		}
	}
}

func listeners(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'stopgate listener' AND query LIKE 'LISTEN%'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAnnounced: another replica's change and deletion are heard of without
// polling.
func TestAnnounced(t *testing.T) {
	all := replicas(t, 2)
	all[1].pollEvery = time.Hour
	changed := all[1].SpecsChanged(t.Context())
	told(t, changed, "the first state")
	put(t, all[0], "a")
	told(t, changed, "a put")
	if err := all[0].DeleteSpec(t.Context(), gate.AgentSpec, "a", gate.Actor{}, ""); err != nil {
		t.Fatal(err)
	}
	told(t, changed, "a deletion")
	if err := all[0].DeleteSpec(t.Context(), gate.AgentSpec, "a", gate.Actor{}, ""); gate.CodeOf(err) != gate.CodeNotFound {
		t.Fatal(err)
	}
	select {
	case <-changed:
		t.Error("a refused change was told")
	case <-time.After(100 * time.Millisecond):
	}
}

// TestListenerCut: while the connection that listens is broken, changes are found
// by polling; afterwards it listens again.
func TestListenerCut(t *testing.T) {
	database := postgrestest.Database(t)
	p, url := through(t, database)
	other := openForTest(t, database)
	changed := openForTest(t, url).SpecsChanged(t.Context())
	told(t, changed, "the first state")
	hears(t, other)
	cut := func() {
		t.Helper()
		var n int
		err := other.pool.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'stopgate listener'`).Scan(&n)
		if err != nil || n != 1 {
			t.Fatalf("%d listeners were cut (%v)", n, err)
		}
	}
	cut()
	put(t, other, "a")
	told(t, changed, "a put after the cut")
	hears(t, other)

	// No new connection can be had, as a listener's must be: polling goes on with
	// those that there are.
	p.set(func(p *proxy) { p.refuse = true })
	cut()
	put(t, other, "a")
	told(t, changed, "a put without a listener")
	put(t, other, "a")
	told(t, changed, "another put without a listener")
}

// TestWatchSurvivesTheServer: what was changed while the database could not be
// reached is told when it can be.
func TestWatchSurvivesTheServer(t *testing.T) {
	database := postgrestest.Database(t)
	p, url := through(t, database)
	s := openForTest(t, url)
	changed := s.SpecsChanged(t.Context())
	told(t, changed, "the first state")
	p.set(func(p *proxy) { p.refuse = true })
	p.cut()
	put(t, openForTest(t, database), "a")
	p.set(func(p *proxy) { p.refuse = false })
	told(t, changed, "a put meanwhile")
}

// TestWatchEnds with its context, and with the store.
func TestWatchEnds(t *testing.T) {
	s := openForTest(t, postgrestest.Database(t))
	ctx, cancel := context.WithCancel(t.Context())
	one, two := s.SpecsChanged(ctx), s.SpecsChanged(t.Context())
	cancel()
	ended := func(name string, c <-chan struct{}) {
		t.Helper()
		late := time.After(10 * time.Second)
		for {
			select {
			case _, open := <-c:
				if !open {
					return
				}
			case <-late:
				t.Fatalf("the watch goes on after its %s", name)
			}
		}
	}
	ended("context", one)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ended("store", two)
}
