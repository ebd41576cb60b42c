package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// outboxOf is the store as an outbox, which every one of ours is.
func outboxOf(t testing.TB, s gate.Store) gate.Outbox {
	t.Helper()
	o, ok := s.(gate.Outbox)
	if !ok {
		t.Fatal("it has no outbox")
	}
	return o
}

var lease = gate.Lease{Holder: "me", Length: time.Minute}

// lacks are the records that a sink lacks, with their places.
func lacks(t testing.TB, s gate.Store, sink string, who gate.Lease) (list []string, places []int64) {
	t.Helper()
	list = []string{}
	wantNoError(t, outboxOf(t, s).Undelivered(t.Context(), sink, who, func(d gate.Delivery) bool {
		list, places = append(list, d.Record.EvaluationID), append(places, d.Place)
		return true
	}))
	return list, places
}

func keep(t testing.TB, s gate.Store, names ...string) {
	t.Helper()
	forgotten, err := outboxOf(t, s).KeepSinks(t.Context(), names)
	wantNoError(t, err)
	if len(forgotten) > 0 {
		t.Errorf("forgotten: %v", forgotten)
	}
}

// outbox: each sink gets each record that was committed since it was there, until
// it says that it has it.
func outbox(t *testing.T, s gate.Store) {
	o := outboxOf(t, s)
	want := func(sink string, n ...int) []int64 {
		t.Helper()
		all := []string{}
		for _, i := range n {
			all = append(all, ID(i))
		}
		got, places := lacks(t, s, sink, lease)
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("%s lacks (-want +got):\n%s", sink, diff)
		}
		return places
	}
	commit(t, s, Record(1)) // before there was a sink
	keep(t, s, "a")
	want("a")
	commit(t, s, Full(9)) // its time is later than that of the next: commits count
	commit(t, s, Record(2))
	keep(t, s, "a", "b")
	commit(t, s, Record(2+1))
	places := want("a", 9, 2, 3)
	want("b", 3)
	want("nobody")

	wantNoError(t, o.Delivered(t.Context(), "b", places)) // those are a's: b has confirmed nothing
	want("b", 3)
	wantNoError(t, o.Delivered(t.Context(), "a", places[:1]))
	wantNoError(t, o.Delivered(t.Context(), "a", places[:1])) // once more is as good
	want("a", 2, 3)
	states, err := o.SinkStates(t.Context())
	wantNoError(t, err)
	if diff := cmp.Diff([]gate.SinkState{{Name: "a", Pending: 2, Oldest: Record(2).Time}, {Name: "b", Pending: 1, Oldest: Record(3).Time}}, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}

	var d gate.Delivery
	wantNoError(t, o.Undelivered(t.Context(), "a", lease, func(seen gate.Delivery) bool { d = seen; return false }))
	if d.Place != places[1] || d.Record.EvaluationID != ID(2) || string(d.Record.Payload) != `{"n":2}` {
		t.Errorf("the first, whole, and no more: %+v", d)
	}
	wantNoError(t, o.Delivered(t.Context(), "a", places[1:]))
	want("a")
	commit(t, s, Record(4))
	if now := want("a", 4); len(now) == 1 && now[0] <= places[2] {
		t.Errorf("place %d was another's", now[0])
	}
	wantNoError(t, o.ReleaseSink(t.Context(), "a", lease.Holder))
}

