package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

func sessions(t *testing.T, s gate.Store) {
	_, err := s.Session(t.Context(), "s1")
	wantCode(t, err, gate.CodeNotFound)
	_, err = s.Session(t.Context(), "")
	wantCode(t, err, gate.CodeNotFound)

	key := gate.LedgerKey{Agent: "builder", Session: "s1", SubAgent: "x"}
	for n := range 25 {
		wantNoError(t, s.Commit(t.Context(), rejection(key, gate.Counts{StopRejections: n}, n+1)))
	}
	commit(t, s, with(Record(30), func(r *gate.Record) { r.Agent = "idle" }))
	wantNoError(t, s.SetActive(t.Context(), "s1", "h", true, me))
	commit(t, s, with(Record(31), func(r *gate.Record) { r.Session = "s2" }))

	got, err := s.Session(t.Context(), "s1")
	wantNoError(t, err)
	want := []gate.AgentCounts{{Agent: "builder", SubAgent: "x", StopHookActive: true, StopRejectionCount: 25},
		{Agent: "idle"}, {Agent: "builder"}} // the suite's rejections are recorded without sub-agent
	if diff := cmp.Diff(want, got.Agents); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"h": true}, got.ActiveHooks); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	if len(got.Last) != 20 || got.Last[0].EvaluationID != ID(30) || got.Last[1].EvaluationID != ID(25) || got.Session != "s1" {
		t.Errorf("last are %v of %q", ids(got.Last), got.Session)
	}
	t.Run("known by an activation alone", func(t *testing.T) {
		wantNoError(t, s.SetActive(t.Context(), "s3", "h", false, me))
		if _, err := s.Session(t.Context(), "s3"); err != nil {
			t.Error(err)
		}
	})
}

// eraseSession leaves nothing of the session, and everything else.
func eraseSession(t *testing.T, s gate.Store) {
	for i, session := range []string{"s1", "s2", ""} {
		key := gate.IdempotencyKey{Credential: "c", Key: session}
		_, err := s.Reserve(t.Context(), gate.Request{Key: key, Body: [32]byte{}}, time.Minute)
		wantNoError(t, err)
		r := Full(i + 1)
		r.Session = session
		wantNoError(t, s.Commit(t.Context(), gate.Commit{Key: gate.LedgerKey{Agent: "builder", Session: session}, Idempotency: gate.Request{Key: key},
			Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return gate.Counts{StopRejections: 1}, r }}))
		if session != "" {
			wantNoError(t, s.SetActive(t.Context(), session, "h", true, me))
		}
	}
	wantNoError(t, s.EraseSession(t.Context(), "s1"))
	_, err := s.Session(t.Context(), "s1")
	wantCode(t, err, gate.CodeNotFound)
	_, err = s.Record(t.Context(), ID(1))
	wantCode(t, err, gate.CodeNotFound)
	if diff := cmp.Diff([]string{ID(3), ID(2)}, list(t, s, gate.RecordFilter{Hook: "judge"})); diff != "" {
		t.Errorf("records by hook (-want +got):\n%s", diff)
	}
	wantCounts(t, s, gate.LedgerKey{Agent: "builder", Session: "s1"}, gate.Counts{})
	wantCounts(t, s, gate.LedgerKey{Agent: "builder", Session: "s2"}, gate.Counts{StopRejections: 1})
	if held, err := s.Reserve(t.Context(), gate.Request{Key: gate.IdempotencyKey{Credential: "c", Key: "s1"}, Body: [32]byte{9}}, time.Minute); err != nil || held.Evaluation != "" {
		t.Errorf("the erased session's key still answers: %q, %v", held.Evaluation, err)
	}
	if held, err := s.Reserve(t.Context(), gate.Request{Key: gate.IdempotencyKey{Credential: "c", Key: "s2"}, Body: [32]byte{}}, time.Minute); err != nil || held.Evaluation != ID(2) {
		t.Errorf("another session's key: %q, %v; want %q", held.Evaluation, err, ID(2))
	}
	wantNoError(t, s.EraseSession(t.Context(), "s1"))
	wantNoError(t, s.EraseSession(t.Context(), ""))
	if diff := cmp.Diff([]string{ID(3), ID(2)}, list(t, s, gate.RecordFilter{})); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}
