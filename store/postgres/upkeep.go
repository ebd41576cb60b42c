package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/store/record"
)

const (
	// sweepEvery is how often what has outlived its time is looked for.
	sweepEvery = time.Minute
	// dropLimit is how many rows one transaction deletes.
	dropLimit = 500
	// shrinkLimit is the same where size decides: what goes too far is at most that.
	shrinkLimit = 50
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

// sweep deletes records beyond their retention and what is known of their
// sessions, idempotency keys and erasures beyond their day, and overrides that are
// over, in small transactions. Of several replicas that sweep at once one does, and a
// row that is in use waits for the next time.
func (s *Store) sweep(ctx context.Context) error {
	if s.retention > 0 {
		age := max(s.retention, record.KeyLife)
		err := s.dropRecords(ctx, `SELECT seq FROM stopgate.evaluations WHERE seq < ((`+nowMillis+` - $1::bigint) * 1000000)
			ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED`, age, dropLimit, func(n, _ int64) bool { return n == dropLimit })
		if err == nil {
			err = s.sweepSessions(ctx, age)
		}
		if err != nil {
			return err
		}
	}
	if s.maxBytes > 0 {
		if err := s.shrink(ctx); err != nil {
			return err
		}
	}
	if s.maxTexts > 0 {
		if err := s.shrinkTexts(ctx); err != nil {
			return err
		}
	}
	err := s.dropAll(ctx, `DELETE FROM stopgate.overrides WHERE sha256(session) IN (
			SELECT sha256(session) FROM stopgate.overrides WHERE until <= `+nowMillis+` - $1::bigint LIMIT $2 FOR UPDATE SKIP LOCKED)`, 0)
	if err != nil {
		return err
	}
	err = s.dropAll(ctx, `DELETE FROM stopgate.idempotency WHERE id IN (
			SELECT id FROM stopgate.idempotency WHERE reserved <= `+nowMillis+` - $1::bigint AND (evaluation IS NOT NULL OR lease <= `+nowMillis+`)
			ORDER BY reserved LIMIT $2 FOR UPDATE SKIP LOCKED)`, record.KeyLife)
	if err != nil {
		return err
	}
	return s.dropAll(ctx, `DELETE FROM stopgate.erasures WHERE session IN (
			SELECT session FROM stopgate.erasures WHERE at <= `+nowMillis+` - $1::bigint LIMIT $2 FOR UPDATE SKIP LOCKED)`, record.KeyLife)
}

// dropRecords deletes the records that a query picks, whose arguments are an age
// in milliseconds and a number of rows, as long as goOn says so of how many were
// deleted and how many bytes they had. What a sink does not have yet is counted
// as lost to it.
func (s *Store) dropRecords(ctx context.Context, pick string, age time.Duration, limit int, goOn func(n, bytes int64) bool) error {
	for {
		var dropped, bytes int64
		err := s.sweepTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, `WITH old AS (`+pick+`),
				unsent AS (DELETE FROM stopgate.outbox WHERE seq IN (SELECT seq FROM old) RETURNING sink),
				lost AS (UPDATE stopgate.sinks AS s SET dropped = s.dropped + n
					FROM (SELECT sink, count(*) AS n FROM unsent GROUP BY sink) AS u WHERE s.name = u.sink),
				gone AS (DELETE FROM stopgate.evaluations AS e WHERE e.seq IN (SELECT seq FROM old) RETURNING `+sizeOf+` AS size)
				SELECT count(*), coalesce(sum(size), 0)::bigint FROM gone`, age.Milliseconds(), limit).Scan(&dropped, &bytes)
		})
		if err != nil || dropped == 0 || !goOn(dropped, bytes) {
			return err
		}
	}
}

// dropAll repeats a deletion, whose arguments are an age in milliseconds and a
// number of rows, until it finds no more, or another replica is at it.
func (s *Store) dropAll(ctx context.Context, text string, age time.Duration) error {
	for {
		var dropped int64
		err := s.sweepTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, text, age.Milliseconds(), dropLimit)
			dropped = tag.RowsAffected()
			return err
		})
		if err != nil || dropped < dropLimit {
			return err
		}
	}
}

// unrecorded is the condition that a session has no record any more.
func unrecorded(session string) string {
	return `NOT EXISTS (SELECT FROM stopgate.evaluations AS e WHERE e.session <> '' AND sha256(e.session) = sha256(` + session + `))`
}

// sweepSessions forgets the sessions whose claims are older than an age and that
// have no record any more, unless their conversation is kept: who could use that
// still can. Then they are looked at again after as long.
func (s *Store) sweepSessions(ctx context.Context, age time.Duration) error {
	for {
		var idle []string
		err := s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			rows, err := conn.Query(ctx, `SELECT DISTINCT session FROM stopgate.session_agents AS a
				WHERE at < `+nowMillis+` - $1::bigint AND `+unrecorded(`a.session`)+` LIMIT $2`, age.Milliseconds(), dropLimit)
			if err != nil {
				return err
			}
			idle, err = readNames(rows)
			return err
		})
		if err != nil || len(idle) == 0 {
			return err
		}
		var kept, gone [][]byte
		for _, id := range idle {
			keep, err := s.kept(ctx, id)
			if err != nil {
				return err
			}
			if keep {
				kept = append(kept, sumOf(id))
			} else {
				gone = append(gone, sumOf(id))
			}
		}
		err = s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			var batch pgx.Batch
			batch.Queue(`UPDATE stopgate.session_agents SET at = `+nowMillis+` WHERE sha256(session) = ANY ($1::bytea[])`, kept)
			batch.Queue(`DELETE FROM stopgate.counts AS c WHERE sha256(session) = ANY ($1::bytea[]) AND `+unrecorded(`c.session`), gone)
			batch.Queue(`DELETE FROM stopgate.session_agents AS a WHERE sha256(session) = ANY ($1::bytea[]) AND at < `+nowMillis+` - $2::bigint
				AND `+unrecorded(`a.session`), gone, age.Milliseconds())
			return tx.SendBatch(ctx, &batch).Close()
		})
		if err != nil {
			return err
		}
	}
}

// sweepTx is one step of a sweep, unless another replica is at it.
func (s *Store) sweepTx(ctx context.Context, do step) error {
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, lockOf("sweep")).Scan(&mine); err != nil || !mine {
			return err
		}
		return do(ctx, tx)
	})
}
