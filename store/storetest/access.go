package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stopgate/gate"
)

func keyOf(n byte, name string) gate.Key {
	return gate.Key{ID: "id" + string('a'+rune(n)), Name: name, Hash: [32]byte{n, 31: n}, Scopes: []gate.Scope{gate.EvaluateScope, gate.ReadScope},
		Agents: []string{"build-*", "test"}, Expires: time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()}
}

// keys: a name belongs to one key that lives; what was revoked stays to be
// looked up.
func keys(t *testing.T, s gate.Store) {
	list := func() []string {
		t.Helper()
		all, err := s.Keys(t.Context())
		wantNoError(t, err)
		names := []string{}
		for _, k := range all {
			names = append(names, k.ID+" "+k.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{}, list()); diff != "" {
		t.Errorf("keys of an empty store (-want +got):\n%s", diff)
	}
	_, err := s.Key(t.Context(), "ida")
	wantCode(t, err, gate.CodeNotFound)
	wantCode(t, s.RevokeKey(t.Context(), "ida", me), gate.CodeNotFound)
	wantNoError(t, s.KeyUsed(t.Context(), "ida", time.Now()))

	began := time.Now().Truncate(time.Millisecond)
	one := keyOf(0, "ci")
	wantNoError(t, s.AddKey(t.Context(), one, me))
	got, err := s.Key(t.Context(), one.ID)
	wantNoError(t, err)
	if got.Created.Before(began) || got.Created.After(time.Now()) {
		t.Errorf("created at %s", got.Created)
	}
	one.Created, one.CreatedBy = got.Created, "me"
	if diff := cmp.Diff(one, got); diff != "" {
		t.Errorf("key (-added +got):\n%s", diff)
	}
	wantCode(t, s.AddKey(t.Context(), keyOf(1, "ci"), me), gate.CodeConflict)
	wantCode(t, s.AddKey(t.Context(), keyOf(0, "other"), me), gate.CodeConflict)
	endless := keyOf(2, one.ID) // a name that is another's ID
	endless.Expires = time.Time{}
	wantNoError(t, s.AddKey(t.Context(), endless, me))
	if got, err := s.Key(t.Context(), endless.ID); err != nil || !got.Expires.IsZero() || !got.Revoked.IsZero() || !got.LastUsed.IsZero() {
		t.Errorf("endless key is %+v, %v", got, err)
	}

	t.Run("last use", func(t *testing.T) {
		at := time.Now().Add(time.Minute).Truncate(time.Millisecond).UTC()
		wantNoError(t, s.KeyUsed(t.Context(), one.ID, at))
		wantNoError(t, s.KeyUsed(t.Context(), one.ID, at.Add(-time.Minute)))
		if got, err := s.Key(t.Context(), one.ID); err != nil || !got.LastUsed.Equal(at) {
			t.Errorf("last used %s, %v; want %s", got.LastUsed, err, at)
		}
	})
	t.Run("revoke", func(t *testing.T) {
		wantNoError(t, s.RevokeKey(t.Context(), one.ID, you)) // by ID before the one of that name
		got, err := s.Key(t.Context(), one.ID)
		if err != nil || got.Revoked.Before(began) || got.Name != "ci" {
			t.Errorf("revoked key is %+v, %v", got, err)
		}
		wantCode(t, s.RevokeKey(t.Context(), "ci", you), gate.CodeNotFound)
		wantNoError(t, s.AddKey(t.Context(), keyOf(3, "ci"), me)) // its name is free again
		wantNoError(t, s.RevokeKey(t.Context(), "ci", you))
		if got, err := s.Key(t.Context(), keyOf(3, "").ID); err != nil || got.Revoked.IsZero() {
			t.Errorf("key revoked by name is %+v, %v", got, err)
		}
	})
	if diff := cmp.Diff([]string{"idd ci", "idc ida", "ida ci"}, list()); diff != "" {
		t.Errorf("keys, newest first (-want +got):\n%s", diff)
	}
	entries, _, err := s.Audit(t.Context(), gate.AuditFilter{})
	wantNoError(t, err)
	wantEntries(t, []gate.AuditEntry{
		{Action: gate.KeyRevoked, Kind: "key", Name: "ci", KeyID: "idd", By: "you"},
		{Action: gate.KeyCreated, Kind: "key", Name: "ci", KeyID: "idd", By: "me", Credential: "key:1", From: "192.0.2.1"},
		{Action: gate.KeyRevoked, Kind: "key", Name: "ci", KeyID: "ida", By: "you"},
		{Action: gate.KeyCreated, Kind: "key", Name: "ida", KeyID: "idc", By: "me", Credential: "key:1", From: "192.0.2.1"},
		{Action: gate.KeyCreated, Kind: "key", Name: "ci", KeyID: "ida", By: "me", Credential: "key:1", From: "192.0.2.1"},
	}, entries)
}

func wantEntries(t *testing.T, want, got []gate.AuditEntry) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(gate.AuditEntry{}, "Time"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
}

// audit: every change is there once, with who made it; what was refused is not.
func audit(t *testing.T, s gate.Store) {
	put := func(kind gate.SpecKind, by gate.Actor, ifMatch string) error {
		_, err := s.PutSpec(t.Context(), gate.StoredSpec{Kind: kind, Name: "a", Document: []byte(`{}`)}, by, ifMatch)
		return err
	}
	attached := gate.Attached(gate.ClaudeCode)
	wantNoError(t, put(gate.AgentSpec, me, ""))
	wantCode(t, put(gate.AgentSpec, you, `"x"`), gate.CodePreconditionFailed)
	wantNoError(t, put(gate.AgentSpec, you, "*"))
	wantNoError(t, put(attached, you, ""))
	wantNoError(t, s.DeleteSpec(t.Context(), gate.AgentSpec, "a", me, ""))
	wantCode(t, s.DeleteSpec(t.Context(), gate.AgentSpec, "a", me, ""), gate.CodeNotFound)
	wantNoError(t, put(gate.AgentSpec, you, ""))
	wantNoError(t, s.SetActive(t.Context(), "t1", "h", true, me))
	wantNoError(t, s.SetActive(t.Context(), "t1", "h", false, you))
	want := []gate.AuditEntry{
		{Action: gate.HookDeactivated, Kind: "activation", Name: "h", Session: "t1", By: "you"},
		{Action: gate.HookActivated, Kind: "activation", Name: "h", Session: "t1", By: "me", Credential: "key:1", From: "192.0.2.1"},
		{Action: gate.SpecPut, Kind: "agent", Name: "a", After: 4, By: "you"},
		{Action: gate.SpecDeleted, Kind: "agent", Name: "a", Before: 2, After: 3, By: "me", Credential: "key:1", From: "192.0.2.1"},
		{Action: gate.SpecPut, Kind: string(attached), Name: "a", After: 1, By: "you"},
		{Action: gate.SpecPut, Kind: "agent", Name: "a", Before: 1, After: 2, By: "you"},
		{Action: gate.SpecPut, Kind: "agent", Name: "a", After: 1, By: "me", Credential: "key:1", From: "192.0.2.1"},
	}
	all, next, err := s.Audit(t.Context(), gate.AuditFilter{})
	wantNoError(t, err)
	wantEntries(t, want, all)
	if next != "" || len(all) == 0 || time.Since(all[0].Time) > time.Minute {
		t.Fatalf("next is %q, the newest of %s", next, all[0].Time)
	}
	pick := func(keep func(gate.AuditEntry) bool) (list []gate.AuditEntry) {
		for _, e := range want {
			if keep(e) {
				list = append(list, e)
			}
		}
		return list
	}
	for _, c := range []struct {
		name   string
		filter gate.AuditFilter
		want   []gate.AuditEntry
	}{
		{"action", gate.AuditFilter{Action: gate.SpecDeleted}, want[3:4]},
		{"kind", gate.AuditFilter{Kind: "activation"}, want[:2]},
		{"kind and name", gate.AuditFilter{Kind: string(attached), Name: "a"}, want[4:5]},
		{"by", gate.AuditFilter{By: "me"}, pick(func(e gate.AuditEntry) bool { return e.By == "me" })},
		{"until the first", gate.AuditFilter{Until: all[6].Time}, nil},
		{"since the first", gate.AuditFilter{Since: all[6].Time}, want},
		{"since later", gate.AuditFilter{Since: time.Now().Add(time.Hour)}, nil},
		{"no SQL", gate.AuditFilter{By: "' OR 1=1 --"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := s.Audit(t.Context(), c.filter)
			wantNoError(t, err)
			wantEntries(t, c.want, got)
			var pages []gate.AuditEntry
			for c.filter.Limit = 2; ; {
				page, next, err := s.Audit(t.Context(), c.filter)
				wantNoError(t, err)
				if len(page) > 2 || len(page) == 0 && next != "" {
					t.Fatalf("a page has %d entries, next %q", len(page), next)
				}
				pages = append(pages, page...)
				if c.filter.Cursor = next; next == "" {
					break
				}
			}
			wantEntries(t, c.want, pages)
		})
	}
	wantNoError(t, s.EraseSession(t.Context(), "t1"))
	for _, e := range want[:2] {
		e.Session = ""
		got, _, err := s.Audit(t.Context(), gate.AuditFilter{Action: e.Action})
		wantNoError(t, err)
		wantEntries(t, []gate.AuditEntry{e}, got)
	}
	_, ours, err := s.Records(t.Context(), gate.RecordFilter{})
	wantNoError(t, err)
	for _, f := range []gate.AuditFilter{{Limit: -1}, {Limit: 1001}, {Cursor: "x"}, {Cursor: ours + "AAAA"}} {
		_, _, err := s.Audit(t.Context(), f)
		wantCode(t, err, gate.CodeValidation)
	}
}

// claims: a session belongs to the agents of its events, and to those it was
// claimed for; it cannot be claimed against the will of those it belongs to.
func claims(t *testing.T, s gate.Store) {
	want := func(session string, agents ...string) {
		t.Helper()
		got, err := s.SessionAgents(t.Context(), session)
		wantNoError(t, err)
		if diff := cmp.Diff(agents, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
			t.Errorf("agents of %q (-want +got):\n%s", session, diff)
		}
	}
	only := func(agents ...string) func(string) bool {
		return func(a string) bool { return gate.Caller{Agents: agents}.Owns(a) }
	}
	want("s1")
	wantNoError(t, s.ClaimSession(t.Context(), "s1", "a", 0, only("a")))
	wantNoError(t, s.ClaimSession(t.Context(), "s1", "a", 0, only("a")))
	want("s1", "a")
	wantCode(t, s.ClaimSession(t.Context(), "s1", "b", 0, only("b")), gate.CodeNotFound)
	want("s1", "a")
	wantNoError(t, s.ClaimSession(t.Context(), "s1", "b", 0, only("*")))
	want("s1", "a", "b")
	want("s2")
	wantCode(t, s.ClaimSession(t.Context(), "", "a", 0, only("*")), gate.CodeValidation)
	wantNoError(t, s.ClaimSession(t.Context(), "s3", "a", 0, only("a")))
	wantNoError(t, s.ClaimSession(t.Context(), "s3", gate.Nobody, 0, only("*")))
	want("s3", gate.Nobody, "a")
	wantCode(t, s.ClaimSession(t.Context(), "s3", "a", 0, only("a*")), gate.CodeNotFound)

	for n, agent := range []string{"x", "y", "x"} {
		commit(t, s, with(Record(n+1), func(r *gate.Record) { r.Session, r.Agent = "s4", agent }))
	}
	commit(t, s, with(Record(9), func(r *gate.Record) { r.Session = "" }))
	want("s4", "x", "y")
	want("")
	wantCode(t, s.ClaimSession(t.Context(), "s4", "x", 0, only("x")), gate.CodeNotFound)
	wantNoError(t, s.EraseSession(t.Context(), "s4"))
	want("s4")
	wantNoError(t, s.ClaimSession(t.Context(), "s4", "z", 0, only("z")))

	seen, err := s.Erasure(t.Context(), "s5")
	wantNoError(t, err)
	wantNoError(t, s.ClaimSession(t.Context(), "s5", "a", seen, only("a")))
	wantNoError(t, s.EraseSession(t.Context(), "s5"))
	if err := s.ClaimSession(t.Context(), "s5", "a", seen, only("a")); !errors.Is(err, gate.ErrErased) {
		t.Errorf("a claim from before the erasure: %v", err)
	}
	want("s5")
	seen, err = s.Erasure(t.Context(), "s5")
	wantNoError(t, err)
	wantNoError(t, s.ClaimSession(t.Context(), "s5", "b", seen, only("b")))
	want("s5", "b")

	t.Run("one of many at once", func(t *testing.T) {
		var won atomic.Int32
		var running sync.WaitGroup
		for n := range 8 {
			agent := string('a' + rune(n))
			running.Go(func() {
				if s.ClaimSession(t.Context(), "race", agent, 0, only(agent)) == nil {
					won.Add(1)
				}
			})
		}
		running.Wait()
		agents, err := s.SessionAgents(t.Context(), "race")
		if err != nil || won.Load() != 1 || len(agents) != 1 {
			t.Errorf("%d have it, it belongs to %q, %v; want one", won.Load(), agents, err)
		}
	})
}
