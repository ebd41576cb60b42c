package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stopgate/gate"
	"stopgate/store/postgres"
	"stopgate/store/postgres/postgrestest"
	"stopgate/store/sqlite"
	"stopgate/store/storetest"
	"stopgate/transcripts"
)

// hostile is a name that not every database can hold.
const hostile = "a\x00\xff' --"

// answered is a request whose key evaluation 2 answers.
var answered = gate.Request{Key: gate.IdempotencyKey{Credential: "c", Key: "answered"}, Body: [32]byte{1}}

var me = gate.Actor{Name: "me", Credential: "key:" + hostile, Address: "192.0.2.1"}

// fill makes a data directory with something of everything in it.
func fill(t *testing.T, dir string) {
	t.Helper()
	ctx := t.Context()
	s, err := sqlite.Open(ctx, sqlite.Options{Dir: dir, Lock: true, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= 120; n++ {
		r := storetest.Full(n)
		if n%3 == 0 {
			r = storetest.Record(n)
		}
		r.Session = hostile
		r.DryRun = n%4 == 0
		c := gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}
		if n == 2 {
			c.Idempotency = answered
		}
		check(s.Commit(ctx, c))
	}
	_, err = s.KeepSinks(ctx, []string{"siem"}) // which lacks the next
	check(err)
	counts := gate.Counts{StopRejections: 2, PromptRejections: 1, Started: true, LastPromptID: hostile, LastReason: "r", LastContext: "c", LastAnswer: "a", SameReason: 1}
	check(s.Commit(ctx, gate.Commit{Key: gate.LedgerKey{Agent: "builder", Session: hostile, SubAgent: "x"},
		Settle: func(gate.Counts) (gate.Counts, gate.Record) { return counts, storetest.Record(500) }}))
	check(s.Commit(ctx, gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, storetest.Record(501) }}))
	var places []int64
	check(s.Undelivered(ctx, "siem", gate.Lease{Holder: "me", Length: time.Minute}, func(d gate.Delivery) bool { places = append(places, d.Place); return true }))
	check(s.SetAside(ctx, "siem", places[0]))
	for _, name := range []string{"z", "a", hostile, "gone"} {
		for range 2 {
			_, err := s.PutSpec(ctx, gate.StoredSpec{Kind: gate.AgentSpec, Name: name, Document: []byte(`{"name":"x"}`)}, me, "")
			check(err)
		}
	}
	check(s.DeleteSpec(ctx, gate.AgentSpec, "gone", me, ""))
	check(s.DeleteSpec(ctx, gate.AgentSpec, "z", me, ""))
	_, err = s.PutSpec(ctx, gate.StoredSpec{Kind: gate.AgentSpec, Name: "z", Document: []byte(`{}`)}, me, "")
	check(err)
	check(s.SetActive(ctx, hostile, "on", true, me))
	check(s.SetActive(ctx, hostile, "off", false, me))
	for n, name := range []string{"old", "ci"} {
		check(s.AddKey(ctx, gate.Key{ID: fmt.Sprint("id", n), Name: name, Hash: [32]byte{byte(n)}, Scopes: []gate.Scope{gate.ReadScope}, Agents: []string{"a", "b-*"},
			Expires: time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()}, me))
	}
	check(s.RevokeKey(ctx, "old", me))
	check(s.KeyUsed(ctx, "id1", time.Now()))
	check(s.ClaimSession(ctx, "claimed", "builder", 0, func(string) bool { return true }))
	now := time.Now().Truncate(time.Millisecond).UTC()
	check(s.SetOverride(ctx, gate.Override{Session: hostile, Reason: "r", Agents: []string{"a"}, Since: now, Until: now.Add(time.Hour)}, me))
	check(s.Close())

	texts, err := transcripts.Open(transcripts.Options{Dir: filepath.Join(dir, "transcripts")})
	check(err)
	_, err = texts.Replace(ctx, hostile, 0, "text/plain", strings.NewReader(strings.Repeat("line\n", 200_000)))
	check(err)
	_, err = texts.Append(ctx, "messages", 0, "application/x-ndjson", strings.NewReader(`{"role":"user","content":"hello"}`))
	check(err)
	_, err = texts.AppendFile(ctx, "file", 0, transcripts.Part{Format: "claude-code"}, strings.NewReader(`{"type":"user","uuid":"1","message":{"role":"user","content":"good day"}}`+"\n"))
	check(err)
	check(texts.Close())
}

// held is what a store and its transcripts answer.
type held struct {
	Records  []gate.Record
	Session  gate.SessionState
	Counts   gate.Counts
	Specs    []gate.StoredSpec
	History  map[string][]gate.StoredSpec
	DryRuns  int
	ByHook   int
	Answered string
	Keys     []gate.Key
	Audit    []gate.AuditEntry
	Override gate.Override
	Owners   map[string][]string
	Texts    map[string]string
	Sizes    map[string]transcripts.Size
	Sinks    []gate.SinkState
	Unsent   []string
}

