package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
)

const selectSessionAgents = `SELECT agent FROM stopgate.session_agents WHERE sha256(session) = sha256($1) ORDER BY agent`

// SessionAgents lists the agents that a session belongs to.
func (s *Store) SessionAgents(ctx context.Context, id string) (agents []string, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, selectSessionAgents, bytesOf(id))
		if err != nil {
			return err
		}
		agents, err = readNames(rows)
		return err
	})
	return agents, err
}

func readNames(rows pgx.Rows) ([]string, error) {
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (name string, err error) {
		err = row.Scan((*text)(&name))
		return name, err
	})
}

// ClaimSession makes a session belong to an agent, too. Who claims one holds its
// lock; the agents of events join without asking, as nobody asks them either.
func (s *Store) ClaimSession(ctx context.Context, id, agent string, seen gate.Erasure, mine func(agent string) bool) error {
	if id == "" {
		return gate.Errorf(gate.CodeValidation, "claim needs a session")
	}
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockOf("claim", id)); err != nil {
			return err
		}
		if err := unerased(ctx, tx, id, seen); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectSessionAgents, bytesOf(id))
		if err != nil {
			return err
		}
		agents, err := readNames(rows)
		if err != nil {
			return err
		}
		for _, a := range agents {
			if !mine(a) {
				return gate.Errorf(gate.CodeNotFound, "session %q is not known", id)
			}
		}
		var batch pgx.Batch
		joinSession(&batch, bytesOf(id), bytesOf(agent))
		return tx.SendBatch(ctx, &batch).Close()
	})
}

// joinSession makes the session belong to the agent; most often it does.
func joinSession(batch *pgx.Batch, session, agent []byte) {
	batch.Queue(`INSERT INTO stopgate.session_agents (session, agent) VALUES ($1, $2) ON CONFLICT (sha256(session), sha256(agent)) DO NOTHING`,
		session, agent)
}
