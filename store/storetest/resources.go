package storetest

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stopgate/gate"
)

// Two who change things.
var (
	me  = gate.Actor{Name: "me", Credential: "key:1", Address: "192.0.2.1"}
	you = gate.Actor{Name: "you"}
)

// specs: versions, tags and If-Match (spec/azure.md 13).
func specs(t *testing.T, s gate.Store) {
	put := func(document, ifMatch string) (gate.StoredSpec, error) {
		return s.PutSpec(t.Context(), gate.StoredSpec{Kind: gate.AgentSpec, Name: "a", Document: []byte(document)}, me, ifMatch)
	}
	current := func() string {
		got, err := s.Spec(t.Context(), gate.AgentSpec, "a")
		wantNoError(t, err)
		return got.ETag
	}
	_, err := put(`{}`, "*")
	wantCode(t, err, gate.CodePreconditionFailed)
	_, err = put(`{}`, `"1"`)
	wantCode(t, err, gate.CodePreconditionFailed)
	_, err = s.Spec(t.Context(), gate.AgentSpec, "a")
	wantCode(t, err, gate.CodeNotFound)
	wantCode(t, s.DeleteSpec(t.Context(), gate.AgentSpec, "a", me, ""), gate.CodeNotFound)

	one, err := put(`{"n": 1}`, "")
	wantNoError(t, err)
	if one.Version != 1 || one.By != "me" || one.Deleted || one.At == 0 || string(one.Document) != `{"n": 1}` {
		t.Errorf("first version is %+v", one)
	}
	got, err := s.Spec(t.Context(), gate.AgentSpec, "a")
	wantNoError(t, err)
	if diff := cmp.Diff(one, got); diff != "" {
		t.Errorf("what PutSpec answered is not what is stored (-put +got):\n%s", diff)
	}
	_, err = s.Spec(t.Context(), gate.HookSpec, "a")
	wantCode(t, err, gate.CodeNotFound)

	two, err := put(`{"n": 1}`, one.ETag)
	wantNoError(t, err)
	_, err = put(`{"n": 3}`, one.ETag)
	wantCode(t, err, gate.CodePreconditionFailed)
	three, err := put(`{"n": 3}`, "*")
	wantNoError(t, err)
	wantCode(t, s.DeleteSpec(t.Context(), gate.AgentSpec, "a", you, two.ETag), gate.CodePreconditionFailed)
	if current() != three.ETag {
		t.Error("a refused write changed the spec")
	}
	wantNoError(t, s.DeleteSpec(t.Context(), gate.AgentSpec, "a", you, three.ETag))
	_, err = s.Spec(t.Context(), gate.AgentSpec, "a")
	wantCode(t, err, gate.CodeNotFound)
	_, err = put(`{}`, "*")
	wantCode(t, err, gate.CodePreconditionFailed)
	_, err = put(`{}`, three.ETag)
	wantCode(t, err, gate.CodePreconditionFailed)
	wantCode(t, s.DeleteSpec(t.Context(), gate.AgentSpec, "a", you, "*"), gate.CodeNotFound)
	five, err := put(`{"n": 1}`, "")
	wantNoError(t, err)
	if five.Version != 5 {
		t.Errorf("version after a deletion is %d, want 5", five.Version)
	}
	wantNoError(t, s.DeleteSpec(t.Context(), gate.AgentSpec, "a", you, "*"))

	history, err := s.SpecHistory(t.Context(), gate.AgentSpec, "a")
	wantNoError(t, err)
	tags := map[string]bool{}
	for i, v := range history {
		if v.Version != 6-i {
			t.Errorf("history[%d] is version %d", i, v.Version)
		}
		if len(v.ETag) < 3 || !strings.HasPrefix(v.ETag, `"`) || !strings.HasSuffix(v.ETag, `"`) || tags[v.ETag] {
			t.Errorf("ETag %s is not quoted, or not new", v.ETag)
		}
		tags[v.ETag] = true
	}
	if len(history) != 6 || !history[0].Deleted || history[0].By != "you" || history[1].Deleted || !history[2].Deleted {
		t.Errorf("history is %+v", history)
	}
	none, err := s.SpecHistory(t.Context(), gate.AgentSpec, "b")
	if err != nil || len(none) != 0 {
		t.Errorf("history of an unknown name is %v, %v", none, err)
	}
}

