package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"time"

	"stopgate/gate"
)

// keyLife is how long a key is kept from its reservation (DESIGN §5).
const keyLife = 24 * time.Hour

// idempotencyID is what a key is stored as: of one size whatever a caller
// sends, and no credential on disk.
func idempotencyID(k gate.IdempotencyKey) []byte {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(k.Credential)))
	h.Write(n[:])
	h.Write([]byte(k.Credential))
	h.Write([]byte(k.Key))
	return h.Sum(nil)
}

// Reserve claims a key. A reservation whose lease is over can be claimed anew
// with the same body; another body is a mismatch for as long as the key is
// kept, so that an answer never meets a question that is not its own.
func (s *Store) Reserve(ctx context.Context, key gate.IdempotencyKey, body [32]byte, lease time.Duration) (string, error) {
	w := &reserve{id: idempotencyID(key), body: body[:], now: s.opt.Now(), lease: lease}
	err := s.writer.do(ctx, w)
	return w.evaluation, err
}

type reserve struct {
	id, body   []byte
	now        time.Time
	lease      time.Duration
	evaluation string
}

func (w *reserve) apply(c *conn) error {
	w.evaluation = ""
	now := w.now.UnixMilli()
	var v [4]driver.Value
	found, err := c.row(v[:], `SELECT body, reserved, lease, evaluation FROM idempotency WHERE id = ?`, w.id)
	if err != nil {
		return err
	}
	if found {
		body, reserved, lease := v[0].([]byte), v[1].(int64), v[2].(int64)
		evaluation, answered := v[3].(string)
		running := !answered && now < lease
		expired := reserved <= w.now.Add(-keyLife).UnixMilli() && !running
		switch {
		case expired:
		case string(body) != string(w.body):
			return gate.Errorf(gate.CodeIdempotencyMismatch, "idempotency key was used with another request body")
		case answered:
			w.evaluation = evaluation
			return nil
		case running:
			return gate.Errorf(gate.CodeConflict, "idempotency key belongs to a request that is still running")
		}
		// The row goes, so that the order of rows stays that of reservation.
		if err := c.exec(`DELETE FROM idempotency WHERE id = ?`, w.id); err != nil {
			return err
		}
	}
	return c.exec(`INSERT INTO idempotency (id, body, reserved, lease) VALUES (?, ?, ?, ?)`,
		w.id, w.body, now, w.now.Add(w.lease).UnixMilli())
}

// stillReserved refuses a commit whose reservation is not open any more: gone,
// or answered by another.
func stillReserved(c *conn, id []byte) error {
	var v [1]driver.Value
	found, err := c.row(v[:], `SELECT evaluation FROM idempotency WHERE id = ?`, id)
	if err != nil {
		return err
	}
	if !found || v[0] != nil {
		return gate.Errorf(gate.CodeConflict, "idempotency key was lost to another request meanwhile")
	}
	return nil
}

// Renew lengthens a lease: it ends that long from now. CodeConflict: the key is
// not reserved any more.
func (s *Store) Renew(ctx context.Context, key gate.IdempotencyKey, lease time.Duration) error {
	return s.writer.do(ctx, renew{idempotencyID(key), s.opt.Now().Add(lease).UnixMilli()})
}

type renew struct {
	id    []byte
	until int64
}

func (w renew) apply(c *conn) error {
	if err := stillReserved(c, w.id); err != nil {
		return err
	}
	return c.exec(`UPDATE idempotency SET lease = ? WHERE id = ?`, w.until, w.id)
}

// Release gives a key back; one that is answered, or not there, stays as it is.
func (s *Store) Release(ctx context.Context, key gate.IdempotencyKey) error {
	return s.writer.do(ctx, release{idempotencyID(key)})
}

type release struct{ id []byte }

func (w release) apply(c *conn) error {
	return c.exec(`DELETE FROM idempotency WHERE id = ? AND evaluation IS NULL`, w.id)
}

// freeReservations drops what a server that is gone has left unanswered. Only
// the holder of the directory may: nobody else can be answering.
type freeReservations struct{}

func (freeReservations) apply(c *conn) error {
	return c.exec(`DELETE FROM idempotency WHERE evaluation IS NULL`)
}
