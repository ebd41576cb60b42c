package chaos

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// told is a journal with what is stored of it, as a service that works would have
// it. Cases spoil the one or the other.
type told struct {
	ops    []Op
	stored Stored
}

// clean is a loop that a judge rejects twice, ends at the cap, and begins again;
// two appends, a switch and a spec that is put twice.
func clean() *told {
	w := &told{stored: Stored{Counts: map[gate.LedgerKey]Counts{}, Active: map[string]map[string]bool{"s": {"ondemand": true}},
		Transcripts: map[string]string{"s": "one\ntwo\nthree\n"}, Specs: map[string]Spec{"changing": {ETag: `"2"`, Document: "as op8. left it"}}}}
	w.stop("op0.", "reject", 1)
	w.stop("op1.", "reject", 2)
	w.stop("op2.", "capped", 0)
	w.stop("op3.", "reject", 1)
	w.stored.Counts[ledger] = Counts{1, 1}
	w.add(Op{ID: "op4.", Kind: Append, Session: "s", Lines: []string{"one", "two"}, Total: 2})
	w.add(Op{ID: "op5.", Kind: Append, Session: "s", Lines: []string{"three"}, Total: 3})
	w.add(Op{ID: "op6.", Kind: Activate, Session: "s", Name: "ondemand"})
	w.add(Op{ID: "op7.", Kind: PutSpec, Name: "changing", ETag: `"1"`})
	w.add(Op{ID: "op8.", Kind: PutSpec, Name: "changing", ETag: `"2"`})
	w.tool("op9.", true)
	w.stored.Audit = []gate.AuditEntry{
		{Action: gate.SpecPut, Name: "changing", Before: 1, After: 2},
		{Action: gate.SpecPut, Name: "changing", After: 1},
		{Action: gate.HookActivated, Name: "ondemand", Session: "s"},
	}
	return w
}

var ledger = gate.LedgerKey{Agent: "judged", Session: "s"}

func (w *told) add(op Op) *Op {
	op.Sent = int64(2*len(w.ops) + 1)
	op.Answered = op.Sent + 1
	w.ops = append(w.ops, op)
	return &w.ops[len(w.ops)-1]
}

// decide adds a decision, as it was answered and as it is stored.
func (w *told) decide(op Op, d gate.Decision) {
	d.EvaluationID, d.Messages = "of "+op.ID, []gate.Message{}
	op.Kind, op.Session, op.Agent = Evaluate, "s", "judged"
	answer, _ := json.Marshal(d)
	o := w.add(op)
	o.Answers = []json.RawMessage{answer}
	payload, _ := json.Marshal(map[string]string{"op": op.ID})
	w.stored.Records = append(w.stored.Records, gate.Record{Decision: d, Agent: o.Agent, Session: o.Session, Event: o.Event, Payload: payload})
}

func (w *told) stop(id, verdict string, count int) {
	judge := gate.Verdict{Name: "judge", Type: gate.PromptHook, Outcome: gate.Allow, Notes: []gate.Note{}}
	d := gate.Decision{Outcome: gate.Allow, StopRejectionCount: count}
	switch verdict {
	case "reject":
		judge.Outcome, d.Outcome = gate.Block, gate.Block
	case "capped":
		judge.Outcome, judge.Notes, d.Forced = gate.Skipped, []gate.Note{gate.Capped}, true
	}
	d.Hooks = []gate.Verdict{judge}
	w.decide(Op{ID: id, Event: gate.Stop, Key: "key of " + id}, d)
}

func (w *told) tool(id string, asked bool) {
	d := gate.Decision{Outcome: gate.Allow, StopRejectionCount: 1, Hooks: []gate.Verdict{}}
	if asked {
		d.Hooks = append(d.Hooks, gate.Verdict{Name: "ondemand", Type: gate.CommandHook, Outcome: gate.Allow, Notes: []gate.Note{}})
	}
	w.decide(Op{ID: id, Event: gate.PreToolUse}, d)
}