// specConflicts: of many writers who have seen one version, one writes the next
// (spec/azure.md 13); and versions stay a sequence without gaps.
func specConflicts(t *testing.T, s gate.Store) {
	spec := gate.StoredSpec{Kind: gate.AgentSpec, Name: "a", Document: []byte(`{}`)}
	first, err := s.PutSpec(t.Context(), spec, me, "")
	wantNoError(t, err)
	var stored, refused atomic.Int32
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			switch _, err := s.PutSpec(t.Context(), spec, me, first.ETag); {
			case err == nil:
				stored.Add(1)
			case gate.CodeOf(err) == gate.CodePreconditionFailed:
				refused.Add(1)
			}
		})
	}
	running.Wait()
	if stored.Load() != 1 || refused.Load() != 15 {
		t.Errorf("%d were stored, %d refused; want 1 and 15", stored.Load(), refused.Load())
	}
	for range 8 {
		running.Go(func() {
			_, err := s.PutSpec(t.Context(), spec, me, "")
			if err != nil {
				t.Errorf("put: %v", err)
			}
		})
	}
	running.Wait()
	history, err := s.SpecHistory(t.Context(), gate.AgentSpec, "a")
	wantNoError(t, err)
	for i, v := range history {
		if v.Version != len(history)-i {
			t.Errorf("history[%d] is version %d", i, v.Version)
		}
	}
	if len(history) != 10 {
		t.Errorf("%d versions, want 10", len(history))
	}
}

// specOrder: the order of first creation is the firing order of agent-level
// hooks (spec/azure.md 39).
func specOrder(t *testing.T, s gate.Store) {
	put := func(kind gate.SpecKind, name string) {
		_, err := s.PutSpec(t.Context(), gate.StoredSpec{Kind: kind, Name: name, Document: []byte(`{}`)}, me, "")
		wantNoError(t, err)
	}
	want := func(names ...string) {
		t.Helper()
		all, err := s.CurrentSpecs(t.Context())
		wantNoError(t, err)
		got := []string{}
		for _, spec := range all {
			got = append(got, string(spec.Kind)+" "+spec.Name)
		}
		if diff := cmp.Diff(names, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	}
	want()
	put(gate.HookSpec, "z")
	put(gate.AgentSpec, "m")
	put(gate.HookSpec, "a")
	want("hook z", "agent m", "hook a")
	put(gate.HookSpec, "z")
	want("hook z", "agent m", "hook a")
	wantNoError(t, s.DeleteSpec(t.Context(), gate.HookSpec, "z", me, ""))
	want("agent m", "hook a")
	put(gate.HookSpec, "z")
	put(gate.HookSpec, "z")
	want("agent m", "hook a", "hook z")
}

// activations act at once, in their thread alone (spec/azure.md 12).
func activations(t *testing.T, s gate.Store) {
	want := func(session string, hooks map[string]bool) {
		t.Helper()
		got, err := s.Active(t.Context(), session)
		wantNoError(t, err)
		if diff := cmp.Diff(hooks, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("active in %s (-want +got):\n%s", session, diff)
		}
	}
	want("t1", nil)
	wantNoError(t, s.SetActive(t.Context(), "t1", "h1", true, me))
	wantNoError(t, s.SetActive(t.Context(), "t1", "h2", false, me))
	want("t1", map[string]bool{"h1": true, "h2": false})
	want("t2", nil)
	wantNoError(t, s.SetActive(t.Context(), "t1", "h1", false, you))
	wantNoError(t, s.SetActive(t.Context(), "t1", "h2", true, you))
	want("t1", map[string]bool{"h1": false, "h2": true})
}
