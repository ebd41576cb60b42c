package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"stopgate/gate"
	"stopgate/store/record"
)

var _ gate.Outbox = (*Store)(nil)

// KeepSinks says that these sinks are in use, and forgets those that nobody has
// said this of for [gate.SinkLife].
func (s *Store) KeepSinks(ctx context.Context, names []string) ([]gate.SinkState, error) {
	now := s.opt.Now()
	w := &keepSinks{names: names, now: now.UnixMilli(), unseen: now.Add(-gate.SinkLife).UnixMilli()}
	err := s.writer.do(ctx, w)
	return w.forgotten, err
}

type keepSinks struct {
	names       []string
	now, unseen int64
	forgotten   []gate.SinkState
}

func (w *keepSinks) apply(c *conn) error {
	for _, name := range w.names {
		err := c.exec(`INSERT INTO sinks (name, seen) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET seen = ?2`, name, w.now)
		if err != nil {
			return err
		}
	}
	w.forgotten = nil
	const old = ` FROM sinks WHERE seen < ?1`
	err := c.each(func(v []driver.Value) {
		w.forgotten = append(w.forgotten, gate.SinkState{Name: v[0].(string), Pending: v[1].(int64), Dropped: v[2].(int64)})
	}, 3, `SELECT name, (SELECT count(*) FROM outbox WHERE sink = name), dropped`+old, w.unseen)
	if err != nil || len(w.forgotten) == 0 {
		return err
	}
	for _, text := range []string{`DELETE FROM outbox WHERE sink IN (SELECT name` + old + `)`, `DELETE` + old} {
		if err := c.exec(text, w.unseen); err != nil {
			return err
		}
	}
	return nil
}

// Undelivered hands what a sink lacks. Only one process delivers from this
// store, the one that has locked the directory, so that its lease is for ever.
func (s *Store) Undelivered(ctx context.Context, sink string, _ gate.Lease, see func(gate.Delivery) bool) error {
	rows, err := s.reads.QueryContext(ctx, `SELECT o.place, `+listColumns+`, e.evidence, e.payload
		FROM outbox AS o JOIN evaluations AS e ON e.seq = o.seq WHERE o.sink = ? AND o.aside = 0 ORDER BY o.place`, sink)
	if err != nil {
		return explain(err)
	}
	defer rows.Close()
	for bytes := 0; bytes < gate.PageBytes && rows.Next(); {
		var d gate.Delivery
		var w record.Row
		if err := rows.Scan(&d.Place, &w.Seq, &w.ID, &w.Agent, &w.Session, &w.Event, &w.Decision, &w.Head, &w.Evidence, &w.Payload); err != nil {
			return explain(err)
		}
		if d.Record, err = w.Decode(); err != nil {
			return err
		}
		if bytes += w.Size(); !see(d) {
			return nil
		}
	}
	return explain(rows.Err())
}

// Delivered says that the sink has those.
func (s *Store) Delivered(ctx context.Context, sink string, places []int64) error {
	return s.writer.do(ctx, delivered{sink, placesJSON(places)})
}

type delivered struct{ sink, places string }

func (w delivered) apply(c *conn) error {
	return c.exec(`DELETE FROM outbox WHERE place IN (SELECT value FROM json_each(?2)) AND sink = ?1`, w.sink, w.places)
}

// SetAside says that the sink refuses that record itself.
func (s *Store) SetAside(ctx context.Context, sink string, place int64) error {
	return s.writer.do(ctx, setAside{sink, place})
}

type setAside struct {
	sink  string
	place int64
}

func (w setAside) apply(c *conn) error {
	return c.exec(`UPDATE outbox SET aside = 1 WHERE place = ?2 AND sink = ?1`, w.sink, w.place)
}

// SendAgain hands out again what is set aside.
func (s *Store) SendAgain(ctx context.Context, sink string) (int64, error) {
	w := &sendAgain{sink: sink}
	err := s.writer.do(ctx, w)
	return w.records, err
}

type sendAgain struct {
	sink    string
	records int64
}

func (w *sendAgain) apply(c *conn) error {
	w.records = 0
	const aside = ` WHERE sink = ?1 AND aside = 1`
	err := c.each(func(v []driver.Value) { w.records = v[0].(int64) }, 1, `SELECT count(*) FROM outbox`+aside, w.sink)
	if err != nil {
		return err
	}
	return c.exec(`UPDATE outbox SET aside = 0`+aside, w.sink)
}

// placesJSON is a list of numbers as one argument.
func placesJSON(numbers []int64) string {
	b, _ := json.Marshal(numbers) // cannot fail
	return string(b)
}

// ReleaseSink does nothing: see Undelivered.
func (s *Store) ReleaseSink(context.Context, string, string) error { return nil }

// SinkStates are those of all sinks, by name.
func (s *Store) SinkStates(ctx context.Context) ([]gate.SinkState, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT name, dropped, (SELECT count(*) FROM outbox WHERE sink = name AND aside = 0),
		(SELECT count(*) FROM outbox WHERE sink = name AND aside = 1),
		coalesce((SELECT seq FROM outbox WHERE sink = name AND aside = 0 ORDER BY place LIMIT 1), 0) FROM sinks ORDER BY name`)
	if err != nil {
		return nil, explain(err)
	}
	defer rows.Close()
	states := []gate.SinkState{}
	for rows.Next() {
		var state gate.SinkState
		var oldest int64
		if err := rows.Scan(&state.Name, &state.Dropped, &state.Pending, &state.Aside, &oldest); err != nil {
			return nil, explain(err)
		}
		if state.Pending > 0 {
			state.Oldest = time.Unix(0, oldest).UTC()
		}
		states = append(states, state)
	}
	return states, explain(rows.Err())
}

// dropRecords deletes records that have had their time. Those that a sink does
// not have are counted as lost to it.
type dropRecords struct{ seqs string }

func (w dropRecords) apply(c *conn) error {
	const gone = ` WHERE seq IN (SELECT value FROM json_each(?1))`
	for _, text := range []string{
		`UPDATE sinks SET dropped = dropped + (SELECT count(*) FROM outbox` + gone + ` AND sink = name)
			WHERE name IN (SELECT sink FROM outbox` + gone + `)`,
		`DELETE FROM outbox` + gone,
		`DELETE FROM evaluation_hooks` + gone,
		`DELETE FROM evaluations` + gone,
	} {
		if err := c.exec(text, w.seqs); err != nil {
			return fmt.Errorf("records beyond their retention: %w", err)
		}
	}
	return nil
}
