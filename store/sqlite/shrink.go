package sqlite

import (
	"context"
	"time"

	"stopgate/gate"
	"stopgate/store/record"
)

// shrinkLimit is how many records are deleted at once where size decides: what goes
// too far is at most that.
const shrinkLimit = 50

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
		seqs, err := column[int64](ctx, s.reads, query, before, limit)
		if err != nil || len(seqs) == 0 {
			return err
		}
		if err := s.writer.do(ctx, dropRecords{placesJSON(seqs)}); err != nil {
			return err
		}
	}
}
