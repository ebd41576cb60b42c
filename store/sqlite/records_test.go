package sqlite

import (
	"strings"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/record"
	"stopgate/store/storetest"
)

// TestPlans: every filter reads the newest first from a table or an index that
// is in that order; none sorts, and those that promise a look-up have one.
func TestPlans(t *testing.T) {
	s := openForTest(t, Options{})
	now := time.Now()
	for _, c := range []struct {
		name   string
		filter gate.RecordFilter
		want   string
	}{
		{"all", gate.RecordFilter{}, "SCAN e"},
		{"cursor", gate.RecordFilter{Cursor: record.Cursor(5)}, "SEARCH e USING INTEGER PRIMARY KEY (rowid<?)"},
		{"time", gate.RecordFilter{Since: now, Until: now}, "SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{"agent", gate.RecordFilter{Agent: "a"}, "SEARCH e USING INDEX evaluations_agent (agent=?)"},
		{"agent and time", gate.RecordFilter{Agent: "a", Since: now}, "SEARCH e USING INDEX evaluations_agent (agent=? AND rowid>?)"},
		{"session", gate.RecordFilter{Session: "s"}, "SEARCH e USING INDEX evaluations_session (session=?)"},
		{"block", gate.RecordFilter{Decision: gate.Block}, "SEARCH e USING INDEX evaluations_decision (decision=?)"},
		{"allow", gate.RecordFilter{Decision: gate.Allow}, "SCAN e"},
		{"event", gate.RecordFilter{Event: gate.Stop}, "SCAN e"},
		{"hook", gate.RecordFilter{Hook: "h"}, "SEARCH h USING COVERING INDEX evaluation_hooks_hook (hook=?)"},
		{"hook and the rest", gate.RecordFilter{Hook: "h", Agent: "a", Session: "s", Decision: gate.Block, Until: now}, "SEARCH h USING COVERING INDEX evaluation_hooks_hook (hook=? AND seq<?)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			query, args, err := selectPage(c.filter)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := s.reads.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+query, args...)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var plan []string
			for rows.Next() {
				var id, parent, unused int
				var step string
				if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
					t.Fatal(err)
				}
				plan = append(plan, step)
			}
			text := strings.Join(plan, "; ")
			if !strings.Contains(text, c.want) || strings.Contains(text, "TEMP B-TREE") {
				t.Errorf("plan is %q, want %q and no sorting", text, c.want)
			}
		})
	}
}

// TestSameNanosecond: what moves on to the next free place keeps its own time.
func TestSameNanosecond(t *testing.T) {
	s := openForTest(t, Options{})
	want := storetest.Record(0).Time
	for n := range 3 {
		r := storetest.Record(n)
		r.Time = want
		if err := s.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Record(t.Context(), r.EvaluationID); err != nil || !got.Time.Equal(want) {
			t.Errorf("record %d has time %v (%v), want %v", n, got.Time, err, want)
		}
	}
}
