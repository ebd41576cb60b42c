package chaos

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestPlanted loads a real server, spoils its database behind its back, and has
// the checker find it: a record that is dropped, a count that is doubled.
func TestPlanted(t *testing.T) {
	w := startWorld(t, setups[0], server(t), "")
	l := &load{w: w, journal: &Journal{}, until: time.Now().Add(startLimit)}
	for n := range clients + 1 {
		l.sessions = append(l.sessions, fmt.Sprint("planted-", n))
	}
	l.run(1)
	ops := l.journal.Ops()
	first := func(int) int { return 0 }
	if found := Check(rules, ops, w.observe(ops, first)); len(found) > 0 {
		t.Fatalf("before anything is spoilt: %v", found)
	}
	for _, tc := range []struct {
		name, statement string
		want            Fault
	}{
		{"a count is doubled", `UPDATE counts SET stops = 2 * stops WHERE (session, agent, sub_agent) =
			(SELECT session, agent, sub_agent FROM counts WHERE stops > 0 LIMIT 1)`, CountWrong},
		{"a record is dropped", `DELETE FROM evaluations WHERE seq = (SELECT seq FROM evaluations WHERE event = 'PreToolUse' LIMIT 1)`, DecisionLost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.stop(w.replicas[0])
			spoil(t, filepath.Join(w.replicas[0].data, "stopgate.db"), tc.statement)
			w.start(w.replicas[0])
			found := Check(rules, ops, w.observe(ops, first))
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Fault == tc.want }) {
				t.Errorf("found %v, want %s", found, tc.want)
			}
		})
	}
}

// spoil changes one row; the driver is the store's.
func spoil(t *testing.T, file, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	result, err := db.Exec(statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d rows are changed, %v", n, err)
	}
}
