// Package chaos holds stopgate to what it promises under faults: it compares what
// clients saw with what is stored.
//
// [Check] is a function of values: of a [Journal], in which every client writes
// what it asks before it asks and what it was answered after that, outside the
// server; and of [Stored], what the service tells of the same sessions once the
// faults are over. What does not fit is a [Violation].
//
// The tests of this package are the other half: they start real servers, load
// them, kill them, restart their database, fill their disk, move their clock and
// cut their power (docs/proof.md; `make chaos`).
package chaos

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"stopgate/gate"
)

// Kind is what a client asks for.
type Kind string

const (
	Evaluate   Kind = "evaluate"   // one event, natively or as a host
	Append     Kind = "append"     // lines to a transcript
	Activate   Kind = "activate"   // an agent-level hook, in one session
	Deactivate Kind = "deactivate" // the same
	PutSpec    Kind = "put_spec"   // of an agent
)

// Op is one thing that a client wanted, as it saw it. A client that gets no
// answer may send it again, under the same Idempotency-Key: that is still one Op.
type Op struct {
	ID      string `json:"id"` // stands in what is sent, so that it is found in what is stored
	Kind    Kind   `json:"kind"`
	Session string `json:"session,omitempty"`

	Agent    string         `json:"agent,omitempty"` // Evaluate
	SubAgent string         `json:"sub_agent,omitempty"`
	Event    gate.EventName `json:"event,omitempty"`
	Key      string         `json:"key,omitempty"` // Idempotency-Key

	Lines []string `json:"lines,omitempty"` // Append
	Name  string   `json:"name,omitempty"`  // of the hook, or of the spec

	// Sent and Answered are moments in the one order of a journal. Sent is
	// before the first byte left, Answered after the first answer that
	// acknowledges came; 0: none ever did.
	Sent     int64 `json:"sent"`
	Answered int64 `json:"answered,omitempty"`

	// Answers are all that acknowledged an evaluation, natively: the bodies.
	Answers []json.RawMessage `json:"answers,omitempty"`
	// Outcome and Reason are what a host was told.
	Outcome gate.Outcome `json:"outcome,omitempty"`
	Reason  string       `json:"reason,omitempty"`
	// Total is how many lines the transcript had after an Append, as answered.
	Total int `json:"total,omitempty"`
	// ETag of the spec that was put, as answered.
	ETag string `json:"etag,omitempty"`
}

// acknowledged reports whether its client was told that it came about.
func (o *Op) acknowledged() bool { return o.Answered > 0 }

// before reports whether the client of o had its answer before p was sent, so
// that whatever is true of o was true when p began.
func (o *Op) before(p *Op) bool { return o.acknowledged() && o.Answered < p.Sent }

// Journal is what all clients saw, in one order. It is safe for concurrent use.
type Journal struct {
	mu    sync.Mutex
	clock int64
	ops   []*Op
}

// Send writes an op down, before it is sent, and gives it its ID.
func (j *Journal) Send(op Op) *Op {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clock++
	op.Sent = j.clock
	if op.ID == "" {
		op.ID = "op" + strconv.Itoa(len(j.ops)) + "."
	}
	j.ops = append(j.ops, &op)
	return &op
}

// Answer writes down an answer that acknowledges the op: what see adds to it.
func (j *Journal) Answer(op *Op, see func(op *Op)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clock++
	if op.Answered == 0 {
		op.Answered = j.clock
	}
	see(op)
}

// Ops are copies of all that was written down, in the order of Sent.
func (j *Journal) Ops() []Op {
	j.mu.Lock()
	defer j.mu.Unlock()
	ops := make([]Op, len(j.ops))
	for i, op := range j.ops {
		ops[i] = *op
		ops[i].Answers = slices.Clone(op.Answers)
	}
	return ops
}
