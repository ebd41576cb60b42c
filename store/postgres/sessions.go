package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
)

// lastShown is how many decisions a session's state has.
const lastShown = 20

// Session is what is known of one conversation. Agents are those that have
// counts, and those of the last decisions, whose counts may be zero.
func (s *Store) Session(ctx context.Context, id string) (gate.SessionState, error) {
	state := gate.SessionState{Session: id, Agents: []gate.AgentCounts{}, Last: []gate.RecordSummary{}}
	if id == "" {
		return state, gate.Errorf(gate.CodeNotFound, "session %q is not known", id)
	}
	var err error
	if state.ActiveHooks, err = s.Active(ctx, id); err != nil {
		return state, err
	}
	if state.Agents, err = s.agentCounts(ctx, id); err != nil {
		return state, err
	}
	last, _, err := s.page(ctx, gate.RecordFilter{Session: id, Limit: lastShown})
	if err != nil {
		return state, err
	}
	for _, r := range last {
		state.Last = append(state.Last, r.Summary())
		if !slices.ContainsFunc(state.Agents, func(a gate.AgentCounts) bool { return a.Agent == r.Agent && a.SubAgent == r.SubAgent }) {
			state.Agents = append(state.Agents, gate.AgentCounts{Agent: r.Agent, SubAgent: r.SubAgent})
		}
	}
	if len(state.Agents) == 0 && len(state.ActiveHooks) == 0 && len(state.Last) == 0 {
		return state, gate.Errorf(gate.CodeNotFound, "session %q is not known", id)
	}
	return state, nil
}

func (s *Store) agentCounts(ctx context.Context, session string) (agents []gate.AgentCounts, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, `SELECT agent, sub_agent, stops, prompts FROM stopgate.counts
			WHERE sha256(session) = sha256($1) ORDER BY agent, sub_agent`, bytesOf(session))
		if err != nil {
			return err
		}
		agents, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a gate.AgentCounts, err error) {
			err = row.Scan((*text)(&a.Agent), (*text)(&a.SubAgent), &a.StopRejectionCount, &a.PromptRejections)
			a.StopHookActive = gate.Counts{StopRejections: a.StopRejectionCount}.StopHookActive()
			return a, err
		})
		return err
	})
	return agents, err
}

// EraseSession removes counts, activations, claims and records of the session, and the
// idempotency keys that those records answered, in one transaction. The server's
// vacuum then overwrites the bytes, in its own time.
func (s *Store) EraseSession(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	const mine = ` FROM stopgate.evaluations WHERE session <> '' AND sha256(session) = sha256($1)`
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var batch pgx.Batch
		for _, text := range []string{
			`DELETE FROM stopgate.idempotency WHERE id IN (SELECT idempotency` + mine + `)`,
			`DELETE FROM stopgate.outbox WHERE seq IN (SELECT seq` + mine + `)`, // what a sink has already is beyond us
			`DELETE` + mine,
			`DELETE FROM stopgate.counts WHERE sha256(session) = sha256($1)`,
			`DELETE FROM stopgate.activations WHERE sha256(session) = sha256($1)`,
			`DELETE FROM stopgate.session_agents WHERE sha256(session) = sha256($1)`,
			`UPDATE stopgate.audit SET session = '' WHERE session <> '' AND sha256(session) = sha256($1)`, // that somebody switched a hook stays
		} {
			batch.Queue(text, bytesOf(id))
		}
		return tx.SendBatch(ctx, &batch).Close()
	})
}