func (w *told) op(id string) *Op {
	return &w.ops[slices.IndexFunc(w.ops, func(o Op) bool { return o.ID == id })]
}

func (w *told) record(id string) *gate.Record {
	return &w.stored.Records[slices.IndexFunc(w.stored.Records, func(r gate.Record) bool { return opOf(&r) == id })]
}

// drop takes a record away.
func (w *told) drop(id string) {
	w.stored.Records = slices.DeleteFunc(w.stored.Records, func(r gate.Record) bool { return opOf(&r) == id })
}

// unanswered is an op whose client heard nothing.
func (w *told) unanswered(id string) {
	op := w.op(id)
	op.Answered, op.Answers, op.Total, op.ETag = 0, nil, 0, ""
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(w *told)
		want  []Fault
	}{
		{"as it should be", func(*told) {}, nil},

		{"a record is dropped", func(w *told) { w.drop("op9.") }, []Fault{DecisionLost}},
		{"a record is dropped that the counts need", func(w *told) { w.drop("op0.") }, []Fault{DecisionLost, CountWrong}},
		{"nobody heard of it, and it is not there", func(w *told) { w.unanswered("op9."); w.drop("op9.") }, nil},
		{"nobody heard of it, and it is there", func(w *told) { w.unanswered("op9.") }, nil},
		{"a record is there twice", func(w *told) { w.stored.Records = append(w.stored.Records, *w.record("op9.")) }, []Fault{DecisionDoubled}},
		{"a rejection is counted twice", func(w *told) {
			w.stored.Records = append(w.stored.Records, *w.record("op0."))
		}, []Fault{DecisionDoubled, CountWrong}},
		{"another decision is stored", func(w *told) { w.record("op9.").Reason = "another" }, []Fault{DecisionChanged}},
		{"evidence was not answered", func(w *told) { w.record("op9.").Hooks[0].Evidence = &gate.Evidence{Stdout: "{}"} }, nil},
		{"stored under another session", func(w *told) { w.record("op9.").Session = "other" }, []Fault{DecisionChanged}},
		{"nobody asked", func(w *told) {
			r := *w.record("op9.")
			r.Payload = gate.Payload(`{"op":"op99."}`)
			w.stored.Records = append(w.stored.Records, r)
		}, []Fault{DecisionOfNone}},
		{"a repeat is answered the same", func(w *told) { o := w.op("op0."); o.Answers = append(o.Answers, o.Answers[0]) }, nil},
		{"a repeat is answered otherwise", func(w *told) { o := w.op("op0."); o.Answers = append(o.Answers, w.op("op1.").Answers[0]) }, []Fault{AnswerChanged}},
		{"a host was told another reason", func(w *told) {
			o := w.op("op0.")
			o.Answers, o.Outcome, o.Reason = nil, gate.Block, "another"
		}, []Fault{DecisionChanged}},

		{"a count is doubled", func(w *told) { w.stored.Counts[ledger] = Counts{2, 2} }, []Fault{CountWrong}},
		{"a count is lost", func(w *told) { delete(w.stored.Counts, ledger) }, []Fault{CountWrong}},
		{"only the prompts' count is wrong", func(w *told) { w.stored.Counts[ledger] = Counts{1, 0} }, []Fault{CountWrong}},
		{"a count of no decision", func(w *told) { w.stored.Counts[gate.LedgerKey{Agent: "x", Session: "s"}] = Counts{1, 1} }, []Fault{CountWrong}},
		{"two were told the same count", func(w *told) { w.say("op1.", func(d *gate.Decision) { d.StopRejectionCount = 1 }) }, []Fault{CountWrong}},
		{"the cap is passed", func(w *told) {
			w.say("op2.", func(d *gate.Decision) {
				d.Outcome, d.Forced, d.StopRejectionCount = gate.Block, false, 3
				d.Hooks[0].Outcome, d.Hooks[0].Notes = gate.Block, []gate.Note{}
			})
			w.say("op3.", func(d *gate.Decision) { d.StopRejectionCount = 4 })
			w.say("op9.", func(d *gate.Decision) { d.StopRejectionCount = 4 })
			w.stored.Counts[ledger] = Counts{4, 4}
		}, []Fault{CapPassed}},
		{"forced below the cap", func(w *told) {
			w.say("op1.", func(d *gate.Decision) {
				d.Outcome, d.Forced, d.StopRejectionCount = gate.Allow, true, 0
				d.Hooks[0].Outcome, d.Hooks[0].Notes = gate.Skipped, []gate.Note{gate.Capped}
			})
		}, []Fault{CapPassed}},
		{"what was sent later was counted first", func(w *told) { // op0 was answered before op1 was sent
			w.say("op0.", func(d *gate.Decision) { d.StopRejectionCount = 2 })
			w.say("op1.", func(d *gate.Decision) { d.StopRejectionCount = 1 })
		}, []Fault{CountWrong}},
		{"of two at once the later was counted first", func(w *told) {
			w.op("op0.").Answered = w.op("op1.").Answered
			w.say("op0.", func(d *gate.Decision) { d.StopRejectionCount = 2 })
			w.say("op1.", func(d *gate.Decision) { d.StopRejectionCount = 1 })
		}, nil},
		{"one without an answer was counted late", func(w *told) {
			w.unanswered("op0.")
			w.say("op1.", func(d *gate.Decision) { d.StopRejectionCount = 1 })
			w.record("op0.").StopRejectionCount = 2
		}, nil},

		{"a hook is active and was not asked", func(w *told) { w.say("op9.", func(d *gate.Decision) { d.Hooks = []gate.Verdict{} }) }, []Fault{HookIgnored}},
		{"a hook is switched while it is seen", func(w *told) {
			w.op("op6.").Answered = w.op("op9.").Answered
			w.say("op9.", func(d *gate.Decision) { d.Hooks = []gate.Verdict{} })
		}, nil},
		{"a switch is lost", func(w *told) { delete(w.stored.Active, "s") }, []Fault{ChangeLost}},
		{"a switch has no entry", func(w *told) { w.stored.Audit = w.stored.Audit[:2] }, []Fault{AuditLost}},
		{"a switch has two entries", func(w *told) { w.stored.Audit = append(w.stored.Audit, w.stored.Audit[2]) }, []Fault{AuditDoubled}},

		{"a line is lost", func(w *told) { w.stored.Transcripts["s"] = "one\nthree\n" }, []Fault{LineLost, LineMoved}},
		{"an append is lost", func(w *told) { w.stored.Transcripts["s"] = "one\ntwo\n" }, []Fault{LineLost}},
		{"an append that nobody heard of is not there", func(w *told) { w.unanswered("op5."); w.stored.Transcripts["s"] = "one\ntwo\n" }, nil},
		{"half an append that nobody heard of", func(w *told) { w.unanswered("op4."); w.stored.Transcripts["s"] = "one\nthree\n" }, []Fault{LineMoved, LineMoved}},
		{"a line is doubled", func(w *told) { w.stored.Transcripts["s"] += "three\n" }, []Fault{LineDoubled}},
		{"lines of another", func(w *told) { w.stored.Transcripts["s"] += "four\n" }, []Fault{LineOfNone}},
		{"lines are out of order", func(w *told) { w.stored.Transcripts["s"] = "three\none\ntwo\n" }, []Fault{LineMoved, LineMoved, LineMoved}},
		{"the end is not where it was said", func(w *told) { w.op("op5.").Total = 4 }, []Fault{LineMoved}},

		{"a spec is lost", func(w *told) { delete(w.stored.Specs, "changing") }, []Fault{ChangeLost}},
		{"an older spec is back", func(w *told) { w.stored.Specs["changing"] = Spec{`"1"`, "as op7. left it"} }, []Fault{ChangeLost}},
		{"a newer one that nobody heard of", func(w *told) { w.unanswered("op8.") }, nil},
		{"a spec has another tag", func(w *told) { w.stored.Specs["changing"] = Spec{`"3"`, "as op8. left it"} }, []Fault{ChangeLost}},
		{"a put has no entry", func(w *told) { w.stored.Audit = w.stored.Audit[1:] }, []Fault{AuditLost}},
		{"an entry leaves a version out", func(w *told) { w.stored.Audit[0].After = 3 }, []Fault{AuditUnlinked}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := clean()
			tc.spoil(w)
			var got []Fault
			found := Check(Rules{Cap: map[string]int{"judged": 2}, OnDemand: "ondemand"}, w.ops, w.stored)
			for _, v := range found {
				got = append(got, v.Fault)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s%v", diff, found)
			}
		})
	}
}

