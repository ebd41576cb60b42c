package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stopgate/gate"
)

// Fault names what is wrong.
type Fault string

const (
	DecisionLost    Fault = "decision_lost"    // acknowledged, and not stored
	DecisionDoubled Fault = "decision_doubled" // stored more than once
	DecisionChanged Fault = "decision_changed" // stored is another than was answered
	DecisionOfNone  Fault = "decision_of_none" // stored, and nobody asked
	AnswerChanged   Fault = "answer_changed"   // a repeat under the same key was answered otherwise
	HookIgnored     Fault = "hook_ignored"     // active in the session, and not asked; or the other way round

	CountWrong  Fault = "count_wrong" // no order of the decisions explains the counts
	CapPassed   Fault = "cap_passed"  // one does, if caps are no caps
	Undecidable Fault = "undecidable" // too many orders: the journal is too long for this checker

	LineLost    Fault = "line_lost"    // acknowledged, and not there
	LineDoubled Fault = "line_doubled" // there more than once
	LineMoved   Fault = "line_moved"   // out of order, torn, or not where the answer said
	LineOfNone  Fault = "line_of_none" // there, and nobody sent it

	ChangeLost    Fault = "change_lost"    // acknowledged, and not in force
	AuditLost     Fault = "audit_lost"     // a change without its entry
	AuditDoubled  Fault = "audit_doubled"  // more entries than changes
	AuditUnlinked Fault = "audit_unlinked" // versions that do not follow each other
)

// Violation is one promise that was not kept.
type Violation struct {
	Fault  Fault
	Detail string
}

func (v Violation) String() string { return string(v.Fault) + ": " + v.Detail }

// Rules are what the checker has to know of the agents.
type Rules struct {
	// Cap by agent is how many rejections by prompt hooks one loop may have;
	// [gate.DefaultMaxRejections] where there is none.
	Cap map[string]int
	// OnDemand is the agent-level hook that clients switch; it is asked on
	// PreToolUse. Empty: there is none.
	OnDemand string
	// KeysEnd: the clocks were so far apart that an Idempotency-Key may have ended
	// while its client still sent (DESIGN §5: kept 24 h). What is sent under it then
	// is a new event, decided and counted once more.
	KeysEnd bool
}

// Check compares what clients saw with what is stored, and answers what does not
// fit, in an order that depends on nothing else. It changes neither.
func Check(rules Rules, ops []Op, stored Stored) []Violation {
	c := check{rules: rules, stored: stored, ops: ops, byOp: map[string][]*gate.Record{}}
	c.decisions()
	c.counts()
	c.transcripts()
	c.switches()
	c.specs()
	return c.found
}

type check struct {
	rules  Rules
	ops    []Op
	stored Stored
	byOp   map[string][]*gate.Record
	found  []Violation
}

func (c *check) violated(f Fault, format string, args ...any) {
	c.found = append(c.found, Violation{f, fmt.Sprintf(format, args...)})
}

// decisions: each that was acknowledged is stored once and as it was answered;
// one that was not is stored once at most.
func (c *check) decisions() {
	asked := map[string]bool{}
	for i := range c.ops {
		asked[c.ops[i].ID] = c.ops[i].Kind == Evaluate
	}
	for i := range c.stored.Records {
		r := &c.stored.Records[i]
		id := opOf(r)
		if !asked[id] {
			c.violated(DecisionOfNone, "record %s of session %q has op %q", r.EvaluationID, r.Session, id)
			continue
		}
		c.byOp[id] = append(c.byOp[id], r)
	}
	for i := range c.ops {
		if op := &c.ops[i]; op.Kind == Evaluate {
			c.decision(op, c.byOp[op.ID])
		}
	}
}

func (c *check) decision(op *Op, records []*gate.Record) {
	if c.rules.KeysEnd && op.Key != "" {
		c.decisionsOfEnded(op, records)
		return
	}
	if len(records) > 1 {
		c.violated(DecisionDoubled, "%s has %d records", op.ID, len(records))
	}
	for i := 1; i < len(op.Answers); i++ {
		if !bytes.Equal(bytes.TrimSpace(op.Answers[i]), bytes.TrimSpace(op.Answers[0])) {
			c.violated(AnswerChanged, "%s: %s, and again %s", op.ID, op.Answers[0], op.Answers[i])
		}
	}
	if len(records) == 0 {
		if op.acknowledged() {
			c.violated(DecisionLost, "%s (%s of %q in %q) was answered and has no record", op.ID, op.Event, op.Agent, op.Session)
		}
		return
	}
	c.ofOp(op, records[0])
	if op.acknowledged() {
		c.sameAnswer(op, records[0])
	}
}

