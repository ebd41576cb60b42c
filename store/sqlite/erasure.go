package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"

	"stopgate/gate"
)

const selectErasure = `SELECT seq FROM erasures WHERE session = ?`

// Erasure is the session's last erasure that is remembered.
func (s *Store) Erasure(ctx context.Context, session string) (gate.Erasure, error) {
	var v [1]driver.Value
	found, err := s.lookups.row(ctx, v[:], selectErasure, sumOf(session))
	if !found {
		return gate.NeverErased, err
	}
	return gate.NeverErased + gate.Erasure(v[0].(int64)), nil
}

// erasedSince reports whether a session was erased after another erasure of it.
func erasedSince(c *conn, session string, last gate.Erasure) (bool, error) {
	var v [1]driver.Value
	found, err := c.row(v[:], selectErasure, sumOf(session))
	return found && gate.NeverErased+gate.Erasure(v[0].(int64)) > last, err
}

// sumOf is a session in the table of erasures: its name is forgotten.
func sumOf(session string) []byte {
	sum := sha256.Sum256([]byte(session))
	return sum[:]
}

// EraseSession removes counts, activations, the override, claims and records of the session,
// and the idempotency keys that those records answered, in one transaction. The bytes
// are overwritten (secure_delete), and the WAL, which may still hold older
// copies, is emptied as soon as no reader stands on it.
func (s *Store) EraseSession(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	if err := s.writer.do(ctx, eraseSession{id, s.opt.Now().UnixMilli()}); err != nil {
		return err
	}
	s.upkeep.emptyWAL()
	return nil
}

type eraseSession struct {
	id string
	at int64
}

func (w eraseSession) apply(c *conn) error {
	const mine = `FROM evaluations WHERE session <> '' AND session = ?1`
	for _, text := range []string{
		`DELETE FROM idempotency WHERE id IN (SELECT idempotency ` + mine + `)`,
		`DELETE FROM outbox WHERE seq IN (SELECT seq ` + mine + `)`, // what a sink has already is beyond us
		`DELETE FROM evaluation_hooks WHERE seq IN (SELECT seq ` + mine + `)`,
		`DELETE ` + mine,
		`DELETE FROM counts WHERE session = ?1`,
		`DELETE FROM activations WHERE session = ?1`,
		`DELETE FROM overrides WHERE session = ?1`,
		`DELETE FROM session_agents WHERE session = ?1`,
		`UPDATE audit SET session = '' WHERE session <> '' AND session = ?1`, // that somebody switched a hook stays
	} {
		if err := c.exec(text, w.id); err != nil {
			return err
		}
	}
	return c.exec(`INSERT OR REPLACE INTO erasures (session, at) VALUES (?, ?)`, sumOf(w.id), w.at)
}
