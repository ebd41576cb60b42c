package sqlite

import (
	"context"

	"stopgate/store/record"
)

// sweep deletes records beyond their retention and what is known of their
// sessions, idempotency keys and erasures beyond their day, and overrides that are
// over, in small transactions. It writes only when there is something.
func (s *Store) sweep(ctx context.Context) error {
	now := s.opt.Now()
	if s.opt.Retention > 0 {
		before := now.Add(-max(s.opt.Retention, record.KeyLife))
		err := s.dropOldest(ctx, func() (bool, error) { return true, nil },
			`SELECT seq FROM evaluations WHERE seq < ? ORDER BY seq LIMIT ?`, record.Nanos(before), dropLimit)
		if err == nil {
			err = s.sweepSessions(ctx, before.UnixMilli(), now.UnixMilli())
		}
		if err != nil {
			return err
		}
	}
	if s.opt.MaxBytes > 0 {
		if err := s.shrink(ctx, now); err != nil {
			return err
		}
	}
	if err := s.dropAll(ctx, `SELECT EXISTS (SELECT 1 FROM overrides WHERE until <= ?)`, dropOverrides(now.UnixMilli())); err != nil {
		return err
	}
	day := now.Add(-record.KeyLife).UnixMilli()
	err := s.dropAll(ctx, `SELECT EXISTS (SELECT 1 FROM idempotency WHERE seq = (SELECT min(seq) FROM idempotency) AND reserved <= ?)`,
		dropKeys(day, now.UnixMilli()))
	if err != nil {
		return err
	}
	return s.dropAll(ctx, `SELECT EXISTS (SELECT 1 FROM erasures WHERE at <= ?)`, dropErasures(day))
}

// dropAll repeats a drop until it finds no more.
func (s *Store) dropAll(ctx context.Context, due string, d *drop) error {
	var some bool
	if err := s.reads.QueryRowContext(ctx, due, d.args[0]).Scan(&some); err != nil || !some {
		return explain(err)
	}
	for {
		if err := s.writer.do(ctx, d); err != nil || d.dropped == 0 {
			return err
		}
	}
}

// drop deletes a bounded number of rows, so that no commit waits long for it.
type drop struct {
	texts   []string
	args    []any
	dropped int64 // rows that the last text deleted
}

// dropLimit is how many rows one drop deletes.
const dropLimit = 200

func (w *drop) apply(c *conn) (err error) {
	for _, text := range w.texts {
		if w.dropped, err = c.execCount(text, w.args...); err != nil {
			return err
		}
	}
	return nil
}

func dropOverrides(now int64) *drop {
	return &drop{args: []any{now, int64(dropLimit)}, texts: []string{
		`DELETE FROM overrides WHERE session IN (SELECT session FROM overrides WHERE until <= ?1 LIMIT ?2)`,
	}}
}

// dropKeys looks at the oldest reservations only; those that are still running
// stay.
func dropKeys(reserved, now int64) *drop {
	return &drop{args: []any{reserved, now, int64(dropLimit)}, texts: []string{
		`DELETE FROM idempotency WHERE seq IN (SELECT seq FROM idempotency ORDER BY seq LIMIT ?3)
			AND reserved <= ?1 AND (evaluation IS NOT NULL OR lease <= ?2)`,
	}}
}

func dropErasures(at int64) *drop {
	return &drop{args: []any{at, int64(dropLimit)}, texts: []string{
		`DELETE FROM erasures WHERE seq IN (SELECT seq FROM erasures WHERE at <= ?1 ORDER BY seq LIMIT ?2)`,
	}}
}

// unrecorded is the condition that a session has no record any more.
func unrecorded(session string) string {
	return `NOT EXISTS (SELECT 1 FROM evaluations AS e WHERE e.session <> '' AND e.session = ` + session + `)`
}

// sweepSessions forgets the sessions whose claims are older than before and that
// have no record any more, unless their conversation is kept: who could use that
// still can. Then they are looked at again after as long.
func (s *Store) sweepSessions(ctx context.Context, before, now int64) error {
	for {
		idle, err := s.idleSessions(ctx, before)
		if err != nil || len(idle) == 0 {
			return err
		}
		w := forgetSessions{before: before, now: now, keep: make(map[string]bool, len(idle))}
		for _, id := range idle {
			if w.keep[id], err = s.opt.Conversation(ctx, id); err != nil {
				return err
			}
		}
		if err := s.writer.do(ctx, w); err != nil {
			return err
		}
	}
}

func (s *Store) idleSessions(ctx context.Context, before int64) ([]string, error) {
	return column[string](ctx, s.reads, `SELECT DISTINCT session FROM session_agents AS a WHERE at < ? AND `+unrecorded("a.session")+` LIMIT ?`, before, dropLimit)
}

// forgetSessions removes what is known of sessions, or keeps it once more.
type forgetSessions struct {
	before, now int64
	keep        map[string]bool
}

func (w forgetSessions) apply(c *conn) error {
	for id, keep := range w.keep {
		texts := []string{
			`DELETE FROM counts WHERE session = ?1 AND ` + unrecorded("?1"),
			`DELETE FROM session_agents WHERE session = ?1 AND at < ?2 AND ` + unrecorded("?1"),
		}
		args := []any{id, w.before}
		if keep {
			texts, args = []string{`UPDATE session_agents SET at = ?2 WHERE session = ?1`}, []any{id, w.now}
		}
		for _, text := range texts {
			if err := c.exec(text, args...); err != nil {
				return err
			}
		}
	}
	return nil
}
