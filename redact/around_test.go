package redact_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stopgate/gate"
	"stopgate/redact"
)

// kept is a store that keeps what it is given.
type kept struct {
	gate.Store
	gate.Outbox
	records  []gate.Record
	override gate.Override
}

func (k *kept) String() string { return "kept" }

func (k *kept) SetOverride(_ context.Context, o gate.Override, _ gate.Actor) error {
	k.override = o
	return nil
}

func (k *kept) Override(context.Context, string) (gate.Override, error) {
	return gate.Override{Session: "jane@example.com", Reason: "ask jane@example.com"}, nil
}

func (k *kept) Audit(context.Context, gate.AuditFilter) ([]gate.AuditEntry, string, error) {
	return []gate.AuditEntry{{By: "jane@example.com", Reason: "ask jane@example.com"}}, "next", nil
}

func (k *kept) Session(_ context.Context, id string) (gate.SessionState, error) {
	return gate.SessionState{Session: id, Last: []gate.RecordSummary{{Reason: "ask jane@example.com"}}}, nil
}

func (k *kept) Records(context.Context, gate.RecordFilter) ([]gate.RecordSummary, string, error) {
	return []gate.RecordSummary{{Reason: "ask jane@example.com", GateError: &gate.Failure{Code: gate.Internal, Message: "ask jane@example.com"}}}, "next", nil
}

// Commit settles twice, as a store does when counts have changed meanwhile.
func (k *kept) Commit(_ context.Context, c gate.Commit) error {
	for range 2 {
		_, rec := c.Settle(gate.Counts{})
		k.records = append(k.records, rec)
	}
	return nil
}

func (k *kept) Record(context.Context, string) (gate.Record, error) { return full(), nil }

func (k *kept) Undelivered(_ context.Context, _ string, _ gate.Lease, see func(gate.Delivery) bool) error {
	see(gate.Delivery{Place: 7, Record: full()})
	return nil
}

func full() gate.Record {
	text := "of " + "jane@example.com"
	return gate.Record{Agent: "a", Session: "s", Payload: gate.Payload(`{"x":"` + text + `"}`), Decision: gate.Decision{
		Outcome: gate.Block, Reason: text, AdditionalContext: text, Messages: []gate.Message{{Role: "user", Content: text}},
		GateError: &gate.Failure{Code: gate.Internal, Message: text},
		Hooks: []gate.Verdict{{Name: "h", Reason: text, AdditionalContext: text, Failure: &gate.Failure{Code: gate.Timeout, Message: text},
			Evidence: &gate.Evidence{Stdout: `{"reason":"` + text + `"}`, Stderr: text, Missing: &gate.Unseen{Path: text, Said: text, Why: text}, Steps: []gate.Step{{Tool: "ReadFile", Input: text, Text: text}},
				Quotes: []gate.Quote{{Line: 1, Quote: text}}}}, {Name: "without"}}}}
}

func TestStoreKeepsAndGivesRecordsRedacted(t *testing.T) {
	inner, given := &kept{}, full()
	s := all(t).Store(inner)
	if err := s.Commit(t.Context(), gate.Commit{Settle: func(c gate.Counts) (gate.Counts, gate.Record) { return c, given }}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full(), given, cmpopts.IgnoreUnexported(gate.Verdict{})); diff != "" {
		t.Errorf("the caller's record has changed:\n%s", diff)
	}
	want := strings.ReplaceAll(asJSON(t, full()), "jane@example.com", "[redacted:email]")
	shown, err := s.Record(t.Context(), "id")
	if err != nil {
		t.Fatal(err)
	}
	var sent gate.Delivery
	if err := s.Undelivered(t.Context(), "siem", gate.Lease{}, func(d gate.Delivery) bool { sent = d; return true }); err != nil || sent.Place != 7 {
		t.Errorf("sent %d, %v", sent.Place, err)
	}
	for where, rec := range map[string]gate.Record{"first": inner.records[0], "settled again": inner.records[1], "shown": shown, "sent": sent.Record} {
		if diff := cmp.Diff(want, asJSON(t, rec)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", where, diff)
		}
	}
}

