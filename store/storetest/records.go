package storetest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

func records(t *testing.T, s gate.Store) {
	for name, r := range map[string]gate.Record{
		"short":              Record(1),
		"full":               Full(2),
		"payload not JSON":   with(Record(3), func(r *gate.Record) { r.Payload = gate.Payload("\x00\xff{") }),
		"payload with space": with(Record(4), func(r *gate.Record) { r.Payload = gate.Payload("{ \"a\" : 1 }\n") }),
		"no payload":         with(Record(5), func(r *gate.Record) { r.Payload = nil }),
		"long payload":       with(Record(6), func(r *gate.Record) { r.Payload = gate.Payload(strings.Repeat("long \x01 ", 1<<20)) }),
		"no session":         with(Record(7), func(r *gate.Record) { r.Session = "" }),
		"a hook twice":       with(Full(8), func(r *gate.Record) { r.Hooks[1].Name = r.Hooks[0].Name }),
	} {
		t.Run(name, func(t *testing.T) {
			commit(t, s, r)
			wantRecord(t, s, r)
		})
	}
	t.Run("summary", func(t *testing.T) {
		items, _, err := s.Records(t.Context(), gate.RecordFilter{Hook: "judge", Limit: 1, Until: Record(3).Time})
		wantNoError(t, err)
		want := Full(2).Summary()
		want.Time = items[0].Time
		if diff := cmp.Diff([]gate.RecordSummary{want}, items); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	})
	t.Run("not known", func(t *testing.T) {
		_, err := s.Record(t.Context(), ID(99))
		wantCode(t, err, gate.CodeNotFound)
		_, err = s.Record(t.Context(), "' OR 1=1 --")
		wantCode(t, err, gate.CodeNotFound)
	})
	t.Run("no id", func(t *testing.T) {
		if err := s.Commit(t.Context(), plain(gate.Record{Time: began})); err == nil {
			t.Error("a record without id was stored")
		}
	})
}

func with(r gate.Record, change func(*gate.Record)) gate.Record {
	change(&r)
	return r
}