// A key that a jump of the clock has ended begins anew: what is sent under it is
// decided, stored and counted once more. What was answered is stored all the same.
func TestCheckKeysThatEnd(t *testing.T) {
	again := func(w *told, key string) {
		w.op("op3.").Key = key
		r := *w.record("op3.")
		r.EvaluationID, r.StopRejectionCount = "of op3. again", 2
		w.stored.Records = append(w.stored.Records, r)
		answer, _ := json.Marshal(r.Decision)
		w.op("op3.").Answers = append(w.op("op3.").Answers, answer)
		w.say("op9.", func(d *gate.Decision) { d.StopRejectionCount = 2 })
		w.stored.Counts[ledger] = Counts{2, 2}
	}
	for _, tc := range []struct {
		name  string
		spoil func(w *told)
		ends  bool
		want  []Fault
	}{
		{"it ended", func(w *told) { again(w, "key") }, true, nil},
		{"clocks were one", func(w *told) { again(w, "key") }, false, []Fault{DecisionDoubled, AnswerChanged}},
		{"it had none", func(w *told) { again(w, "") }, true, []Fault{DecisionDoubled, AnswerChanged}},
		{"it ended, and the first is lost", func(w *told) {
			again(w, "key")
			w.drop("op3.")
		}, true, []Fault{DecisionLost, DecisionLost, CountWrong}},
		{"it ended, and the second was not counted", func(w *told) {
			again(w, "key")
			w.stored.Counts[ledger] = Counts{1, 1}
		}, true, []Fault{CountWrong}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := clean()
			tc.spoil(w)
			var got []Fault
			found := Check(Rules{Cap: map[string]int{"judged": 2}, OnDemand: "ondemand", KeysEnd: tc.ends}, w.ops, w.stored)
			for _, v := range found {
				got = append(got, v.Fault)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s%v", diff, found)
			}
		})
	}
}

// say changes what an op was answered, and what is stored of it.
func (w *told) say(id string, change func(d *gate.Decision)) {
	r := w.record(id)
	change(&r.Decision)
	answer, _ := json.Marshal(r.Decision)
	w.op(id).Answers = []json.RawMessage{answer}
}

// A journal that leaves too much open is said to, and soon.
func TestUndecidable(t *testing.T) {
	w := &told{stored: Stored{Counts: map[gate.LedgerKey]Counts{ledger: {Stops: 7}}}}
	for i := range 60 {
		id := "op" + string(rune('A'+i)) + "."
		w.decide(Op{ID: id, Event: gate.Stop}, gate.Decision{Outcome: []gate.Outcome{gate.Block, gate.Allow}[i%2], StopRejectionCount: 1 - i%2})
		w.unanswered(id)
	}
	found := Check(Rules{}, w.ops, w.stored)
	if len(found) != 1 || found[0].Fault != Undecidable && found[0].Fault != CountWrong || !strings.Contains(found[0].Detail, "judged") {
		t.Errorf("found %v", found)
	}
}
