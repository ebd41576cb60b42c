package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"stopgate/gate"
	"stopgate/store/record"
)

const selectKeys = `SELECT id, name, hash, scopes, agents, created, created_by, expires, revoked, used FROM keys`

// AddKey stores a new key, and the entry that says who made it.
func (s *Store) AddKey(ctx context.Context, k gate.Key, by gate.Actor) error {
	return s.writer.do(ctx, addKey{k, by, s.opt.Now().UnixMilli()})
}

type addKey struct {
	key gate.Key
	by  gate.Actor
	at  int64
}

func (w addKey) apply(c *conn) error {
	k := w.key
	row, err := record.EncodeKey(k)
	if err != nil {
		return err
	}
	var v [1]driver.Value
	taken, err := c.row(v[:], `SELECT name FROM keys WHERE id = ?1 OR revoked = 0 AND name = ?2`, k.ID, k.Name)
	if err != nil {
		return err
	}
	if taken {
		return gate.Errorf(gate.CodeConflict, "key %q exists already: revoke it first, or choose another name", k.Name)
	}
	err = c.exec(`INSERT INTO keys (id, name, hash, scopes, agents, created, created_by, expires, revoked, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0)`,
		k.ID, k.Name, row.Hash, string(row.Scopes), string(row.Agents), w.at, w.by.Name, row.Expires)
	if err != nil {
		return err
	}
	e := entry(gate.KeyCreated, "key", k.Name, w.by, w.at)
	e.KeyID = k.ID
	return insertAudit(c, e)
}

// RevokeKey ends a key; it stays in the list.
func (s *Store) RevokeKey(ctx context.Context, idOrName string, by gate.Actor) error {
	return s.writer.do(ctx, revokeKey{idOrName, by, s.opt.Now().UnixMilli()})
}

type revokeKey struct {
	key string
	by  gate.Actor
	at  int64
}

func (w revokeKey) apply(c *conn) error {
	var v [2]driver.Value
	found, err := c.row(v[:], `SELECT id, name FROM keys WHERE revoked = 0 AND (id = ?1 OR name = ?1) ORDER BY id = ?1 DESC`, w.key)
	if err != nil {
		return err
	}
	if !found {
		return gate.Errorf(gate.CodeNotFound, "key %q is not known, or was revoked before", w.key)
	}
	id, name := v[0].(string), v[1].(string)
	if err := c.exec(`UPDATE keys SET revoked = ? WHERE id = ?`, w.at, id); err != nil {
		return err
	}
	e := entry(gate.KeyRevoked, "key", name, w.by, w.at)
	e.KeyID = id
	return errors.Join(insertAudit(c, e), w.endOverrides(c, id))
}

// endOverrides ends those that the key has set: whoever had it may have set them. The
// audit knows whose each is.
func (w revokeKey) endOverrides(c *conn, id string) error {
	var sessions []string
	err := c.each(func(v []driver.Value) { sessions = append(sessions, v[0].(string)) }, 1, `SELECT session FROM overrides AS o WHERE until > ?2 AND EXISTS (
		SELECT 1 FROM audit WHERE action = ?3 AND session = o.session AND until = o.until AND credential = 'key:' || ?1)`, id, w.at, string(gate.OverrideSet))
	for _, session := range sessions {
		e := entry(gate.OverrideRemoved, "override", "", w.by, w.at)
		e.Session = session
		err = errors.Join(err, c.exec(`DELETE FROM overrides WHERE session = ?`, session), insertAudit(c, e))
	}
	return err
}

// KeyUsed notes a use. A later one that was noted already stays.
func (s *Store) KeyUsed(ctx context.Context, id string, at time.Time) error {
	return s.writer.do(ctx, keyUsed{id, at.UnixMilli()})
}

type keyUsed struct {
	id string
	at int64
}

func (w keyUsed) apply(c *conn) error {
	return c.exec(`UPDATE keys SET used = ?2 WHERE id = ?1 AND used < ?2`, w.id, w.at)
}

// Key is one key, revoked or not.
func (s *Store) Key(ctx context.Context, id string) (gate.Key, error) {
	k, err := scanKey(s.reads.QueryRowContext(ctx, selectKeys+` WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return gate.Key{}, gate.Errorf(gate.CodeNotFound, "key %q is not known", id)
	}
	return k, explain(err)
}

// Keys lists every key, the newest first.
func (s *Store) Keys(ctx context.Context) ([]gate.Key, error) {
	rows, err := s.reads.QueryContext(ctx, selectKeys+` ORDER BY seq DESC`)
	if err != nil {
		return nil, explain(err)
	}
	defer rows.Close()
	list := []gate.Key{}
	for rows.Next() {
		k, err := scanKey(rows)
		if err != nil {
			return nil, explain(err)
		}
		list = append(list, k)
	}
	return list, explain(rows.Err())
}

func scanKey(row interface{ Scan(...any) error }) (gate.Key, error) {
	var r record.APIKey
	if err := row.Scan(&r.ID, &r.Name, &r.Hash, &r.Scopes, &r.Agents, &r.Created, &r.CreatedBy, &r.Expires, &r.Revoked, &r.LastUsed); err != nil {
		return gate.Key{}, err
	}
	return r.Decode()
}