// filters: each picks what it says, alone and with others.
func filters(t *testing.T, s gate.Store) {
	for n, change := range map[int]func(*gate.Record){
		1: func(r *gate.Record) {},
		2: func(r *gate.Record) { r.Agent, r.Session, r.DryRun = "other", "s4", true },
		3: func(r *gate.Record) { r.Session, r.DryRun = "s2", true },
		4: func(r *gate.Record) { r.Session = "" },
		5: func(r *gate.Record) { r.Event, r.Outcome, r.Hooks = gate.Stop, gate.Block, Full(5).Hooks },
		6: func(r *gate.Record) { r.Outcome, r.Event = gate.Ask, gate.PreToolUse },
		7: func(r *gate.Record) { r.Hooks, r.Agent, r.Session = Full(7).Hooks[:1], "other", "s4" },
	} {
		commit(t, s, with(Record(n), change))
	}
	at := func(n int) time.Time { return Record(n).Time }
	for _, c := range []struct {
		name   string
		filter gate.RecordFilter
		want   []int
	}{
		{"all, newest first", gate.RecordFilter{}, []int{7, 6, 5, 4, 3, 2, 1}},
		{"agent", gate.RecordFilter{Agent: "other"}, []int{7, 2}},
		{"session", gate.RecordFilter{Session: "s2"}, []int{3}},
		{"event", gate.RecordFilter{Event: gate.Stop}, []int{5}},
		{"block", gate.RecordFilter{Decision: gate.Block}, []int{5}},
		{"ask", gate.RecordFilter{Decision: gate.Ask}, []int{6}},
		{"allow", gate.RecordFilter{Decision: gate.Allow}, []int{7, 4, 3, 2, 1}},
		{"hook", gate.RecordFilter{Hook: "tests"}, []int{7, 5}},
		{"hook and agent", gate.RecordFilter{Hook: "tests", Agent: "other"}, []int{7}},
		{"hook and time", gate.RecordFilter{Hook: "tests", Until: at(7)}, []int{5}},
		{"hook that is part of a name", gate.RecordFilter{Hook: "test"}, []int{}},
		{"since is in", gate.RecordFilter{Since: at(6)}, []int{7, 6}},
		{"until is out", gate.RecordFilter{Until: at(3)}, []int{2, 1}},
		{"both", gate.RecordFilter{Since: at(3), Until: at(5)}, []int{4, 3}},
		{"in another zone", gate.RecordFilter{Since: at(6).In(time.FixedZone("x", 3600))}, []int{7, 6}},
		{"everything at once", gate.RecordFilter{Agent: "builder", Session: "s1", Event: gate.Stop, Decision: gate.Block, Hook: "judge", Since: at(1), Until: at(9)}, []int{5}},
		{"times beyond every clock", gate.RecordFilter{Since: time.Date(1, 2, 3, 0, 0, 0, 0, time.UTC), Until: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
			[]int{7, 6, 5, 4, 3, 2, 1}},
		{"since beyond every clock", gate.RecordFilter{Since: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}, []int{}},
		{"dry runs", gate.RecordFilter{DryRun: new(true)}, []int{3, 2}},
		{"no dry runs", gate.RecordFilter{DryRun: new(false)}, []int{7, 6, 5, 4, 1}},
		{"no dry runs of an agent", gate.RecordFilter{DryRun: new(false), Agent: "other"}, []int{7}},
		{"nothing", gate.RecordFilter{Agent: "nobody"}, []int{}},
		{"agents by pattern", gate.RecordFilter{Agents: []string{"o*r"}}, []int{7, 2}},
		{"agents by two patterns", gate.RecordFilter{Agents: []string{"nobody", "othe?", "builder"}, Session: "s4"}, []int{7, 2}},
		{"agents, and one of them", gate.RecordFilter{Agents: []string{"b*"}, Agent: "other"}, []int{}},
		{"every agent", gate.RecordFilter{Agents: []string{"x", "*"}, DryRun: new(true)}, []int{3, 2}},
		{"agents by name", gate.RecordFilter{Agents: []string{"other"}, Hook: "tests"}, []int{7}},
		{"agents by pattern and name", gate.RecordFilter{Agents: []string{"b?", "other"}}, []int{7, 2}},
		{"a pattern is a whole name", gate.RecordFilter{Agents: []string{"othe", "uther", "OTHER", "%", "o_her", "[b]uilder", "b[u]*"}}, []int{}},
		{"no agents", gate.RecordFilter{Agents: []string{}}, []int{}},
		{"no SQL", gate.RecordFilter{Agent: "' OR 1=1 --"}, []int{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := []string{}
			for _, n := range c.want {
				want = append(want, ID(n))
			}
			for _, limit := range []int{0, 1, 2} {
				c.filter.Limit = limit
				if diff := cmp.Diff(want, list(t, s, c.filter)); diff != "" {
					t.Errorf("limit %d (-want +got):\n%s", limit, diff)
				}
			}
		})
	}
}

// cursors: pages join up whatever is committed between them.
func cursors(t *testing.T, s gate.Store) {
	const same = 130 // records of one moment
	for n := range same {
		commit(t, s, with(Record(n), func(r *gate.Record) { r.Time = began }))
	}
	t.Run("ties are stable and keep their time", func(t *testing.T) {
		first, second := list(t, s, gate.RecordFilter{Limit: 7}), list(t, s, gate.RecordFilter{Limit: 1000})
		if diff := cmp.Diff(first, second); diff != "" || len(first) != same {
			t.Errorf("%d ids, want %d; (-pages of 7 +pages of 1000):\n%s", len(first), same, diff)
		}
		wantRecord(t, s, with(Record(same-1), func(r *gate.Record) { r.Time = began }))
	})
	t.Run("newer records do not shift the pages", func(t *testing.T) {
		items, next, err := s.Records(t.Context(), gate.RecordFilter{Limit: 100})
		wantNoError(t, err)
		commit(t, s, Record(same+1))
		rest, end, err := s.Records(t.Context(), gate.RecordFilter{Limit: 100, Cursor: next})
		wantNoError(t, err)
		if len(items)+len(rest) != same || end != "" {
			t.Errorf("%d and %d records, next %q; want %d in all and no more", len(items), len(rest), end, same)
		}
	})
	t.Run("limits", func(t *testing.T) {
		items, next, err := s.Records(t.Context(), gate.RecordFilter{})
		wantNoError(t, err)
		if len(items) != 100 || next == "" {
			t.Errorf("default page has %d records, next %q; want 100 and more", len(items), next)
		}
		for _, limit := range []int{-1, 1001} {
			_, _, err := s.Records(t.Context(), gate.RecordFilter{Limit: limit})
			wantCode(t, err, gate.CodeValidation)
		}
	})
	t.Run("a full last page ends", func(t *testing.T) {
		_, next, err := s.Records(t.Context(), gate.RecordFilter{Limit: same + 1})
		wantNoError(t, err)
		if next != "" {
			t.Errorf("next is %q after the last record", next)
		}
	})
	t.Run("not ours", func(t *testing.T) {
		_, ours, err := s.Records(t.Context(), gate.RecordFilter{Limit: 1})
		wantNoError(t, err)
		turned := []byte(ours)
		turned[0] ^= 1
		for _, c := range []string{"x", "1", ID(1), string(turned), ours + "A", ours[1:], "' OR 1=1",
			base64.RawURLEncoding.EncodeToString([]byte("0123456789ab")), base64.StdEncoding.EncodeToString([]byte("0123456789ab"))} {
			_, _, err := s.Records(t.Context(), gate.RecordFilter{Cursor: c})
			wantCode(t, err, gate.CodeValidation)
		}
	})
	t.Run("pages are bounded in bytes", func(t *testing.T) {
		long := strings.Repeat("x", gate.PageBytes/4)
		want := []string{}
		for n := 1; n <= 9; n++ {
			size := 1
			if n == 5 {
				size = 5 // more than a page, and alone on one
			}
			commit(t, s, with(Record(same+1+n), func(r *gate.Record) {
				r.Agent = "long"
				if n%2 == 0 { // whatever it is that is long
					r.Session = strings.Repeat(long, size)
				} else {
					r.Tool = strings.Repeat(long, size)
				}
			}))
			want = append([]string{ID(same + 1 + n)}, want...)
		}
		got := []string{}
		for cursor := ""; ; {
			items, next, err := s.Records(t.Context(), gate.RecordFilter{Agent: "long", Limit: 1000, Cursor: cursor})
			wantNoError(t, err)
			bytes := 0
			for _, i := range items {
				bytes += len(i.Tool) + len(i.Session)
			}
			if len(items) == 0 || len(items) > 1 && bytes > gate.PageBytes {
				t.Fatalf("a page has %d records of %d bytes", len(items), bytes)
			}
			got = append(got, ids(items)...)
			if cursor = next; next == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("all pages (-want +got):\n%s", diff)
		}
	})
}

// hostileValues: what a caller may send comes back as it was, and stays apart
// from what only looks like it.
func hostileValues(t *testing.T, s gate.Store) {
	for i, name := range []string{"a\x00b", "a", "a\x00", "\xff\xfe", "ü", "u\u0308", "' OR '1'='1", "%", "_", "A", "\n", "1e3", strings.Repeat("x", 1<<20)} {
		t.Run(fmt.Sprintf("%.10q", name), func(t *testing.T) {
			key := gate.LedgerKey{Agent: name, Session: name, SubAgent: name}
			wantNoError(t, s.Commit(t.Context(), rejection(key, gate.Counts{}, i+1)))
			wantCounts(t, s, key, gate.Counts{StopRejections: 1})
			if diff := cmp.Diff([]string{ID(i + 1)}, list(t, s, gate.RecordFilter{Agent: name, Session: name})); diff != "" {
				t.Errorf("list (-want +got):\n%s", diff)
			}
			r, err := s.Record(t.Context(), ID(i+1))
			wantNoError(t, err)
			if r.Agent != name || r.Session != name {
				t.Errorf("record is of %.20q in %.20q", r.Agent, r.Session)
			}
			wantNoError(t, s.SetActive(t.Context(), name, name, true, gate.Actor{Name: name, Credential: name, Address: name}))
			state, err := s.Session(t.Context(), name)
			wantNoError(t, err)
			if !state.ActiveHooks[name] || len(state.ActiveHooks) != 1 || len(state.Agents) == 0 || state.Agents[0].SubAgent != name {
				t.Errorf("session state is %.200q", fmt.Sprint(state))
			}
			reserved, err := s.Reserve(t.Context(), gate.Request{Key: gate.IdempotencyKey{Credential: name, Key: name}, Body: [32]byte{}}, time.Minute)
			if err != nil || reserved.Evaluation != "" {
				t.Errorf("reserve: %q, %v", reserved.Evaluation, err)
			}
		})
	}
	t.Run("in look-ups and specs", func(t *testing.T) {
		for _, name := range []string{"a\x00b", "\xff\xfe", "' OR '1'='1", strings.Repeat("x", 1<<20)} {
			_, err := s.Record(t.Context(), name)
			wantCode(t, err, gate.CodeNotFound)
			for _, f := range []gate.RecordFilter{{Event: gate.EventName(name)}, {Decision: gate.Outcome(name)}, {Hook: name}} {
				if found := list(t, s, f); len(found) != 0 {
					t.Errorf("%.20q finds %v", name, found)
				}
			}
			_, err = s.Spec(t.Context(), gate.SpecKind(name), name)
			wantCode(t, err, gate.CodeNotFound)
			put, err := s.PutSpec(t.Context(), gate.StoredSpec{Kind: gate.HookSpec, Name: name, Document: []byte(`{"a":"\u0000"}`)}, gate.Actor{Name: name, Credential: name, Address: name}, "")
			wantNoError(t, err)
			got, err := s.Spec(t.Context(), gate.HookSpec, name)
			wantNoError(t, err)
			if diff := cmp.Diff(put, got); diff != "" {
				t.Errorf("spec %.20q (-put +got):\n%s", name, diff)
			}
			_, err = s.PutSpec(t.Context(), gate.StoredSpec{Kind: gate.HookSpec, Name: name, Document: []byte(`{}`)}, me, name)
			wantCode(t, err, gate.CodePreconditionFailed)
		}
	})
	t.Run("patterns of agents", func(t *testing.T) {
		for pattern, want := range map[string][]string{"?": {ID(11), ID(10), ID(9), ID(8), ID(5), ID(2)}, "u?": {ID(6)}, "' OR*": {ID(7)}, "zz*": {}} {
			if diff := cmp.Diff(want, list(t, s, gate.RecordFilter{Agents: []string{pattern}})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", pattern, diff)
			}
		}
	})
	t.Run("credential and key do not run together", func(t *testing.T) {
		for _, k := range []gate.IdempotencyKey{{Credential: "ab", Key: "c"}, {Credential: "a", Key: "bc"}, {Key: "abc"}, {Credential: "abc"}} {
			if _, err := s.Reserve(t.Context(), gate.Request{Key: k, Body: [32]byte{}}, time.Minute); err != nil {
				t.Errorf("reserve %+v: %v", k, err)
			}
		}
	})
}