// outboxAside: what is set aside for one sink is not handed to it until it is to be
// sent again, in its old place, and can be found.
func outboxAside(t *testing.T, s gate.Store) {
	o := outboxOf(t, s)
	keep(t, s, "a", "b")
	for n := range 3 {
		commit(t, s, Record(n))
	}
	want := func(sink string, n ...int) []int64 {
		t.Helper()
		all := []string{}
		for _, i := range n {
			all = append(all, ID(i))
		}
		got, places := lacks(t, s, sink, lease)
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("%s lacks (-want +got):\n%s", sink, diff)
		}
		return places
	}
	found := func(sink string, n ...int) {
		t.Helper()
		all := []string{}
		for _, i := range n {
			all = append(all, ID(i))
		}
		items, _, err := s.Records(t.Context(), gate.RecordFilter{Aside: sink})
		wantNoError(t, err)
		if diff := cmp.Diff(all, ids(items)); diff != "" {
			t.Errorf("set aside for %s (-want +got):\n%s", sink, diff)
		}
	}
	places := want("a", 0, 1, 2)
	wantNoError(t, o.SetAside(t.Context(), "b", places[0])) // which is a's
	wantNoError(t, o.SetAside(t.Context(), "a", places[0]))
	want("a", 1, 2)
	want("b", 0, 1, 2)
	found("a", 0)
	found("b")
	states, err := o.SinkStates(t.Context())
	wantNoError(t, err)
	if diff := cmp.Diff([]gate.SinkState{{Name: "a", Pending: 2, Aside: 1, Oldest: Record(1).Time}, {Name: "b", Pending: 3, Oldest: Record(0).Time}}, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	wantNoError(t, o.SetAside(t.Context(), "a", places[1]))
	for _, records := range []int64{2, 0} {
		if n, err := o.SendAgain(t.Context(), "a"); err != nil || n != records {
			t.Errorf("%d are sent again, %v, want %d", n, err, records)
		}
	}
	want("a", 0, 1, 2)
	found("a")
	wantNoError(t, o.SetAside(t.Context(), "a", places[2]))
	wantNoError(t, s.EraseSession(t.Context(), "s1"))
	found("a")
	if n, err := o.SendAgain(t.Context(), "a"); err != nil || n != 0 {
		t.Errorf("%d of an erased session are left, %v", n, err)
	}
}

// outboxErased: what is erased leaves the outbox, and is not counted as lost.
func outboxErased(t *testing.T, s gate.Store) {
	keep(t, s, "a")
	commit(t, s, Record(1))
	commit(t, s, with(Record(2), func(r *gate.Record) { r.Session = "s2" }))
	wantNoError(t, s.EraseSession(t.Context(), "s1"))
	if got, _ := lacks(t, s, "a", lease); len(got) != 1 || got[0] != ID(2) {
		t.Errorf("it lacks %v", got)
	}
	states, err := outboxOf(t, s).SinkStates(t.Context())
	wantNoError(t, err)
	if len(states) != 1 || states[0].Pending != 1 || states[0].Dropped != 0 {
		t.Errorf("states %+v", states)
	}
}

// outboxConcurrently: records that are committed while others are delivered are
// missed by nobody, whatever their order.
func outboxConcurrently(t *testing.T, s gate.Store) {
	const writers, each = 4, 25
	keep(t, s, "a")
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for n := range each {
				r := with(Record(w*each+n), func(r *gate.Record) { r.Session = fmt.Sprint("s", w) })
				if err := s.Commit(t.Context(), plain(r)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { writing.Wait(); close(ended) }()
	got, last := map[string]int{}, map[string]string{}
	for over := false; ; {
		var places []int64
		wantNoError(t, outboxOf(t, s).Undelivered(t.Context(), "a", lease, func(d gate.Delivery) bool {
			places = append(places, d.Place)
			got[d.Record.EvaluationID]++
			if id := d.Record.EvaluationID; id <= last[d.Record.Session] {
				t.Errorf("%s of %s comes after %s", id, d.Record.Session, last[d.Record.Session])
			}
			last[d.Record.Session] = d.Record.EvaluationID
			return len(places) < 7
		}))
		if len(places) == 0 && over {
			break
		}
		wantNoError(t, outboxOf(t, s).Delivered(t.Context(), "a", places))
		select {
		case <-ended:
			over = true
		default:
		}
	}
	for n := range writers * each {
		if got[ID(n)] != 1 {
			t.Errorf("record %d was handed out %d times", n, got[ID(n)])
		}
	}
}