// What people wrote is redacted; by what name they are known is not, since others
// look for it.
func TestStoreGivesNoSecrets(t *testing.T) {
	const clean = "ask [redacted:email]"
	inner := &kept{}
	s := all(t).Store(inner)
	if err := s.SetOverride(t.Context(), gate.Override{Session: "jane@example.com", Reason: "ask jane@example.com"}, gate.Actor{}); err != nil {
		t.Fatal(err)
	}
	if inner.override.Session != "jane@example.com" || inner.override.Reason != clean {
		t.Errorf("kept %+v", inner.override)
	}
	if o, err := s.Override(t.Context(), ""); err != nil || o.Session != "jane@example.com" || o.Reason != clean {
		t.Errorf("override %+v, %v", o, err)
	}
	if list, next, err := s.Audit(t.Context(), gate.AuditFilter{}); err != nil || next != "next" || list[0].By != "jane@example.com" || list[0].Reason != clean {
		t.Errorf("audit %+v, %q, %v", list, next, err)
	}
	if state, err := s.Session(t.Context(), "jane@example.com"); err != nil || state.Session != "jane@example.com" || state.Last[0].Reason != clean {
		t.Errorf("session %+v, %v", state, err)
	}
	if list, next, err := s.Records(t.Context(), gate.RecordFilter{}); err != nil || next != "next" || list[0].Reason != clean || list[0].GateError.Message != clean {
		t.Errorf("records %+v, %q, %v", list, next, err)
	}
}

// Of every method of a store it is decided whether texts of agents and people pass
// through it: a new one fails here until somebody has.
func TestEveryMethodIsDecidedOn(t *testing.T) {
	redacted := []string{"Commit", "Undelivered", "Record", "Records", "Session", "SetOverride", "Override", "Audit"}
	decided := map[string]string{
		"Counts": "marks of texts", "PutSpec": "its owner's, to be read as it was written", "DeleteSpec": "names", "Spec": "as PutSpec", "CurrentSpecs": "as PutSpec",
		"SpecHistory": "as PutSpec", "SetActive": "names", "Active": "names", "RemoveOverride": "names", "Reserve": "sums", "Renew": "sums", "Release": "sums",
		"EraseSession": "names", "Erasure": "sums", "SessionAgents": "names", "SessionProjects": "directories, which hooks start in", "ClaimSession": "names", "AddKey": "sums and names", "Key": "sums and names", "Keys": "sums and names",
		"RevokeKey": "names", "KeyUsed": "names", "Ping": "nothing", "KeepSinks": "names", "Delivered": "numbers", "SetAside": "numbers", "SendAgain": "numbers", "ReleaseSink": "names", "SinkStates": "names and numbers", "Close": "nothing", "String": "no secret",
	}
	for _, name := range redacted {
		decided[name] = "redacted"
	}
	for m := range reflect.TypeFor[redact.Store]().Methods() {
		if decided[m.Name] == "" {
			t.Errorf("%s: nobody has said whether it passes texts on", m.Name)
		}
		delete(decided, m.Name)
	}
	if len(decided) > 0 {
		t.Errorf("no method any more: %v", decided)
	}
}

