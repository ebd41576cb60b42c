package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
)

const selectErasure = `SELECT seq FROM stopgate.erasures WHERE session = sha256($1)`

// Erasure is the session's last erasure that is remembered, on any replica.
func (s *Store) Erasure(ctx context.Context, session string) (last gate.Erasure, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		last, err = scanErasure(conn.QueryRow(ctx, selectErasure, bytesOf(session)))
		return err
	})
	return last, err
}

func scanErasure(row pgx.Row) (gate.Erasure, error) {
	var seq int64
	if err := row.Scan(&seq); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, err
	}
	return gate.NeverErased + gate.Erasure(seq), nil
}

// lookForErasure queues the session's last erasure, and keeps the next one waiting
// for the transaction's end. Commits do not wait for each other.
func lookForErasure(batch *pgx.Batch, session string, last *gate.Erasure) {
	batch.Queue(`SELECT pg_advisory_xact_lock_shared($1)`, lockOf("erase", session))
	batch.Queue(selectErasure, bytesOf(session)).QueryRow(func(row pgx.Row) (err error) {
		*last, err = scanErasure(row)
		return err
	})
}

// unerased is [gate.ErrErased] if the session was erased since seen, and keeps the
// next erasure waiting for the transaction's end.
func unerased(ctx context.Context, tx pgx.Tx, session string, seen gate.Erasure) error {
	if seen == 0 {
		return nil
	}
	var batch pgx.Batch
	var last gate.Erasure
	lookForErasure(&batch, session, &last)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	if last > seen {
		return gate.ErrErased
	}
	return nil
}

// EraseSession removes counts, activations, the override, claims and records of the
// session, and the idempotency keys that those records answered, in one transaction. The server's
// vacuum then overwrites the bytes, in its own time.
func (s *Store) EraseSession(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	const mine = ` FROM stopgate.evaluations WHERE session <> '' AND sha256(session) = sha256($1)`
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var batch pgx.Batch
		lock(&batch, lockOf("erase", id))
		for _, text := range []string{
			`DELETE FROM stopgate.idempotency WHERE id IN (SELECT idempotency` + mine + `)`,
			`DELETE FROM stopgate.outbox WHERE seq IN (SELECT seq` + mine + `)`, // what a sink has already is beyond us
			`DELETE` + mine,
			`DELETE FROM stopgate.counts WHERE sha256(session) = sha256($1)`,
			`DELETE FROM stopgate.activations WHERE sha256(session) = sha256($1)`,
			`DELETE FROM stopgate.overrides WHERE sha256(session) = sha256($1)`,
			`DELETE FROM stopgate.session_agents WHERE sha256(session) = sha256($1)`,
			`UPDATE stopgate.audit SET session = '' WHERE session <> '' AND sha256(session) = sha256($1)`, // that somebody switched a hook stays
			`INSERT INTO stopgate.erasures (session, seq, at) VALUES (sha256($1), nextval('stopgate.erasure_seq'), ` + nowMillis + `)
				ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, at = excluded.at`,
		} {
			batch.Queue(text, bytesOf(id))
		}
		return tx.SendBatch(ctx, &batch).Close()
	})
}
