package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"

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

func (s *Store) agentCounts(ctx context.Context, session string) ([]gate.AgentCounts, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT agent, sub_agent, stops, prompts FROM counts WHERE session = ? ORDER BY agent, sub_agent`, session)
	if err != nil {
		return nil, explain(err)
	}
	defer rows.Close()
	agents := []gate.AgentCounts{}
	for rows.Next() {
		var a gate.AgentCounts
		if err := rows.Scan(&a.Agent, &a.SubAgent, &a.StopRejectionCount, &a.PromptRejections); err != nil {
			return nil, explain(err)
		}
		a.StopHookActive = gate.Counts{StopRejections: a.StopRejectionCount}.StopHookActive()
		agents = append(agents, a)
	}
	return agents, explain(rows.Err())
}

// SessionAgents lists the agents that a session belongs to.
func (s *Store) SessionAgents(ctx context.Context, id string) ([]string, error) {
	rows, err := s.reads.QueryContext(ctx, selectSessionAgents, id)
	if err != nil {
		return nil, explain(err)
	}
	defer rows.Close()
	var agents []string
	for rows.Next() {
		var agent string
		if err := rows.Scan(&agent); err != nil {
			return nil, explain(err)
		}
		agents = append(agents, agent)
	}
	return agents, explain(rows.Err())
}

const selectSessionAgents = `SELECT agent FROM session_agents WHERE session = ? ORDER BY agent`

// ClaimSession makes a session belong to an agent, too.
func (s *Store) ClaimSession(ctx context.Context, id, agent string, mine func(agent string) bool) error {
	if id == "" || agent == "" {
		return gate.Errorf(gate.CodeValidation, "claim needs a session and an agent")
	}
	return s.writer.do(ctx, claimSession{id, agent, mine})
}

type claimSession struct {
	id, agent string
	mine      func(string) bool
}

func (w claimSession) apply(c *conn) error {
	foreign := false
	err := c.each(func(v []driver.Value) { foreign = foreign || !w.mine(v[0].(string)) }, 1, selectSessionAgents, w.id)
	if err != nil {
		return err
	}
	if foreign {
		return gate.Errorf(gate.CodeNotFound, "session %q is not known", w.id)
	}
	return joinSession(c, w.id, w.agent)
}

// joinSession makes the session belong to the agent; most often it does.
func joinSession(c *conn, id, agent string) error {
	return c.exec(`INSERT OR IGNORE INTO session_agents (session, agent) VALUES (?, ?)`, id, agent)
}

// EraseSession removes counts, activations, claims and records of the session,
// and the idempotency keys that those records answered, in one transaction. The bytes
// are overwritten (secure_delete), and the WAL, which may still hold older
// copies, is emptied as soon as no reader stands on it.
func (s *Store) EraseSession(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	if err := s.writer.do(ctx, eraseSession{id}); err != nil {
		return err
	}
	s.upkeep.emptyWAL()
	return nil
}

type eraseSession struct{ id string }

func (w eraseSession) apply(c *conn) error {
	const mine = `FROM evaluations WHERE session <> '' AND session = ?1`
	for _, text := range []string{
		`DELETE FROM idempotency WHERE id IN (SELECT idempotency ` + mine + `)`,
		`DELETE FROM outbox WHERE seq IN (SELECT seq ` + mine + `)`, // what a sink has already is beyond us
		`DELETE FROM evaluation_hooks WHERE seq IN (SELECT seq ` + mine + `)`,
		`DELETE ` + mine,
		`DELETE FROM counts WHERE session = ?1`,
		`DELETE FROM activations WHERE session = ?1`,
		`DELETE FROM session_agents WHERE session = ?1`,
		`UPDATE audit SET session = '' WHERE session <> '' AND session = ?1`, // that somebody switched a hook stays
	} {
		if err := c.exec(text, w.id); err != nil {
			return err
		}
	}
	return nil
}
