package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"stopgate/gate"
	"stopgate/store/record"
)

// Reserve claims a key. A reservation whose lease is over can be claimed anew
// with the same body; another body is a mismatch for as long as the key is
// kept, so that an answer never meets a question that is not its own. Leases run
// by the database's clock.
func (s *Store) Reserve(ctx context.Context, r gate.Request, lease time.Duration) (gate.Reservation, error) {
	claim := claimOf(r)
	held := gate.Reservation{Key: r.Key}
	err := s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		held.Evaluation = ""
		var batch pgx.Batch
		var row keyRow
		lock(&batch, lockOf("key", string(claim.id)))
		claim.look(&batch, &row)
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		has, err := claim.held(row)
		held.Evaluation = has.evaluation
		switch {
		case err != nil || has.evaluation != "":
			return err
		case has.running:
			return gate.Errorf(gate.CodeConflict, "idempotency key belongs to a request that is still running")
		}
		var reserved int64
		err = tx.QueryRow(ctx, upsertKey+` RETURNING reserved`, claim.id, claim.body, lease.Milliseconds(), nil).Scan(&reserved)
		held.Since = time.UnixMilli(reserved)
		return err
	})
	return held, err
}

// keyClaim is a request that wants its key.
type keyClaim struct{ id, body []byte }

func claimOf(r gate.Request) keyClaim { return keyClaim{record.KeyID(r.Key), r.Body[:]} }

// upsertKey writes the key's row anew. The database's time is asked once, so
// that the lease begins when it says that it was reserved.
const upsertKey = `INSERT INTO stopgate.idempotency (id, body, reserved, lease, evaluation)
	SELECT $1, $2, now, now + $3::bigint, $4 FROM (SELECT ` + nowMillis + ` AS now) AS clock
	ON CONFLICT (id) DO UPDATE SET body = excluded.body, reserved = excluded.reserved, lease = excluded.lease, evaluation = excluded.evaluation`

// keyRow is what the table holds of a key.
type keyRow struct {
	body       []byte // nil: nothing
	evaluation []byte // nil: not answered yet
	running    bool   // its lease goes on
	outlived   bool   // it has been kept for its time
}

// look asks for the key's row; whoever asks holds its lock.
func (k keyClaim) look(batch *pgx.Batch, into *keyRow) {
	batch.Queue(`SELECT body, evaluation, `+nowMillis+` < lease, reserved <= `+nowMillis+` - $2::bigint
		FROM stopgate.idempotency WHERE id = $1`, k.id, record.KeyLife.Milliseconds()).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&into.body, &into.evaluation, &into.running, &into.outlived)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
}

// holding is what the key holds already. A key that has been kept for its time
// holds nothing.
type holding struct {
	evaluation string // empty: not answered
	running    bool   // not answered, and its lease goes on
	open       bool   // there is a row that is ours to complete
}

// held says what a row means to the claim, and refuses it to another body.
func (k keyClaim) held(row keyRow) (holding, error) {
	running := row.evaluation == nil && row.running
	switch {
	case row.body == nil, row.outlived && !running:
		return holding{}, nil
	case string(row.body) != string(k.body):
		return holding{}, gate.Errorf(gate.CodeIdempotencyMismatch, "idempotency key was used with another request body")
	}
	return holding{evaluation: string(row.evaluation), running: running, open: row.evaluation == nil}, nil
}

// answer completes the key, whether or not it is reserved: its reservation may
// have failed, or its lease be over.
func (k keyClaim) answer(batch *pgx.Batch, has holding, evaluation string) {
	if has.open {
		batch.Queue(`UPDATE stopgate.idempotency SET evaluation = $2 WHERE id = $1`, k.id, bytesOf(evaluation))
		return
	}
	batch.Queue(upsertKey, k.id, k.body, int64(0), bytesOf(evaluation))
}

// Renew lengthens a lease: it ends that long from now. CodeConflict: the key is
// not reserved any more, or by another request.
func (s *Store) Renew(ctx context.Context, held gate.Reservation, lease time.Duration) error {
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE stopgate.idempotency SET lease = `+nowMillis+` + $3::bigint
			WHERE id = $1 AND reserved = $2 AND evaluation IS NULL`, record.KeyID(held.Key), held.Since.UnixMilli(), lease.Milliseconds())
		if err == nil && tag.RowsAffected() == 0 {
			err = gate.Errorf(gate.CodeConflict, "idempotency key is not reserved any more")
		}
		return err
	})
}

// Release gives a key back; one that is answered, claimed by another request
// since, or not there, stays as it is.
func (s *Store) Release(ctx context.Context, held gate.Reservation) error {
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM stopgate.idempotency WHERE id = $1 AND reserved = $2 AND evaluation IS NULL`,
			record.KeyID(held.Key), held.Since.UnixMilli())
		return err
	})
}
