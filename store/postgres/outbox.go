package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
	"stopgate/store/record"
)

var _ gate.Outbox = (*Store)(nil)

// KeepSinks says that these sinks are in use, and forgets those that no replica
// has said this of for [gate.SinkLife].
func (s *Store) KeepSinks(ctx context.Context, names []string) (forgotten []gate.SinkState, err error) {
	err = s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var batch pgx.Batch
		lock(&batch, lockOf("sinks"))
		for _, name := range names {
			batch.Queue(`INSERT INTO stopgate.sinks AS s (name, seen) VALUES ($1, `+nowMillis+`)
				ON CONFLICT (name) DO UPDATE SET seen = greatest(s.seen, excluded.seen)`, bytesOf(name))
		}
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		// A commit that still sees a sink adds to it after the deletion: such rows
		// are nobody's, and go with those of the next.
		rows, err := tx.Query(ctx, `WITH gone AS (DELETE FROM stopgate.sinks WHERE seen < `+nowMillis+` - $1::bigint RETURNING name, dropped),
				rows AS (DELETE FROM stopgate.outbox WHERE sink NOT IN (SELECT name FROM stopgate.sinks) OR sink IN (SELECT name FROM gone) RETURNING sink)
			SELECT name, dropped, (SELECT count(*) FROM rows WHERE sink = name) FROM gone`, gate.SinkLife.Milliseconds())
		if err != nil {
			return err
		}
		forgotten, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (state gate.SinkState, err error) {
			err = row.Scan((*text)(&state.Name), &state.Dropped, &state.Pending)
			return state, err
		})
		return err
	})
	return forgotten, err
}

// maxDeliveries is how many rows Undelivered looks at.
const maxDeliveries = 1000

// Undelivered hands what a sink lacks to the holder of its lease. A replica that
// was killed holds it until its end by the database's clock, and no longer.
func (s *Store) Undelivered(ctx context.Context, sink string, who gate.Lease, see func(gate.Delivery) bool) error {
	var some, mine bool
	err := s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error { // most often there is nothing to be had a lease for
		return conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM stopgate.outbox WHERE sink = $1 AND NOT aside)`, bytesOf(sink)).Scan(&some)
	})
	if err != nil || !some {
		return err
	}
	err = s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE stopgate.sinks SET holder = $2, lease = `+nowMillis+` + $3::bigint
			WHERE name = $1 AND (holder = $2 OR lease <= `+nowMillis+`)`, bytesOf(sink), bytesOf(who.Holder), who.Length.Milliseconds())
		mine = tag.RowsAffected() == 1
		return err
	})
	if err != nil || !mine {
		return err
	}
	var rows []delivery
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		rows, err = due(ctx, conn, sink)
		return err
	})
	if err != nil {
		return err
	}
	for i := range rows {
		r, err := rows[i].row.Decode()
		if err != nil {
			return err
		}
		if !see(gate.Delivery{Place: rows[i].place, Record: r}) {
			return nil
		}
	}
	return nil
}

type delivery struct {
	place int64
	row   record.Row
}

// due reads the first rows that a sink lacks, no more than may be held in
// memory. The server cuts them, by sizes that it knows without reading what is
// long.
func due(ctx context.Context, conn *pgxpool.Conn, sink string) ([]delivery, error) {
	rows, err := conn.Query(ctx, `SELECT o.place, `+listColumns+`, e.evidence, e.payload FROM (
			SELECT place, seq, sum(size) OVER (ORDER BY place) - size AS before FROM (
				SELECT o.place, o.seq, `+sizeOf+` AS size FROM stopgate.outbox AS o JOIN stopgate.evaluations AS e ON e.seq = o.seq
				WHERE o.sink = $1 AND NOT o.aside ORDER BY o.place LIMIT $2) AS first
		) AS o JOIN stopgate.evaluations AS e ON e.seq = o.seq WHERE o.before < $3 ORDER BY o.place`, bytesOf(sink), maxDeliveries, gate.PageBytes)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d delivery, err error) {
		w := &d.row
		err = row.Scan(append(append([]any{&d.place}, listed(w)...), &w.Evidence, &w.Payload)...)
		return d, err
	})
}

// sizeOf is how many bytes a record takes, but for its place in the indices.
const sizeOf = `(octet_length(e.head) + octet_length(e.agent) + octet_length(e.session) +
	coalesce(octet_length(e.evidence), 0) + coalesce(octet_length(e.payload), 0))::bigint`

// Delivered says that the sink has those.
func (s *Store) Delivered(ctx context.Context, sink string, places []int64) error {
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM stopgate.outbox WHERE place = ANY($2) AND sink = $1`, bytesOf(sink), places)
		return err
	})
}

// SetAside says that the sink refuses that record itself.
func (s *Store) SetAside(ctx context.Context, sink string, place int64) error {
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE stopgate.outbox SET aside = TRUE WHERE place = $2 AND sink = $1`, bytesOf(sink), place)
		return err
	})
}

// SendAgain hands out again what is set aside.
func (s *Store) SendAgain(ctx context.Context, sink string) (records int64, err error) {
	err = s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE stopgate.outbox SET aside = FALSE WHERE sink = $1 AND aside`, bytesOf(sink))
		records = tag.RowsAffected()
		return err
	})
	return records, err
}

// ReleaseSink ends a lease early.
func (s *Store) ReleaseSink(ctx context.Context, sink, holder string) error {
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE stopgate.sinks SET lease = 0 WHERE name = $1 AND holder = $2`, bytesOf(sink), bytesOf(holder))
		return err
	})
}

// SinkStates are those of all sinks, by name.
func (s *Store) SinkStates(ctx context.Context) (states []gate.SinkState, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, `SELECT name, dropped, (SELECT count(*) FROM stopgate.outbox WHERE sink = name AND NOT aside),
			(SELECT count(*) FROM stopgate.outbox WHERE sink = name AND aside),
			(SELECT seq FROM stopgate.outbox WHERE sink = name AND NOT aside ORDER BY place LIMIT 1) FROM stopgate.sinks ORDER BY name`)
		if err != nil {
			return err
		}
		states, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (state gate.SinkState, err error) {
			var oldest *int64
			err = row.Scan((*text)(&state.Name), &state.Dropped, &state.Pending, &state.Aside, &oldest)
			if oldest != nil {
				state.Oldest = time.Unix(0, *oldest).UTC()
			}
			return state, err
		})
		return err
	})
	return states, err
}
