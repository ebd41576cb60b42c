// Package storetest is the law that every [gate.Store] keeps, as one suite:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) gate.Store { return open(t) })
//	}
package storetest

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stopgate/gate"
)

// Run holds a store to the law. open makes an empty one, with the system's
// clock; the suite closes it.
func Run(t *testing.T, open func(t testing.TB) gate.Store) {
	for _, part := range []struct {
		name string
		test func(t *testing.T, s gate.Store)
	}{
		{"Counts", counts},
		{"Records", records},
		{"Filters", filters},
		{"Cursors", cursors},
		{"Specs", specs},
		{"SpecConflicts", specConflicts},
		{"SpecOrder", specOrder},
		{"Activations", activations},
		{"Overrides", overrides},
		{"OverridesOfRevokedKey", overridesOfRevokedKey},
		{"Idempotency", idempotency},
		{"LostReservation", lostReservation},
		{"Sessions", sessions},
		{"EraseSession", eraseSession},
		{"ErasedWhileJudged", erasedWhileJudged},
		{"SharedSessions", sharedSessions},
		{"Keys", keys},
		{"Audit", audit},
		{"Claims", claims},
		{"SessionProjects", sessionProjects},
		{"HostileValues", hostileValues},
		{"Concurrency", concurrency},
		{"Outbox", outbox},
		{"OutboxAside", outboxAside},
		{"OutboxErased", outboxErased},
		{"OutboxConcurrently", outboxConcurrently},
		{"Failures", failures},
		{"Cancelled", cancelled},
		{"Closing", closing},
	} {
		t.Run(part.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			part.test(t, s)
		})
	}
}

// began is when the suite's records happened: record n at n milliseconds.
var began = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// ID is the evaluation id of record n: a UUIDv7, ordered by n.
func ID(n int) string {
	at := began.Add(time.Duration(n) * time.Millisecond).UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", at>>16, at&0xffff, n)
}

// Record is the suite's record n, an allowed tool event without hooks.
func Record(n int) gate.Record {
	return gate.Record{
		Decision: gate.Decision{EvaluationID: ID(n), Outcome: gate.Allow, Messages: []gate.Message{}, Hooks: []gate.Verdict{}},
		Time:     began.Add(time.Duration(n) * time.Millisecond), Agent: "builder", Session: "s1", Event: gate.PostToolUse,
		Protocol: gate.Native, Tool: "Bash", DurationMS: 3, Payload: gate.Payload(fmt.Sprintf(`{"n":%d}`, n))}
}

// Full is record n with every field set, a Stop rejected by two hooks.
func Full(n int) gate.Record {
	r := Record(n)
	exit := 2
	r.Event, r.SubAgent, r.DryRun, r.Outcome = gate.Stop, "sub-1", true, gate.Block
	r.Protocol, r.HostVersion, r.HostUntried = "codex", "0.170.0", "Codex 0.170.0 was not tried."
	r.Reason, r.AdditionalContext = "run the tests <first> & again", "context"
	r.Messages = []gate.Message{{Role: "user", Content: r.Reason}, {Role: "user", Content: "context"}}
	r.Forced, r.Degraded, r.StopHookActive, r.StopRejectionCount = true, true, true, 7
	r.GateError = &gate.Failure{Code: gate.StoreUnavailable, Message: "down"}
	r.Asked = &gate.Asked{Agent: "parent", StopRejections: 6, PromptRejections: 5, Started: true, LastAnswer: "3:abc", Switched: map[string]bool{"tests": true},
		Transcript: &gate.TranscriptMark{Session: "sub", Bytes: 1 << 40, Tail: "abc"}}
	r.Hooks = []gate.Verdict{
		{Name: "tests", Level: gate.AgentLevel, Type: gate.CommandHook, Outcome: gate.Block, Reason: "run the tests",
			Notes: []gate.Note{gate.NoProgress}, FailMode: gate.FailAllow, AdditionalContext: "context", Injected: true, DurationMS: 12,
			Evidence: &gate.Evidence{ExitCode: &exit, Stdout: "{}", Stderr: "run the tests"}},
		{Name: "silent", Level: gate.CustomLevel, Type: gate.RuleHook, Outcome: gate.Allow, Notes: []gate.Note{}, FailMode: gate.FailAllow},
		{Name: "judge", Level: gate.CustomLevel, Type: gate.PromptHook, Outcome: gate.NoVerdict, Notes: []gate.Note{gate.FailedClosed},
			Failure: &gate.Failure{Code: gate.Timeout, Message: "30 s"}, FailMode: gate.FailBlock, Model: "m",
			Usage:    &gate.Usage{Calls: 2, PromptTokens: 900, CachedTokens: 1, OutputTokens: 40},
			Evidence: &gate.Evidence{Signal: "SIGKILL", Steps: []gate.Step{{Tool: "ReadFile", Input: "{}", Text: "1\thello", Tokens: 9}}}},
	}
	return r
}

