package sqlite

import (
	"context"
	"sync"
	"time"

	"stopgate/gate"
	"stopgate/store/record"
)

const (
	// sweepEvery is how often what has outlived its time is looked for.
	sweepEvery = time.Minute
	// checkpointBytes is about how much is written between two checkpoints:
	// enough that the pages at the tables' ends, which every commit changes,
	// are moved once for thousands of commits.
	checkpointBytes = 8 << 20
	// checkpointPages is how long the WAL may be, in pages of 4 KiB, before the
	// writer itself finishes a checkpoint so that the WAL starts anew.
	checkpointPages = 4096
	// pageBytes is SQLite's page size, left at its default.
	pageBytes = 4096
)

// upkeep is the store's work in the background: moving the WAL into the
// database outside the way of commits, and deleting what is too old.
type upkeep struct {
	store *Store
	end   context.CancelFunc
	done  sync.WaitGroup
}

func startUpkeep(s *Store) *upkeep {
	ctx, end := context.WithCancel(context.Background())
	u := &upkeep{store: s, end: end}
	u.done.Go(func() { u.sweeping(ctx) })
	if s.opt.Lock {
		u.done.Go(func() { u.checkpointing(ctx) })
	}
	return u
}

func (u *upkeep) stop() {
	u.end()
	u.done.Wait()
}

// checkpointing moves the WAL whenever the writer says that it has grown. The
// bulk is moved here, beside the commits; only what they add meanwhile is left
// to the writer, since a WAL starts anew only when all of it was moved. An
// error is no harm: the WAL stays longer, and it is tried again.
func (u *upkeep) checkpointing(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.store.writer.grown:
		}
		if u.store.writer.checkpoint.Load() {
			continue // the writer is about to finish: it must not be in its way
		}
		var busy, pages, moved int64
		err := u.store.reads.QueryRowContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &pages, &moved)
		if err == nil && pages > checkpointPages {
			u.store.writer.checkpoint.Store(true)
		}
	}
}

// emptyWAL moves all of the WAL and cuts it to nothing, unless readers stand on
// it for longer than a second.
func (u *upkeep) emptyWAL() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = u.store.reads.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
}

func (u *upkeep) sweeping(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		_ = u.store.sweep(ctx) // what stays is found again at the next tick
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweep deletes records beyond their retention and idempotency keys beyond
// their day, in small transactions. It writes only when there is something.
func (s *Store) sweep(ctx context.Context) error {
	now := s.opt.Now()
	if s.opt.Retention > 0 {
		err := s.dropOldest(ctx, func() (bool, error) { return true, nil },
			`SELECT seq FROM evaluations WHERE seq < ? ORDER BY seq LIMIT ?`, record.Nanos(now.Add(-max(s.opt.Retention, record.KeyLife))), dropLimit)
		if err != nil {
			return err
		}
	}
	if s.opt.MaxBytes > 0 {
		if err := s.shrink(ctx, now); err != nil {
			return err
		}
	}
	return s.dropAll(ctx, `SELECT EXISTS (SELECT 1 FROM idempotency WHERE seq = (SELECT min(seq) FROM idempotency) AND reserved <= ?)`,
		dropKeys(now.Add(-record.KeyLife).UnixMilli(), now.UnixMilli()))
}

// shrink deletes the oldest records until the file's pages that are in use are
// fewer than they may be. What is kept: sessions that are in use, and answers
// that their Idempotency-Key may ask for again.
func (s *Store) shrink(ctx context.Context, now time.Time) error {
	over := func(most int64) (bool, error) {
		var used int64
		err := s.reads.QueryRowContext(ctx, `SELECT (page_count - freelist_count) * page_size
			FROM pragma_page_count, pragma_freelist_count, pragma_page_size`).Scan(&used)
		return used > most, explain(err)
	}
	if many, err := over(s.opt.MaxBytes); err != nil || !many {
		return err
	}
	// A little further, so that the next record does not begin it again.
	return s.dropOldest(ctx, func() (bool, error) { return over(s.opt.MaxBytes / 20 * 19) },
		`SELECT e.seq FROM evaluations AS e WHERE e.seq < ?1
			AND NOT EXISTS (SELECT 1 FROM evaluations AS n WHERE n.session <> '' AND n.session = e.session AND n.seq >= ?1)
			AND NOT EXISTS (SELECT 1 FROM idempotency AS i WHERE i.id = e.idempotency)
			ORDER BY e.seq LIMIT ?2`, record.Nanos(now.Add(-gate.SessionInUse)), shrinkLimit)
}

// dropOldest deletes the records that a query finds, as long as due says that
// there is more to do. The query has the writer wait for nothing: it runs beside
// it.
func (s *Store) dropOldest(ctx context.Context, due func() (bool, error), query string, before, limit int64) error {
	for {
		if more, err := due(); err != nil || !more {
			return err
		}
		seqs, err := s.seqs(ctx, query, before, limit)
		if err != nil || len(seqs) == 0 {
			return err
		}
		if err := s.writer.do(ctx, dropRecords{placesJSON(seqs)}); err != nil {
			return err
		}
	}
}

func (s *Store) seqs(ctx context.Context, query string, args ...any) (seqs []int64, err error) {
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return nil, explain(err)
		}
		seqs = append(seqs, seq)
	}
	return seqs, explain(rows.Err())
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

const (
	// dropLimit is how many rows one drop deletes.
	dropLimit = 200
	// shrinkLimit is the same where size decides: what goes too far is at most that.
	shrinkLimit = 50
)

func (w *drop) apply(c *conn) (err error) {
	for _, text := range w.texts {
		if w.dropped, err = c.execCount(text, w.args...); err != nil {
			return err
		}
	}
	return nil
}

// dropKeys looks at the oldest reservations only; those that are still running
// stay.
func dropKeys(reserved, now int64) *drop {
	return &drop{args: []any{reserved, now, int64(dropLimit)}, texts: []string{
		`DELETE FROM idempotency WHERE seq IN (SELECT seq FROM idempotency ORDER BY seq LIMIT ?3)
			AND reserved <= ?1 AND (evaluation IS NOT NULL OR lease <= ?2)`,
	}}
}
