package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
	"stopgate/store/record"
)

// SetOverride stores the session's override, and the entry that says who set it.
func (s *Store) SetOverride(ctx context.Context, o gate.Override, by gate.Actor) error {
	row, err := record.EncodeOverride(o, by)
	if err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO stopgate.overrides (session, reason, by, agents, since, until) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (sha256(session)) DO UPDATE SET reason = excluded.reason, by = excluded.by, agents = excluded.agents,
				since = excluded.since, until = excluded.until`,
			bytesOf(row.Session), bytesOf(row.Reason), bytesOf(row.By), row.Agents, row.Since, row.Until)
		if err != nil {
			return err
		}
		return audit(ctx, tx, gate.AuditEntry{Action: gate.OverrideSet, Kind: "override", Session: o.Session, Reason: o.Reason, Until: o.Until}, by)
	})
}

// Override is the session's, also one that is over until it is swept.
func (s *Store) Override(ctx context.Context, session string) (gate.Override, error) {
	row := record.Override{Session: session}
	err := s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		err := conn.QueryRow(ctx, `SELECT reason, by, agents, since, until FROM stopgate.overrides WHERE sha256(session) = sha256($1)`, bytesOf(session)).
			Scan((*text)(&row.Reason), (*text)(&row.By), &row.Agents, &row.Since, &row.Until)
		if errors.Is(err, pgx.ErrNoRows) {
			return gate.NoOverride(session)
		}
		return err
	})
	if err != nil {
		return gate.Override{}, err
	}
	return row.Decode()
}

// RemoveOverride ends it.
func (s *Store) RemoveOverride(ctx context.Context, session string, by gate.Actor) error {
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		removed, err := tx.Exec(ctx, `DELETE FROM stopgate.overrides WHERE sha256(session) = sha256($1) AND until > `+nowMillis, bytesOf(session))
		if err != nil {
			return err
		}
		if removed.RowsAffected() == 0 {
			return gate.NoOverride(session)
		}
		return audit(ctx, tx, gate.AuditEntry{Action: gate.OverrideRemoved, Kind: "override", Session: session}, by)
	})
}
