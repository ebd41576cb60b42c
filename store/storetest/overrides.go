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

// overridesOfRevokedKey: with a key end the overrides that it has set, and no
// other's, also of one who is called the same.
func overridesOfRevokedKey(t *testing.T, s gate.Store) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	set := func(session string, by gate.Actor) {
		t.Helper()
		wantNoError(t, s.SetOverride(t.Context(), gate.Override{Session: session, Reason: "r", Agents: []string{"*"}, Since: now, Until: now.Add(time.Hour)}, by))
	}
	wantNoError(t, s.AddKey(t.Context(), gate.Key{ID: "id1", Name: "ops", Hash: [32]byte{1}, Scopes: []gate.Scope{gate.AdminScope}, Agents: []string{"*"}}, me))
	key, other := gate.Actor{Name: "ops", Credential: "key:id1"}, gate.Actor{Name: "ops", Credential: "oidc:ops"}
	set("s1", key)
	set("s2", other)
	set("s3", key)
	wantNoError(t, s.RemoveOverride(t.Context(), "s3", you))
	now = now.Add(time.Minute)
	set("s3", other) // in place of the key's
	wantNoError(t, s.RevokeKey(t.Context(), "ops", you))
	_, err := s.Override(t.Context(), "s1")
	wantCode(t, err, gate.CodeNotFound)
	for _, session := range []string{"s2", "s3"} {
		_, err := s.Override(t.Context(), session)
		wantNoError(t, err)
	}
	entries, _, err := s.Audit(t.Context(), gate.AuditFilter{Action: gate.OverrideRemoved})
	wantNoError(t, err)
	if len(entries) != 2 || entries[0].Session != "s1" || entries[0].By != you.Name || entries[0].Credential != you.Credential {
		t.Errorf("audit %+v", entries)
	}
}
