package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
)

// measure is how much the records come to: bytes of those up to a place. It may
// be too much, since others delete too, and is measured anew before anything is
// deleted for it.
type measure struct{ upTo, bytes int64 }

// measuredAtOnce is how many records one statement measures: it reads what lists
// show of them, some 10 MB.
const measuredAtOnce = 10_000

// goOn adds what came since.
func (s *Store) goOn(ctx context.Context, m measure) (measure, error) {
	for {
		var n, bytes int64
		var last *int64
		err := s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			return conn.QueryRow(ctx, `SELECT count(*), coalesce(sum(size), 0)::bigint, max(seq) FROM (
				SELECT seq, `+sizeOf+` AS size FROM stopgate.evaluations AS e WHERE seq > $1 ORDER BY seq LIMIT $2) AS more`, m.upTo, measuredAtOnce).
				Scan(&n, &bytes, &last)
		})
		if err != nil || last == nil {
			return m, err
		}
		m = measure{*last, m.bytes + bytes}
		if n < measuredAtOnce {
			return m, nil
		}
	}
}

// shrink deletes the oldest records until they come to less than they may. What
// is kept: sessions that are in use, and answers that their Idempotency-Key may
// ask for again.
func (s *Store) shrink(ctx context.Context) (err error) {
	if s.measured, err = s.goOn(ctx, s.measured); err != nil || s.measured.bytes <= s.maxBytes {
		return err
	}
	if s.measured, err = s.goOn(ctx, measure{}); err != nil || s.measured.bytes <= s.maxBytes {
		return err
	}
	enough := s.maxBytes / 20 * 19 // a little further, so that the next record does not begin it again
	return s.dropRecords(ctx, `SELECT e.seq FROM stopgate.evaluations AS e, (SELECT (`+nowMillis+` - $1::bigint) * 1000000 AS seq) AS since
		WHERE e.seq < since.seq
			AND NOT EXISTS (SELECT FROM stopgate.evaluations AS n WHERE n.session <> '' AND sha256(n.session) = sha256(e.session) AND n.seq >= since.seq)
			AND NOT EXISTS (SELECT FROM stopgate.idempotency AS i WHERE i.id = e.idempotency)
		ORDER BY e.seq LIMIT $2 FOR UPDATE OF e SKIP LOCKED`, gate.SessionInUse, shrinkLimit, func(_, bytes int64) bool {
		s.measured.bytes -= bytes
		return s.measured.bytes > enough
	})
}

// shrinkTexts deletes the texts that were not added to for longest until all come
// to less than they may, but for those of sessions that are in use.
func (s *Store) shrinkTexts(ctx context.Context) error {
	for {
		var deleted int64
		err := s.sweepTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `DELETE FROM stopgate.texts WHERE key IN (
				SELECT key FROM (SELECT key, touched, sum(bytes) OVER (ORDER BY touched DESC, key) AS newer FROM stopgate.texts) AS t
				WHERE newer > $1 AND touched < `+nowMillis+` - $2::bigint ORDER BY touched, key LIMIT $3)`,
				s.maxTexts, gate.SessionInUse.Milliseconds(), textsAtOnce)
			deleted = tag.RowsAffected()
			return err
		})
		if err != nil || deleted < textsAtOnce {
			return err
		}
	}
}

// textsAtOnce is how many texts one transaction deletes: each may have thousands
// of pieces.
const textsAtOnce = 10
