package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"stopgate/store/record"
)

const (
	// sweepEvery is how often what has outlived its time is looked for.
	sweepEvery = time.Minute
	// dropLimit is how many rows one transaction deletes.
	dropLimit = 500
)

// sweeping deletes what has outlived its time until the store is closed. What
// stays, because something failed, is found again.
func (s *Store) sweeping() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ending.Done():
			return
		case <-tick.C:
			_ = s.sweep(s.ending)
		}
	}
}

// sweep deletes records beyond their retention, idempotency keys beyond their
// day, and overrides that are over, in small transactions. Of several replicas that sweep at once one
// does, and a row that is in use waits for the next time.
func (s *Store) sweep(ctx context.Context) error {
	if s.retention > 0 {
		err := s.dropAll(ctx, `DELETE FROM stopgate.evaluations WHERE seq IN (
				SELECT seq FROM stopgate.evaluations WHERE seq < ((`+nowMillis+` - $1::bigint) * 1000000) ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED)`,
			max(s.retention, record.KeyLife))
		if err != nil {
			return err
		}
	}
	err := s.dropAll(ctx, `DELETE FROM stopgate.overrides WHERE sha256(session) IN (
			SELECT sha256(session) FROM stopgate.overrides WHERE until <= `+nowMillis+` - $1::bigint LIMIT $2 FOR UPDATE SKIP LOCKED)`, 0)
	if err != nil {
		return err
	}
	return s.dropAll(ctx, `DELETE FROM stopgate.idempotency WHERE id IN (
			SELECT id FROM stopgate.idempotency WHERE reserved <= `+nowMillis+` - $1::bigint AND (evaluation IS NOT NULL OR lease <= `+nowMillis+`)
			ORDER BY reserved LIMIT $2 FOR UPDATE SKIP LOCKED)`, record.KeyLife)
}

// dropAll repeats a deletion, whose arguments are an age in milliseconds and a
// number of rows, until it finds no more, or another replica is at it.
func (s *Store) dropAll(ctx context.Context, text string, age time.Duration) error {
	for {
		var dropped int64
		err := s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			dropped = 0
			var mine bool
			if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, lockOf("sweep")).Scan(&mine); err != nil || !mine {
				return err
			}
			tag, err := tx.Exec(ctx, text, age.Milliseconds(), dropLimit)
			dropped = tag.RowsAffected()
			return err
		})
		if err != nil || dropped < dropLimit {
			return err
		}
	}
}