// decisionsOfEnded: under a key that may have ended each answer is one of the
// decisions that are stored, however many these are.
func (c *check) decisionsOfEnded(op *Op, records []*gate.Record) {
	for _, r := range records {
		c.ofOp(op, r)
	}
	for _, answer := range op.Answers {
		if !slices.ContainsFunc(records, func(r *gate.Record) bool { return isAnswer(answer, r) }) {
			c.violated(DecisionLost, "%s was answered %s, and none of its %d records says so", op.ID, answer, len(records))
		}
	}
}

// ofOp: a record is of what was asked.
func (c *check) ofOp(op *Op, r *gate.Record) {
	if r.Agent != op.Agent || r.Session != op.Session || r.Event != op.Event || r.SubAgent != op.SubAgent {
		c.violated(DecisionChanged, "%s: its record is of %s, %q, %q, %q", op.ID, r.Event, r.Agent, r.Session, r.SubAgent)
	}
	c.askedOnDemand(op, r)
}

// sameAnswer: what was answered is what is stored, evidence left out.
func (c *check) sameAnswer(op *Op, r *gate.Record) {
	if len(op.Answers) == 0 { // a host, which is told less
		if op.Outcome != r.Outcome || op.Outcome == gate.Block && strings.TrimSpace(op.Reason) != strings.TrimSpace(r.Reason) {
			c.violated(DecisionChanged, "%s was answered %s (%q), stored is %s (%q)", op.ID, op.Outcome, op.Reason, r.Outcome, r.Reason)
		}
		return
	}
	if !isAnswer(op.Answers[0], r) {
		c.violated(DecisionChanged, "%s was answered %s, stored is %s", op.ID, op.Answers[0], canonical(r.Decision))
	}
}

// isAnswer reports whether a native answer says what the record does.
func isAnswer(answer json.RawMessage, r *gate.Record) bool {
	var d gate.Decision
	return json.Unmarshal(answer, &d) == nil && canonical(d) == canonical(r.Decision)
}

func canonical(d gate.Decision) string {
	b, _ := json.Marshal(d.WithoutEvidence()) // a struct of texts and numbers
	return string(b)
}

// askedOnDemand: a hook that was switched before the op was sent, and not again
// before it was answered, is asked or not accordingly.
func (c *check) askedOnDemand(op *Op, r *gate.Record) {
	if c.rules.OnDemand == "" || op.Event != gate.PreToolUse || !op.acknowledged() {
		return
	}
	may := c.states(op.Session, c.rules.OnDemand, op)
	asked := slices.ContainsFunc(r.Hooks, func(v gate.Verdict) bool { return v.Name == c.rules.OnDemand })
	if !may[asked] {
		c.violated(HookIgnored, "%s: hook %q asked: %t, active: %t", op.ID, c.rules.OnDemand, asked, !asked)
	}
}

// ledgers are the keys under which something was counted or is stored.
func (c *check) ledgers() map[gate.LedgerKey][]*Op {
	of := map[gate.LedgerKey][]*Op{}
	for key := range c.stored.Counts {
		of[key] = nil
	}
	for i := range c.ops {
		if op := &c.ops[i]; op.Kind == Evaluate && len(c.byOp[op.ID]) > 0 {
			key := gate.LedgerKey{Agent: op.Agent, Session: op.Session, SubAgent: op.SubAgent}
			of[key] = append(of[key], op)
		}
	}
	return of
}

// inOrder are the entries of a map of ledgers, in an order that is always the same.
func inOrder[V any](m map[gate.LedgerKey]V) []gate.LedgerKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b gate.LedgerKey) int {
		return strings.Compare(a.Session+"\x00"+a.Agent+"\x00"+a.SubAgent, b.Session+"\x00"+b.Agent+"\x00"+b.SubAgent)
	})
}