// commit stores a record without a ledger.
func commit(t testing.TB, s gate.Store, r gate.Record) {
	t.Helper()
	if err := s.Commit(t.Context(), plain(r)); err != nil {
		t.Fatalf("commit %s: %v", r.EvaluationID, err)
	}
}

func plain(r gate.Record) gate.Commit {
	return gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, r }}
}

// rejection is a commit that counts one rejection upon whatever is there.
func rejection(key gate.LedgerKey, seen gate.Counts, n int) gate.Commit {
	return gate.Commit{Key: key, Seen: seen, Settle: func(now gate.Counts) (gate.Counts, gate.Record) {
		now.StopRejections++
		r := Record(n)
		r.Event, r.Outcome, r.Reason, r.Session, r.Agent = gate.Stop, gate.Block, "no", key.Session, key.Agent
		r.StopRejectionCount, r.StopHookActive = now.StopRejections, true
		return now, r
	}}
}

func wantCounts(t testing.TB, s gate.Store, key gate.LedgerKey, want gate.Counts) {
	t.Helper()
	got, _, err := s.Counts(t.Context(), key)
	if err != nil {
		t.Fatalf("counts of %+v: %v", key, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts of %+v (-want +got):\n%s", key, diff)
	}
}

func wantCode(t testing.TB, err error, want gate.Code) {
	t.Helper()
	if err == nil || gate.CodeOf(err) != want {
		t.Errorf("error is %v (code %s), want code %s", err, gate.CodeOf(err), want)
	}
}

func wantNoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantRecord compares what is stored with what was committed, payload bytes
// included.
func wantRecord(t testing.TB, s gate.Store, want gate.Record) {
	t.Helper()
	got, err := s.Record(t.Context(), want.EvaluationID)
	if err != nil {
		t.Fatalf("record %s: %v", want.EvaluationID, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(gate.Verdict{}), cmpopts.IgnoreFields(gate.Verdict{}, "Duration"),
		cmpopts.EquateApproxTime(time.Microsecond), cmp.Comparer(samePayload)); diff != "" {
		t.Errorf("record %s (-want +got):\n%s", want.EvaluationID, diff)
	}
}

// samePayload spares cmp from walking through megabytes byte by byte.
func samePayload(a, b gate.Payload) bool { return bytes.Equal(a, b) }

func ids(items []gate.RecordSummary) []string {
	list := []string{}
	for _, i := range items {
		list = append(list, i.EvaluationID)
	}
	return list
}

// list is every id that a filter finds, page by page.
func list(t testing.TB, s gate.Store, f gate.RecordFilter) []string {
	t.Helper()
	all := []string{}
	for range 1000 {
		items, next, err := s.Records(context.WithoutCancel(t.Context()), f)
		if err != nil {
			t.Fatalf("records %+v: %v", f, err)
		}
		all = append(all, ids(items)...)
		if next == "" {
			return all
		}
		f.Cursor = next
	}
	t.Fatalf("records %+v never end", f)
	return nil
}
