package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

func overrides(t *testing.T, s gate.Store) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	given := func(session, reason string, lasts time.Duration) gate.Override {
		return gate.Override{Session: session, Reason: reason, By: "me", Agents: []string{"a\x00*", "b"}, Since: now, Until: now.Add(lasts)}
	}
	want := func(o gate.Override) {
		t.Helper()
		got, err := s.Override(t.Context(), o.Session)
		wantNoError(t, err)
		if diff := cmp.Diff(o, got); diff != "" {
			t.Errorf("override (-want +got):\n%s", diff)
		}
	}
	none := func(session string) {
		t.Helper()
		_, err := s.Override(t.Context(), session)
		wantCode(t, err, gate.CodeNotFound)
	}
	none("s1")
	wantCode(t, s.RemoveOverride(t.Context(), "s1", you), gate.CodeNotFound)
	wantCode(t, s.SetOverride(t.Context(), given("s1", "", time.Hour), me), gate.CodeValidation)
	wantCode(t, s.SetOverride(t.Context(), given("", "r", time.Hour), me), gate.CodeValidation)

	wantNoError(t, s.SetOverride(t.Context(), given("s1", "one", time.Hour), me))
	wantNoError(t, s.SetOverride(t.Context(), given("s2", "\xff'\"", time.Hour), me))
	want(given("s1", "one", time.Hour))
	want(given("s2", "\xff'\"", time.Hour))
	wantNoError(t, s.SetOverride(t.Context(), given("s1", "two", time.Minute), me))
	want(given("s1", "two", time.Minute))
	wantNoError(t, s.RemoveOverride(t.Context(), "s1", you))
	none("s1")
	wantCode(t, s.RemoveOverride(t.Context(), "s1", you), gate.CodeNotFound)
	want(given("s2", "\xff'\"", time.Hour))
	wantNoError(t, s.SetOverride(t.Context(), given("s3", "over", -time.Millisecond), me))
	wantCode(t, s.RemoveOverride(t.Context(), "s3", you), gate.CodeNotFound)

	entries, _, err := s.Audit(t.Context(), gate.AuditFilter{Kind: "override"})
	wantNoError(t, err)
	set := func(session, reason string, lasts time.Duration) gate.AuditEntry {
		return gate.AuditEntry{Action: gate.OverrideSet, Kind: "override", Session: session, Reason: reason, Until: now.Add(lasts),
			By: "me", Credential: "key:1", From: "192.0.2.1"}
	}
	audited := []gate.AuditEntry{
		set("s3", "over", -time.Millisecond),
		{Action: gate.OverrideRemoved, Kind: "override", Session: "s1", By: "you"},
		set("s1", "two", time.Minute), set("s2", "\xff'\"", time.Hour), set("s1", "one", time.Hour),
	}
	wantEntries(t, audited, entries)

	wantNoError(t, s.EraseSession(t.Context(), "s2"))
	none("s2")
}