// What a store can do beside being one, it can do still, and no more than that.
func TestStoreKeepsItsOtherTalents(t *testing.T) {
	type watches struct {
		*kept
		gate.SpecWatcher
	}
	type shares struct {
		*kept
		gate.SharedTexts
	}
	type both struct {
		watches
		gate.SharedTexts
	}
	for name, c := range map[string]struct {
		of              redact.Store
		watches, shares bool
	}{"none": {&kept{}, false, false}, "watches": {watches{}, true, false}, "shares": {shares{}, false, true}, "both": {both{}, true, true}} {
		s := all(t).Store(c.of)
		_, watching := s.(gate.SpecWatcher)
		_, sharing := s.(gate.SharedTexts)
		if watching != c.watches || sharing != c.shares {
			t.Errorf("%s: watches %v, shares %v", name, watching, sharing)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestHandler(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(all(t).Handler(slog.NewJSONHandler(&out, nil)))
	log = log.With("who", "jane@example.com").WithGroup("g").With("who", "jane@example.com")
	log.Error("failed", "error", errors.New("no jane@example.com"), "list", []string{"jane@example.com"}, "n", 17, "took", time.Second,
		slog.Group("in", "to", "jane@example.com"), "error2", errors.New("plain"))
	if got := out.String(); strings.Contains(got, "jane") || strings.Count(got, "[redacted:email]") != 5 ||
		!strings.Contains(got, `"n":17,"took":1000000000`) || !strings.Contains(got, `"in":{"to":"[redacted:email]"}`) || !strings.Contains(got, `"error2":"plain"`) {
		t.Errorf("log %s", got)
	}
}

type talk struct{ gate.Transcript }

func (talk) ReadFile(context.Context, int, int) (string, error) { return "1\tjane@example.com", nil }

func (talk) GrepSearch(context.Context, gate.Grep) (string, error) { return "1\tjane@example.com", nil }

func (talk) Outline(context.Context, int) (string, bool, error) {
	return "1\tjane@example.com", true, nil
}

func TestEvaluatorShowsNoSecret(t *testing.T) {
	ev := gate.Event{Background: []json.RawMessage{[]byte(`"jane@example.com"`)}, FinalOutput: "jane@example.com", ToolResult: "jane@example.com", Prompt: "jane@example.com", ToolInput: json.RawMessage(`["jane@example.com"]`),
		Payload: []byte(`"jane@example.com"`)}
	asked := all(t).Evaluator(gate.EvaluatorFunc(func(ctx context.Context, in gate.Input) gate.Verdict {
		read, _ := in.Transcript.ReadFile(ctx, 1, 1)
		found, _ := in.Transcript.GrepSearch(ctx, gate.Grep{})
		outline, _, _ := in.Transcript.Outline(ctx, 1)
		seen := []string{string(in.Context), in.Event.FinalOutput, in.Event.ToolResult, in.Event.Prompt, string(in.Event.ToolInput), string(in.Event.Payload), string(in.Event.Background[0]), read, found, outline}
		for _, text := range seen {
			if strings.Contains(text, "jane") || !strings.Contains(text, "[redacted:email]") {
				t.Errorf("seen %q", text)
			}
		}
		return gate.Verdict{Outcome: gate.Allow}
	}))
	if v := asked.Evaluate(t.Context(), gate.Input{Event: &ev, Context: []byte(`{"a":"jane@example.com"}`), Transcript: talk{}}); v.Outcome != gate.Allow {
		t.Errorf("verdict %+v", v)
	}
	if ev.FinalOutput != "jane@example.com" || string(ev.ToolInput) != `["jane@example.com"]` || string(ev.Background[0]) != `"jane@example.com"` {
		t.Errorf("the caller's event has changed: %+v", ev)
	}
}

// The price of a conversation that is shown.
func BenchmarkText(b *testing.B) {
	r := all(b)
	for name, message := range map[string]string{"plain": "The tests pass, and the file at /srv/app/main.go is formatted.\n", "secrets": "mail jane@example.com a key ghp_0123456789012345678901234567890123456789\n",
		"hints": "@ :// gh earer api ecret sk- xox eyJ 4111 1111 1111 1112\n"} {
		text := strings.Repeat(message, (1<<20)/len(message))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.Text(text)
			}
		})
	}
}

// The price of one record's payload: nothing in it, and a secret in each message.
func BenchmarkJSON(b *testing.B) {
	r := all(b, redact.Pattern{Name: "own", Expr: `BLUEBIRD-[0-9]+`})
	for name, message := range map[string]string{"plain": "The tests pass, and the file at /srv/app/main.go is formatted. ", "secrets": "mail jane@example.com a key ghp_0123456789012345678901234567890123456789 "} {
		for size, n := range map[string]int{"433B": 5, "8KB": 120, "1MB": 15000} {
			doc, _ := json.Marshal(map[string]any{"hook_event_name": "Stop", "final_output": "done", "list": strings.SplitAfter(strings.Repeat(message, n), ". ")})
			b.Run(name+"/"+size, func(b *testing.B) {
				b.SetBytes(int64(len(doc)))
				for b.Loop() {
					r.JSON(doc)
				}
			})
		}
	}
}
