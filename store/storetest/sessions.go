package storetest

import (
	"errors"
	"sync"
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

// erasedWhileJudged: an evaluation that began before its session was erased does
// not bring it back, nor answer its key; one that began later is stored.
func erasedWhileJudged(t *testing.T, s gate.Store) {
	last := func(session string) gate.Erasure {
		t.Helper()
		e, err := s.Erasure(t.Context(), session)
		wantNoError(t, err)
		if _, told, err := s.Counts(t.Context(), gate.LedgerKey{Agent: "builder", Session: session}); err != nil || told != e {
			t.Errorf("with the counts the erasure is %d, %v, want %d", told, err, e)
		}
		return e
	}
	request := gate.Request{Key: gate.IdempotencyKey{Credential: "c", Key: "k"}}
	judged := func(n int, session string, seen gate.Erasure) error {
		c := rejection(gate.LedgerKey{Agent: "builder", Session: session}, gate.Counts{}, n)
		c.Erasure, c.Idempotency = seen, request
		return s.Commit(t.Context(), c)
	}
	if e := last("s1"); e != gate.NeverErased {
		t.Errorf("the erasure of a session that nobody knows is %d", e)
	}
	before := last("s1")
	wantNoError(t, s.EraseSession(t.Context(), "s1"))
	if err := judged(1, "s1", before); !errors.Is(err, gate.ErrErased) {
		t.Errorf("commit of what was judged before: %v", err)
	}
	_, err := s.Session(t.Context(), "s1")
	wantCode(t, err, gate.CodeNotFound)
	if agents, err := s.SessionAgents(t.Context(), "s1"); err != nil || len(agents) > 0 {
		t.Errorf("it belongs to %q, %v", agents, err)
	}
	_, err = s.Record(t.Context(), ID(1))
	wantCode(t, err, gate.CodeNotFound)
	wantNoError(t, judged(2, "s2", last("s2"))) // another session, and the key is free

	request.Key.Key = "k2"
	between := last("s1")
	wantNoError(t, judged(3, "s1", between))
	request = gate.Request{}
	wantNoError(t, s.EraseSession(t.Context(), "s1"))
	if err := judged(4, "s1", between); !errors.Is(err, gate.ErrErased) {
		t.Errorf("commit of what was judged between two erasures: %v", err)
	}
	wantNoError(t, judged(5, "s1", last("s1")))
	wantNoError(t, judged(6, "s1", 0)) // nothing was read of it before
	dry := rejection(gate.LedgerKey{Session: "s1", Agent: "builder"}, gate.Counts{}, 7)
	dry.Key, dry.Erasure = gate.LedgerKey{}, between // counts nothing
	if err := s.Commit(t.Context(), dry); !errors.Is(err, gate.ErrErased) {
		t.Errorf("commit of what counts nothing: %v", err)
	}
	if diff := cmp.Diff([]string{ID(6), ID(5)}, list(t, s, gate.RecordFilter{Session: "s1"})); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// sharedSessions: a record may quote the conversation, which is all agents' that
// the session belongs to, so it is for those alone who own them all.
func sharedSessions(t *testing.T, s gate.Store) {
	for n, of := range [][2]string{{"mine", "own"}, {"theirs", "both"}, {"mine", "both"}, {"mine", ""}, {"mine", "nobodys"}, {"my-2", "own"}} {
		commit(t, s, with(Record(n+1), func(r *gate.Record) { r.Agent, r.Session = of[0], of[1] }))
	}
	wantNoError(t, s.ClaimSession(t.Context(), "nobodys", gate.Nobody, 0, func(string) bool { return true }))
	// So is one whose hooks read the conversation of another session.
	const odd = `q"\uploaded <ü> {"transcript":{"session":"own"}}`
	anyone := func(string) bool { return true }
	wantNoError(t, s.ClaimSession(t.Context(), odd, "mine", 0, anyone))
	wantNoError(t, s.ClaimSession(t.Context(), "a\x00b", "others", 0, anyone))
	for n, of := range []string{"both", odd, "erased", "a\x00b", "own", "xx"} {
		commit(t, s, with(Record(n+11), func(r *gate.Record) {
			r.Agent, r.Session, r.Reason = "mine", "xx", "NUL \x00 and "+odd
			r.Asked = &gate.Asked{Switched: map[string]bool{odd: true}, Transcript: &gate.TranscriptMark{Session: of, Bytes: 1, Tail: "00"}}
		}))
	}
	for _, c := range []struct {
		agents []string
		want   []string
	}{
		{[]string{"mine"}, []string{ID(16), ID(12)}},
		{[]string{"mine", "my-2"}, []string{ID(16), ID(15), ID(12)}},
		{[]string{"mine", "theirs"}, []string{ID(16), ID(12), ID(11)}},
		{[]string{"*"}, []string{ID(16), ID(15), ID(14), ID(13), ID(12), ID(11)}},
	} {
		if diff := cmp.Diff(c.want, list(t, s, gate.RecordFilter{Agents: c.agents, Session: "xx", Limit: 2})); diff != "" {
			t.Errorf("records that read elsewhere for %q (-want +got):\n%s", c.agents, diff)
		}
	}
	wantNoError(t, s.EraseSession(t.Context(), "xx"))
	for _, c := range []struct {
		agents []string
		want   []string
	}{
		{[]string{"mine"}, []string{ID(4)}},
		{[]string{"m*"}, []string{ID(6), ID(4), ID(1)}},
		{[]string{"mine", "my-?"}, []string{ID(6), ID(4), ID(1)}},
		{[]string{"mine", "theirs"}, []string{ID(4), ID(3), ID(2)}},
		{[]string{"*"}, []string{ID(6), ID(5), ID(4), ID(3), ID(2), ID(1)}},
		{nil, []string{ID(6), ID(5), ID(4), ID(3), ID(2), ID(1)}},
		{[]string{}, []string{}},
	} {
		if diff := cmp.Diff(c.want, list(t, s, gate.RecordFilter{Agents: c.agents, Limit: 2})); diff != "" {
			t.Errorf("records for %q (-want +got):\n%s", c.agents, diff)
		}
	}
}

// sessionProjects are those of the first event that says them, for each agent, until
// the session is erased.
func sessionProjects(t *testing.T, s gate.Store) {
	want := func(session, agent string, want gate.Projects) {
		t.Helper()
		got, err := s.SessionProjects(t.Context(), session, agent)
		wantNoError(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("projects of %q in %q (-want +got):\n%s", agent, session, diff)
		}
	}
	n := 0
	event := func(session, agent string, p gate.Projects) {
		t.Helper()
		n++
		r := with(Record(n), func(r *gate.Record) { r.Session, r.Agent = session, agent })
		c := plain(r)
		c.Projects = p
		wantNoError(t, s.Commit(t.Context(), c))
	}
	const odd = "/srv/a \xff\x00\"b\" <ü>"
	first, later := gate.Projects{gate.ClaudeCode: "/p", gate.AXCode: "/p/q", gate.Antigravity: ""}, gate.Projects{gate.ClaudeCode: "/mine"}
	want("s1", "a", nil)
	event("s1", "a", nil)
	want("s1", "a", nil)
	event("s1", "a", first)
	event("s1", "a", later)
	event("s1", "a", nil)
	want("s1", "a", first)
	event("s1", "b", later)
	want("s1", "b", later)
	wantNoError(t, s.ClaimSession(t.Context(), "s2", "a", 0, func(string) bool { return true }))
	want("s2", "a", nil)
	event("s2", "a", first)
	wantNoError(t, s.ClaimSession(t.Context(), "s2", "a", 0, func(string) bool { return true }))
	want("s2", "a", first)
	event("s3", "a", gate.Projects{})
	event("s3", "a", first)
	want("s3", "a", gate.Projects{}) // nothing was found, which is an answer
	event("s4"+odd, odd, first)
	want("s4"+odd, odd, first)
	want("", "a", nil)
	wantNoError(t, s.EraseSession(t.Context(), "s1"))
	want("s1", "a", nil)
	event("s1", "a", later)
	want("s1", "a", later)

	var all sync.WaitGroup
	for i := range 8 {
		r := with(Record(100+i), func(r *gate.Record) { r.Session, r.Agent = "s5", "a" })
		all.Go(func() {
			c := plain(r)
			c.Projects = gate.Projects{gate.ClaudeCode: "/" + r.EvaluationID}
			if err := s.Commit(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	one, err := s.SessionProjects(t.Context(), "s5", "a")
	wantNoError(t, err)
	event("s5", "a", later)
	want("s5", "a", one)
	if len(one) != 1 {
		t.Errorf("of eight at once: %v", one)
	}
}