func holdings(t *testing.T, s namedStore, texts *transcripts.Store) held {
	t.Helper()
	ctx := t.Context()
	h := held{History: map[string][]gate.StoredSpec{}, Texts: map[string]string{}, Sizes: map[string]transcripts.Size{}}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func(f gate.RecordFilter) []gate.RecordSummary {
		f.Limit = 1000
		items, next, err := s.Records(ctx, f)
		check(err)
		if next != "" {
			t.Fatal("there are more records than one page")
		}
		return items
	}
	for _, i := range list(gate.RecordFilter{}) {
		r, err := s.Record(ctx, i.EvaluationID)
		check(err)
		h.Records = append(h.Records, r)
	}
	h.DryRuns, h.ByHook = len(list(gate.RecordFilter{DryRun: new(true)})), len(list(gate.RecordFilter{Hook: "judge", Session: hostile}))
	var err error
	h.Session, err = s.Session(ctx, hostile)
	check(err)
	h.Counts, _, err = s.Counts(ctx, gate.LedgerKey{Agent: "builder", Session: hostile, SubAgent: "x"})
	check(err)
	h.Specs, err = s.CurrentSpecs(ctx)
	check(err)
	for _, name := range []string{"z", "a", hostile, "gone"} {
		h.History[name], err = s.SpecHistory(ctx, gate.AgentSpec, name)
		check(err)
	}
	reserved, err := s.Reserve(ctx, answered, time.Minute)
	check(err)
	h.Answered = reserved.Evaluation
	h.Keys, err = s.Keys(ctx)
	check(err)
	h.Audit, _, err = s.Audit(ctx, gate.AuditFilter{Limit: 1000})
	check(err)
	h.Override, err = s.Override(ctx, hostile)
	check(err)
	h.Sinks, err = s.SinkStates(ctx)
	check(err)
	check(s.Undelivered(ctx, "siem", gate.Lease{Holder: "me", Length: time.Minute}, func(d gate.Delivery) bool {
		h.Unsent = append(h.Unsent, d.Record.EvaluationID)
		return true
	}))
	h.Owners = map[string][]string{}
	for _, session := range []string{hostile, "claimed"} {
		h.Owners[session], err = s.SessionAgents(ctx, session)
		check(err)
	}
	for _, session := range []string{hostile, "messages", "file"} {
		r, size, err := texts.Read(ctx, session)
		check(err)
		b, err := io.ReadAll(r)
		check(err)
		check(r.Close())
		h.Texts[session], h.Sizes[session] = string(b), size
	}
	return h
}

// TestMigrate: after it PostgreSQL answers what SQLite did, and so do the next
// commits.
func TestMigrate(t *testing.T) {
	database, data := postgrestest.Database(t), filepath.Join(t.TempDir(), "data")
	fill(t, data)
	var stdout, stderr bytes.Buffer
	p := process{ctx: t.Context(), stdout: &stdout, stderr: &stderr, getenv: func(string) string { return "" }}
	if code := run(p, []string{"migrate", "--from", data, "--to", database}); code != exitDone {
		t.Fatalf("exit %d: %s", code, &stderr)
	}
	if want := "122 records, 1 ledgers, 11 versions of specs, 2 activations, 2 API keys, 1 overrides, 17 changes in the audit, 1 idempotency keys, 3 transcripts"; !strings.Contains(stdout.String(), want) {
		t.Errorf("it says %s", &stdout)
	}
	before, err := sqlite.Open(t.Context(), sqlite.Options{Dir: data, Lock: true, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	own, err := transcripts.Open(transcripts.Options{Dir: filepath.Join(data, "transcripts")})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	after, err := postgres.Open(t.Context(), postgres.Options{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	shared, err := transcripts.Open(transcripts.Options{Dir: t.TempDir(), Shared: after})
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	if diff := cmp.Diff(holdings(t, before, own), holdings(t, after, shared), cmpopts.IgnoreUnexported(gate.Verdict{})); diff != "" {
		t.Errorf("what it holds (-SQLite +PostgreSQL):\n%s", diff)
	}
	put, err := after.PutSpec(t.Context(), gate.StoredSpec{Kind: gate.AgentSpec, Name: "z", Document: []byte(`{}`)}, me, "*")
	if err != nil || put.Version != 5 {
		t.Errorf("the next version of a spec is %d (%v), want 5", put.Version, err)
	}
	if err := after.AddKey(t.Context(), gate.Key{ID: "id9", Name: "old"}, me); err != nil {
		t.Errorf("the next key: %v", err)
	}
	if _, err := shared.Append(t.Context(), hostile, 0, "text/plain", strings.NewReader("more")); err != nil {
		t.Errorf("append: %v", err)
	}
}

// TestMigrateAllOrNothing: when something goes wrong at the very end, nothing is
// there, and it can be done again.
func TestMigrateAllOrNothing(t *testing.T) {
	database, data := postgrestest.Database(t), filepath.Join(t.TempDir(), "data")
	fill(t, data)
	metas, err := filepath.Glob(filepath.Join(data, "transcripts", "sessions", "*", "meta.json"))
	if err != nil || len(metas) != 3 {
		t.Fatalf("%v, %v", metas, err)
	}
	good, err := os.ReadFile(metas[2])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(metas[2], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	migrate := func(ctx context.Context) (int, string) {
		var said bytes.Buffer
		code := run(process{ctx: ctx, stdout: &said, stderr: &said, getenv: func(string) string { return "" }}, []string{"migrate", "--from", data, "--to", database})
		return code, said.String()
	}
	code, said := migrate(t.Context())
	if code == exitDone || !strings.Contains(said, filepath.Dir(metas[2])) {
		t.Errorf("a damaged transcript: exit %d, %s", code, said)
	}
	if err := os.WriteFile(metas[2], good, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := migrate(t.Context()); code != exitDone {
		t.Errorf("again: exit %d, %s", code, said)
	}
}
