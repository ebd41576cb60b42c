package postgres

import (
	"context"
	"strings"
	"testing"

	"stopgate/gate"
	"stopgate/store/postgres/postgrestest"
)

// TestURL: what is wrong is said, and nothing of it that may be a password.
func TestURL(t *testing.T) {
	for name, c := range map[string]struct{ url, says string }{
		"empty":                        {"", "is not a URL"},
		"another scheme":               {"mysql://u:hush@h/db", "is not a URL"},
		"keywords":                     {"host=h password=hush", "is not a URL"},
		"percent in the password":      {"postgres://u:hu%sh@h/db", "is not a URL"},
		"slash in the password":        {"postgres://u:1/hush@h/db", "is not a URL"},
		"hash in the password":         {"postgres://u:1#hush@h/db", "is not a URL"},
		"an @ and a slash in it":       {"postgres://u:1@hush/2@h/db", "is not a URL"},
		"question mark in it":          {"postgres://u:1?hush@h/db", "is not a URL"},
		"no number":                    {"postgres://u:hush@h:port/db", "is not a URL"},
		"a parameter":                  {"postgres://u:hush@h/db?sslmode=hush", `database postgres h/db cannot be used: its parameter "sslmode" is wrong`},
		"a file":                       {"postgres://u:hush@h:5432/db?sslmode=verify-full&sslrootcert=/hush/none", `its parameter "sslrootcert" is wrong`},
		"a password that is parameter": {"postgres://u@h/db?password=hush&pool_max_conns=x", `its parameter "pool_max_conns" is wrong`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), Options{URL: c.url})
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hush") {
				t.Errorf("open: %v, want %q", err, c.says)
			}
			if gate.CodeOf(err) != gate.CodeValidation {
				t.Errorf("code is %s", gate.CodeOf(err))
			}
		})
	}
}

func TestWhere(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u:hush@db.example:5432/gate?sslmode=require": "postgres db.example/gate",
		"postgresql://u@db.example:6000/gate":                    "postgres db.example:6000/gate",
		"postgres://u:hush@/gate?host=/run/postgresql":           "postgres /run/postgresql/gate",
		"postgres://[::1]/gate":                                  "postgres [::1]/gate",
		"postgres://u:p@hush@db.example/gate%40home?user=a%40b":  "postgres db.example/gate@home",
		"postgres://u:hu#sh@h/gate":                              "postgres",
		"postgres://u:a@hush/b@db.example/gate":                  "postgres",
		"postgres://u:a@hush?b@db.example/gate":                  "postgres",
		"postgres://u:a@b/hush@db.example/gate":                  "postgres",
	} {
		if got := Where(url); got != want {
			t.Errorf("%s is at %q, want %q", url, got, want)
		}
	}
}

// TestWrongPassword: the server's refusal is said, the password is not.
func TestWrongPassword(t *testing.T) {
	url := postgrestest.Database(t)
	_, err := Open(t.Context(), Options{URL: strings.Replace(url, "stopgate@", "nobody:hushhush@", 1)})
	if err == nil || !strings.Contains(err.Error(), `role "nobody" does not exist`) || strings.Contains(err.Error(), "hushhush") {
		t.Errorf("open: %v", err)
	}
}

// TestSchemas: a database that is not ours, or is ahead of us, is left alone; one
// that its owner has prepared is used.
func TestSchemas(t *testing.T) {
	for name, c := range map[string]struct{ before, says string }{
		"prepared":  {`CREATE SCHEMA stopgate`, ""},
		"shared":    {`CREATE TABLE counts (x INT); CREATE TABLE goose_db_version (x INT)`, ""},
		"foreign":   {`CREATE SCHEMA stopgate; CREATE TABLE stopgate.counts (x INT)`, `schema "stopgate" is not stopgate's`},
		"read-only": {`DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET default_transaction_read_only = on'; END $$`, "read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			url := postgrestest.Database(t)
			postgrestest.Exec(t, url, c.before)
			s, err := Open(t.Context(), Options{URL: url})
			if err == nil {
				defer s.Close()
				err = s.Ping(t.Context())
			}
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("open: %v, want %q", err, c.says)
			}
		})
	}
	t.Run("newer", func(t *testing.T) {
		url := postgrestest.Database(t)
		openForTest(t, url).Close()
		postgrestest.Exec(t, url, `INSERT INTO stopgate.migrations (version_id, is_applied) VALUES (9999, true)`)
		_, err := Open(t.Context(), Options{URL: url})
		if err == nil || !strings.Contains(err.Error(), "newer stopgate (schema 9999") {
			t.Errorf("open: %v", err)
		}
	})
}

// TestPingWrites: a server that takes no more writes is not ready.
func TestPingWrites(t *testing.T) {
	url := postgrestest.Database(t)
	s := openForTest(t, url)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	postgrestest.Exec(t, url, `REVOKE ALL ON stopgate.probe FROM PUBLIC; ALTER TABLE stopgate.probe RENAME TO gone`)
	if err := s.Ping(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "store ") {
		t.Errorf("ping: %v", err)
	}
}

// TestPlans: every filter that promises a look-up has one, in the order of the
// list: no sort of more than the page.
func TestPlans(t *testing.T) {
	s := openForTest(t, postgrestest.Database(t))
	for _, c := range []struct {
		name   string
		filter gate.RecordFilter
		want   string
	}{
		{"all", gate.RecordFilter{}, "Index Scan Backward using evaluations_pkey"},
		{"agent", gate.RecordFilter{Agent: "a"}, "Index Scan Backward using evaluations_agent"},
		{"session", gate.RecordFilter{Session: "s"}, "Index Scan Backward using evaluations_session"},
		{"block", gate.RecordFilter{Decision: gate.Block}, "Index Scan Backward using evaluations_decision"},
		{"hook", gate.RecordFilter{Hook: "h"}, "Index Only Scan Backward using evaluation_hooks_hook"},
	} {
		t.Run(c.name, func(t *testing.T) {
			query, args, err := selectPage(c.filter)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := s.pool.Acquire(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			// An empty table is scanned and sorted as quickly.
			if _, err := conn.Exec(t.Context(), `SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off`); err != nil {
				t.Fatal(err)
			}
			rows, err := conn.Query(t.Context(), `EXPLAIN (COSTS OFF) `+query, args...)
			if err != nil {
				t.Fatal(err)
			}
			var plan strings.Builder
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					t.Fatal(err)
				}
				plan.WriteString(line + "\n")
			}
			if err := rows.Err(); err != nil || !strings.Contains(plan.String(), c.want) || strings.Contains(plan.String(), "Sort") {
				t.Errorf("plan (%v) is not by %s:\n%s", err, c.want, plan.String())
			}
		})
	}
}

// A ledger of an older stopgate has the reason's text; after the migration it has
// the mark that the gate compares with.
func TestReasonsBecomeMarks(t *testing.T) {
	url := postgrestest.Database(t)
	s := openForTest(t, url)
	script, err := migrations.ReadFile("migrations/00005_marks.sql")
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Exec(t, url, `INSERT INTO stopgate.counts VALUES ('s', 'a', '', 2, 1, true, 'p', 'räson', '', '', 1), ('t', 'a', '', 0, 0, true, '', '', '', '', 0)`)
	postgrestest.Exec(t, url, string(script))
	for session, want := range map[string]string{"s": gate.MarkHead("räson"), "t": ""} {
		if got, _, err := s.Counts(t.Context(), gate.LedgerKey{Agent: "a", Session: session}); err != nil || got.LastReason != want {
			t.Errorf("%s: reason %q (%v), want %q", session, got.LastReason, err, want)
		}
	}
}
