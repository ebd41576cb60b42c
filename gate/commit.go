package gate

import (
	"context"
	"errors"
	"time"
)

// commit stores the decision and answers it. If the store fails, or the session
// was erased meanwhile, a block leaves as a block; an allow, of which nothing is on
// record, follows OnGateError, except where no hook matched (DESIGN §2).
//
// Decide calls it without its own ctx's end: a caller that has gone away, or a
// deadline that ended the hooks, does not undo what was decided.
//
// An error means that nothing was stored, with reason: ErrStale, since hooks
// that were skipped must be asked first (seen are then the counts to ask them
// with), or the refusal of an idempotency key.
func (e *evaluation) commit(ctx context.Context) (Decision, error) {
	took := e.gate.Now().Sub(e.began)
	var rec Record
	var moved Counts
	c := Commit{Key: e.ev.ledgerKey(), Seen: e.seen, Idempotency: e.idempotency, Erasure: e.ev.Erasure, Projects: e.first,
		Stale: func(now Counts) bool { moved = now; return e.skippedInVain(now) },
		Settle: func(now Counts) (Counts, Record) {
			d, next := e.resolve(now)
			rec = e.record(d, took)
			return next, rec
		}}
	if !e.counted() {
		c.Key.Session = ""
	}
	err := e.gate.Store.Commit(ctx, c)
	switch code := CodeOf(err); {
	case err == nil:
		e.begun()
	case errors.Is(err, ErrStale) && e.skippedInVain(moved):
		e.seen = moved
		return Decision{}, ErrStale
	case e.idempotency != Request{} && !errors.Is(err, ErrStale) && !errors.Is(err, ErrErased) && (code == CodeConflict || code == CodeIdempotencyMismatch):
		return Decision{}, err
	default:
		if errors.Is(err, ErrErased) {
			e.failed(SessionErased, err)
		}
		e.storeFailed(err)
		d, _ := e.resolve(e.seen)
		rec = e.record(d, took)
	}
	if e.gate.Observe != nil {
		e.gate.Observe(rec)
	}
	return rec.Decision, nil
}

func (e *evaluation) record(d Decision, took time.Duration) Record {
	return Record{Decision: d, Time: e.began.UTC(), Agent: e.ev.Agent, Session: e.ev.Session, SubAgent: e.ev.SubAgent,
		Event: e.ev.Name, Protocol: e.ev.Protocol, HostVersion: e.ev.HostVersion, HostUntried: e.untried(),
		Tool: e.ev.ToolName, DryRun: e.ev.Dry, DurationMS: took.Milliseconds(), Asked: e.asked(), Payload: e.ev.Payload}
}
