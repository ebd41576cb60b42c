package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"stopgate/gate"
	"stopgate/store/record"
)

// Reserve claims a key. A reservation whose lease is over can be claimed anew
// with the same body; another body is a mismatch for as long as the key is
// kept, so that an answer never meets a question that is not its own.
func (s *Store) Reserve(ctx context.Context, r gate.Request, lease time.Duration) (gate.Reservation, error) {
	w := &reserve{keyClaim: claimOf(r, s.opt.Now()), lease: lease}
	err := s.writer.do(ctx, w)
	return gate.Reservation{Evaluation: w.evaluation, Key: r.Key, Since: w.now.Truncate(time.Millisecond)}, err
}

// keyClaim is a request that wants its key.
type keyClaim struct {
	id, body []byte
	now      time.Time
}

func claimOf(r gate.Request, now time.Time) keyClaim {
	return keyClaim{record.KeyID(r.Key), r.Body[:], now}
}

// holding is what the key holds already. A key that has been kept for its time
// holds nothing.
type holding struct {
	evaluation string // empty: not answered
	running    bool   // not answered, and its lease goes on
	row        bool   // there is one, also if it holds nothing any more
	open       bool   // there is one that is ours to complete
}

// held looks the key up, and refuses it to another body.
func (k keyClaim) held(c *conn) (holding, error) {
	var v [4]driver.Value
	found, err := c.row(v[:], `SELECT body, reserved, lease, evaluation FROM idempotency WHERE id = ?`, k.id)
	if err != nil || !found {
		return holding{}, err
	}
	body, reserved, lease := v[0].([]byte), v[1].(int64), v[2].(int64)
	evaluation, answered := v[3].(string)
	running := !answered && k.now.UnixMilli() < lease
	switch {
	case reserved <= k.now.Add(-record.KeyLife).UnixMilli() && !running:
		return holding{row: true}, nil
	case string(body) != string(k.body):
		return holding{}, gate.Errorf(gate.CodeIdempotencyMismatch, "idempotency key was used with another request body")
	}
	return holding{evaluation: evaluation, running: running, row: true, open: !answered}, nil
}

// insert writes the key's row anew, so that the order of rows stays that of
// reservation. An empty evaluation is none yet.
func (k keyClaim) insert(c *conn, replace bool, lease time.Duration, evaluation string) error {
	if replace {
		if err := c.exec(`DELETE FROM idempotency WHERE id = ?`, k.id); err != nil {
			return err
		}
	}
	return c.exec(`INSERT INTO idempotency (id, body, reserved, lease, evaluation) VALUES (?, ?, ?, ?, nullif(?, ''))`,
		k.id, k.body, k.now.UnixMilli(), k.now.Add(lease).UnixMilli(), evaluation)
}

type reserve struct {
	keyClaim
	lease      time.Duration
	evaluation string
}

func (w *reserve) apply(c *conn) error {
	has, err := w.held(c)
	w.evaluation = has.evaluation
	switch {
	case err != nil || has.evaluation != "":
		return err
	case has.running:
		return gate.Errorf(gate.CodeConflict, "idempotency key belongs to a request that is still running")
	}
	return w.insert(c, has.row, w.lease, "")
}

// unanswered refuses a commit whose key another decision has answered.
func (k keyClaim) unanswered(c *conn) (holding, error) {
	has, err := k.held(c)
	if err == nil && has.evaluation != "" {
		err = gate.Errorf(gate.CodeConflict, "idempotency key was answered by another request meanwhile")
	}
	return has, err
}

// answer completes the key, whether or not it is reserved: its reservation may
// have failed, or its lease be over.
func (k keyClaim) answer(c *conn, has holding, evaluation string) error {
	if has.open {
		return c.exec(`UPDATE idempotency SET evaluation = ? WHERE id = ?`, evaluation, k.id)
	}
	return k.insert(c, has.row, 0, evaluation)
}

// Renew lengthens a lease: it ends that long from now. CodeConflict: the key is
// not reserved any more, or by another request.
func (s *Store) Renew(ctx context.Context, held gate.Reservation, lease time.Duration) error {
	return s.writer.do(ctx, renew{record.KeyID(held.Key), held.Since.UnixMilli(), s.opt.Now().Add(lease).UnixMilli()})
}

type renew struct {
	id           []byte
	since, until int64
}

func (w renew) apply(c *conn) error {
	var v [1]driver.Value
	found, err := c.row(v[:], `SELECT evaluation FROM idempotency WHERE id = ? AND reserved = ?`, w.id, w.since)
	if err != nil {
		return err
	}
	if !found || v[0] != nil {
		return gate.Errorf(gate.CodeConflict, "idempotency key is not reserved any more")
	}
	return c.exec(`UPDATE idempotency SET lease = ? WHERE id = ?`, w.until, w.id)
}

// Release gives a key back; one that is answered, claimed by another request
// since, or not there, stays as it is.
func (s *Store) Release(ctx context.Context, held gate.Reservation) error {
	return s.writer.do(ctx, release{record.KeyID(held.Key), held.Since.UnixMilli()})
}

type release struct {
	id    []byte
	since int64
}

func (w release) apply(c *conn) error {
	return c.exec(`DELETE FROM idempotency WHERE id = ? AND reserved = ? AND evaluation IS NULL`, w.id, w.since)
}

// freeReservations drops what a server that is gone has left unanswered. Only
// the holder of the directory may: nobody else can be answering.
type freeReservations struct{}

func (freeReservations) apply(c *conn) error {
	return c.exec(`DELETE FROM idempotency WHERE evaluation IS NULL`)
}
