package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
	"stopgate/store/record"
)

const selectKeys = `SELECT id, name, hash, scopes, agents, created, created_by, expires, revoked, used FROM stopgate.keys`

// AddKey stores a new key, and the entry that says who made it. Who adds keys
// holds a lock, so that the second of two of one name is told, not failed.
func (s *Store) AddKey(ctx context.Context, k gate.Key, by gate.Actor) error {
	row, err := record.EncodeKey(k)
	if err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockOf("keys")); err != nil {
			return err
		}
		added, err := tx.Exec(ctx, `INSERT INTO stopgate.keys (seq, id, name, hash, scopes, agents, created, created_by, expires, revoked, used)
			SELECT (SELECT coalesce(max(seq), 0) + 1 FROM stopgate.keys), $1, $2, $3, $4, $5, `+nowMillis+`, $6, $7::bigint, 0, 0
			WHERE NOT EXISTS (SELECT FROM stopgate.keys WHERE id = $1 OR revoked = 0 AND name = $2)`,
			bytesOf(k.ID), bytesOf(k.Name), row.Hash, row.Scopes, row.Agents, bytesOf(by.Name), row.Expires)
		if err != nil {
			return err
		}
		if added.RowsAffected() == 0 {
			return gate.Errorf(gate.CodeConflict, "key %q exists already: revoke it first, or choose another name", k.Name)
		}
		return audit(ctx, tx, gate.AuditEntry{Action: gate.KeyCreated, Kind: "key", Name: k.Name, KeyID: k.ID}, by)
	})
}

// RevokeKey ends a key; it stays in the list.
func (s *Store) RevokeKey(ctx context.Context, idOrName string, by gate.Actor) error {
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var id, name text
		err := tx.QueryRow(ctx, `UPDATE stopgate.keys SET revoked = `+nowMillis+` WHERE revoked = 0 AND seq = (
				SELECT seq FROM stopgate.keys WHERE revoked = 0 AND (id = $1 OR name = $1) ORDER BY id = $1 DESC LIMIT 1
			) RETURNING id, name`, bytesOf(idOrName)).Scan(&id, &name)
		if errors.Is(err, pgx.ErrNoRows) {
			return gate.Errorf(gate.CodeNotFound, "key %q is not known, or was revoked before", idOrName)
		}
		if err != nil {
			return err
		}
		if err := audit(ctx, tx, gate.AuditEntry{Action: gate.KeyRevoked, Kind: "key", Name: string(name), KeyID: string(id)}, by); err != nil {
			return err
		}
		return endOverrides(ctx, tx, string(id), by)
	})
}

// endOverrides ends those that a key has set: whoever had it may have set them. The
// audit knows whose each is.
func endOverrides(ctx context.Context, tx pgx.Tx, id string, by gate.Actor) error {
	rows, err := tx.Query(ctx, `DELETE FROM stopgate.overrides AS o WHERE until > `+nowMillis+` AND EXISTS (
		SELECT FROM stopgate.audit WHERE action = $2 AND session = o.session AND until = o.until AND credential = $1) RETURNING session`,
		bytesOf("key:"+id), bytesOf(string(gate.OverrideSet)))
	if err != nil {
		return err
	}
	sessions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (session text, err error) {
		err = row.Scan(&session)
		return session, err
	})
	for _, session := range sessions {
		err = errors.Join(err, audit(ctx, tx, gate.AuditEntry{Action: gate.OverrideRemoved, Kind: "override", Session: string(session)}, by))
	}
	return err
}

// KeyUsed notes a use. A later one that was noted already stays.
func (s *Store) KeyUsed(ctx context.Context, id string, at time.Time) error {
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE stopgate.keys SET used = $2 WHERE id = $1 AND used < $2`, bytesOf(id), at.UnixMilli())
		return err
	})
}

// Key is one key, revoked or not.
func (s *Store) Key(ctx context.Context, id string) (gate.Key, error) {
	found, err := s.keys(ctx, selectKeys+` WHERE id = $1`, bytesOf(id))
	if err == nil && len(found) == 0 {
		err = gate.Errorf(gate.CodeNotFound, "key %q is not known", id)
	}
	if err != nil {
		return gate.Key{}, err
	}
	return found[0], nil
}

// Keys lists every key, the newest first.
func (s *Store) Keys(ctx context.Context) ([]gate.Key, error) {
	return s.keys(ctx, selectKeys+` ORDER BY seq DESC`)
}

func (s *Store) keys(ctx context.Context, query string, args ...any) (list []gate.Key, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (gate.Key, error) {
			var r record.APIKey
			err := row.Scan((*text)(&r.ID), (*text)(&r.Name), &r.Hash, &r.Scopes, &r.Agents, &r.Created, (*text)(&r.CreatedBy),
				&r.Expires, &r.Revoked, &r.LastUsed)
			if err != nil {
				return gate.Key{}, err
			}
			return r.Decode()
		})
		return err
	})
	return list, err
}
