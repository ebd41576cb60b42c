package record

import (
	"iter"

	"stopgate/gate"
)

// Dump is everything that a store holds, as of one moment, for another to take
// over, but the erasures, which are remembered for evaluations that run: none does.
// Each sequence is read once, and ends with its first error.
type Dump struct {
	Counts      iter.Seq2[Counts, error]
	Evaluations iter.Seq2[Evaluation, error]
	Hooks       iter.Seq2[Hook, error]
	Specs       iter.Seq2[Spec, error] // every version, in order of Seq
	Activations iter.Seq2[Activation, error]
	Keys        iter.Seq2[Key, error]
	Claims      iter.Seq2[Claim, error]
	APIKeys     iter.Seq2[APIKey, error]
	Changes     iter.Seq2[Change, error]
	Overrides   iter.Seq2[Override, error]
	Sinks       iter.Seq2[Sink, error]
	Unsent      iter.Seq2[Unsent, error] // in their order
	Rows        Rows                     // how many there are
}

// Rows counts what a [Dump] has.
type Rows struct {
	Counts, Evaluations, Hooks, Specs, Activations, Keys int64
	Claims, APIKeys, Changes, Overrides, Sinks, Unsent   int64
}

// All is how many rows there are together.
func (r Rows) All() int64 {
	return r.Counts + r.Evaluations + r.Hooks + r.Specs + r.Activations + r.Keys + r.Claims + r.APIKeys + r.Changes + r.Overrides + r.Sinks + r.Unsent
}

// Counts is one row of the ledger.
type Counts struct {
	gate.LedgerKey
	gate.Counts
}

// Evaluation is one record, its Hooks left out, and the key that it answers.
type Evaluation struct {
	Row
	Idempotency []byte // nil: none
}

// Hook took part in the evaluation at Seq.
type Hook struct {
	Seq  int64
	Name string
}

// Spec is a version with its place among all, and the place of the version that
// created it.
type Spec struct {
	gate.StoredSpec
	Seq, Born int64
}

// Activation is a hook that was switched in a session.
type Activation struct {
	Session, Hook, By string
	Active            bool
	At                int64 // Unix milliseconds
}

// Key is an idempotency key.
type Key struct {
	ID, Body        []byte
	Reserved, Lease int64  // Unix milliseconds
	Evaluation      []byte // nil: not answered
}

// Claim is an agent that a session belongs to.
type Claim struct {
	Session, Agent string
	At             int64  // Unix milliseconds
	Projects       string // see [EncodeProjects]
}

// Change is an audit entry with its place; At and Until stand for its times.
type Change struct {
	gate.AuditEntry
	Seq, At, Until int64 // the times in Unix milliseconds; Until 0 for none
}

// Sink is where records are sent; Seen is in Unix milliseconds.
type Sink struct {
	Name          string
	Seen, Dropped int64
}

// Unsent is an evaluation that a sink does not have yet.
type Unsent struct {
	Sink  string
	Seq   int64
	Aside bool
}
