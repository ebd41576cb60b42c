package redact

import (
	"context"
	"fmt"

	"stopgate/gate"
)

// Store is a [gate.Store] that says which one it is.
type Store interface {
	gate.Store
	gate.Outbox
	fmt.Stringer
}

// Store is a store that is given, and gives, texts redacted: records, and the
// reasons of overrides and of the audit; those too that were stored before a
// pattern was known. Specs stay as their owners wrote them, since they are read to be
// written again.
//
// What else the store can do it still can: a [gate.SpecWatcher] watches, and
// [gate.SharedTexts] are kept as they come: whose they are has masked them, or judges
// read them.
func (r *Redactor) Store(to Store) Store {
	s := store{to, r}
	watcher, watches := to.(gate.SpecWatcher)
	texts, shares := to.(gate.SharedTexts)
	switch {
	case watches && shares:
		return struct {
			store
			gate.SpecWatcher
			gate.SharedTexts
		}{s, watcher, texts}
	case watches:
		return struct {
			store
			gate.SpecWatcher
		}{s, watcher}
	case shares:
		return struct {
			store
			gate.SharedTexts
		}{s, texts}
	}
	return s
}

type store struct {
	Store
	redactor *Redactor
}

// Commit stores the record redacted; what the caller answers with is his own. A
// settling that is repeated while others wait redacts only what it has changed.
func (s store) Commit(ctx context.Context, c gate.Commit) error {
	settle := c.Settle
	var payload gate.Payload
	evidence := map[*gate.Evidence]*gate.Evidence{}
	c.Settle = func(now gate.Counts) (gate.Counts, gate.Record) {
		next, rec := settle(now)
		rec = s.redactor.told(rec)
		if payload == nil {
			payload = s.redactor.JSON(rec.Payload)
		}
		rec.Payload = payload
		for i := range rec.Hooks {
			e := rec.Hooks[i].Evidence
			if _, done := evidence[e]; !done {
				evidence[e] = s.redactor.evidence(e)
			}
			rec.Hooks[i].Evidence = evidence[e]
		}
		return next, rec
	}
	return s.Store.Commit(ctx, c)
}

func (s store) Record(ctx context.Context, id string) (gate.Record, error) {
	rec, err := s.Store.Record(ctx, id)
	if err != nil {
		return rec, err
	}
	return s.redactor.Record(rec), nil
}

func (s store) Records(ctx context.Context, f gate.RecordFilter) ([]gate.RecordSummary, string, error) {
	items, next, err := s.Store.Records(ctx, f)
	for i := range items {
		items[i] = s.redactor.summary(items[i])
	}
	return items, next, err
}

func (s store) Session(ctx context.Context, id string) (gate.SessionState, error) {
	state, err := s.Store.Session(ctx, id)
	for i := range state.Last {
		state.Last[i] = s.redactor.summary(state.Last[i])
	}
	return state, err
}

func (s store) Undelivered(ctx context.Context, sink string, who gate.Lease, see func(gate.Delivery) bool) error {
	return s.Store.Undelivered(ctx, sink, who, func(d gate.Delivery) bool {
		d.Record = s.redactor.Record(d.Record)
		return see(d)
	})
}

func (s store) SetOverride(ctx context.Context, o gate.Override, by gate.Actor) error {
	o.Reason = s.redactor.Text(o.Reason)
	return s.Store.SetOverride(ctx, o, by)
}

func (s store) Override(ctx context.Context, session string) (gate.Override, error) {
	o, err := s.Store.Override(ctx, session)
	o.Reason = s.redactor.Text(o.Reason)
	return o, err
}

func (s store) Audit(ctx context.Context, f gate.AuditFilter) ([]gate.AuditEntry, string, error) {
	entries, next, err := s.Store.Audit(ctx, f)
	for i := range entries {
		entries[i].Reason = s.redactor.Text(entries[i].Reason)
	}
	return entries, next, err
}
