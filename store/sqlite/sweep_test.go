package sqlite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
	"stopgate/store/storetest"
)

// TestRetentionOfSessions: whose a session was, and its counts, go with the last
// record of it, since the names of sessions and agents are not kept for ever; while
// its conversation is kept it stays known who may use that.
func TestRetentionOfSessions(t *testing.T) {
	kept := map[string]bool{"conversation": true}
	conversation := func(_ context.Context, session string) (bool, error) { return kept[session], nil }
	began := storetest.Record(0).Time
	clock := &clock{t: began}
	s := openForTest(t, Options{Lock: true, Retention: 72 * time.Hour, Conversation: conversation, Now: clock.now})
	for n, session := range []string{"gone", "conversation", "young"} {
		r := storetest.Full(n + 1)
		r.Session, r.Time = session, began
		if session == "young" {
			r.Time = began.Add(99 * time.Hour)
		}
		err := s.Commit(t.Context(), gate.Commit{Key: gate.LedgerKey{Session: session, Agent: r.Agent},
			Settle: func(gate.Counts) (gate.Counts, gate.Record) { return gate.Counts{StopRejections: 1}, r }})
		if err != nil {
			t.Fatal(err)
		}
	}
	mine := func(string) bool { return true }
	for _, session := range []string{"uploaded", "conversation"} {
		if err := s.ClaimSession(t.Context(), session, gate.Nobody, 0, mine); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.EraseSession(t.Context(), "erased"); err != nil {
		t.Fatal(err)
	}
	owners := func() (got []string) {
		t.Helper()
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, session := range []string{"gone", "conversation", "young", "uploaded"} {
			agents, err := s.SessionAgents(t.Context(), session)
			counts, _, failed := s.Counts(t.Context(), gate.LedgerKey{Session: session, Agent: "builder"})
			if err := errors.Join(err, failed); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %q %d", session, agents, counts.StopRejections))
		}
		return got
	}
	if got := owners(); got[0] != `gone ["builder"] 1` || got[3] != `uploaded [""] 0` {
		t.Fatalf("before their time: %q", got)
	}
	clock.add(100 * time.Hour)
	if diff := cmp.Diff([]string{`gone [] 0`, `conversation ["" "builder"] 1`, `young ["builder"] 1`, `uploaded [] 0`}, owners()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last, err := s.Erasure(t.Context(), "erased"); err != nil || last != gate.NeverErased {
		t.Errorf("an erasure of long ago is remembered: %d, %v", last, err)
	}
	kept = nil
	if diff := cmp.Diff(`conversation ["" "builder"] 1`, owners()[1]); diff != "" { // it was looked at just now
		t.Errorf("(-want +got):\n%s", diff)
	}
	clock.add(71 * time.Hour) // of "young" 170 have gone by
	owners()
	clock.add(2 * time.Hour)
	if diff := cmp.Diff(`conversation [] 0`, owners()[1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
