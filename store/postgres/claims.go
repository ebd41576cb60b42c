package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
	"stopgate/store/record"
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
		joinSession(&batch, id, agent, nil)
		return tx.SendBatch(ctx, &batch).Close()
	})
}

// SessionProjects are those that were committed with the session's first event.
func (s *Store) SessionProjects(ctx context.Context, session, agent string) (p gate.Projects, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		var kept string
		err := conn.QueryRow(ctx, `SELECT projects FROM stopgate.session_agents WHERE sha256(session) = sha256($1) AND sha256(agent) = sha256($2)`,
			bytesOf(session), bytesOf(agent)).Scan((*text)(&kept))
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		p, err = record.DecodeProjects(kept)
		return err
	})
	return p, err
}

// joinSession makes the session belong to the agent, and keeps its projects where
// none are; most often both is so already.
func joinSession(batch *pgx.Batch, session, agent string, projects gate.Projects) {
	otherwise := `NOTHING` // and no lock of a row that others write too
	if projects != nil {
		otherwise = `UPDATE SET projects = excluded.projects WHERE kept.projects = ''`
	}
	batch.Queue(`INSERT INTO stopgate.session_agents AS kept (session, agent, projects) VALUES ($1, $2, $3)
		ON CONFLICT (sha256(session), sha256(agent)) DO `+otherwise,
		bytesOf(session), bytesOf(agent), bytesOf(record.EncodeProjects(projects)))
}
