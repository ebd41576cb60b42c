package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
)

// SetActive switches a hook in one session (spec/azure.md 12). It acts at once:
// the next Active sees it, on any replica.
func (s *Store) SetActive(ctx context.Context, session, hook string, active bool, by gate.Actor) error {
	if session == "" || hook == "" {
		return gate.Errorf(gate.CodeValidation, "activation needs a session and a hook")
	}
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO stopgate.activations (session, hook, active, by, at) VALUES ($1, $2, $3, $4, `+nowMillis+`)
			ON CONFLICT (sha256(session), sha256(hook)) DO UPDATE SET active = excluded.active, by = excluded.by, at = excluded.at`,
			bytesOf(session), bytesOf(hook), active, bytesOf(by.Name))
		if err != nil {
			return err
		}
		action := gate.HookDeactivated
		if active {
			action = gate.HookActivated
		}
		return audit(ctx, tx, gate.AuditEntry{Action: action, Kind: "activation", Name: hook, Session: session}, by)
	})
}

// Active maps the hooks that were switched in the session to their state.
func (s *Store) Active(ctx context.Context, session string) (active map[string]bool, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		active = map[string]bool{}
		rows, err := conn.Query(ctx, `SELECT hook, active FROM stopgate.activations WHERE sha256(session) = sha256($1)`, bytesOf(session))
		if err != nil {
			return err
		}
		var hook text
		var on bool
		_, err = pgx.ForEachRow(rows, []any{&hook, &on}, func() error {
			active[string(hook)] = on
			return nil
		})
		return err
	})
	return active, err
}
