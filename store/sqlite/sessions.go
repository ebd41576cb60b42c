package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"

	"stopgate/gate"
	"stopgate/store/record"
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
	return column[string](ctx, s.reads, selectSessionAgents, id)
}

const selectSessionAgents = `SELECT agent FROM session_agents WHERE session = ? ORDER BY agent`

// ClaimSession makes a session belong to an agent, too.
func (s *Store) ClaimSession(ctx context.Context, id, agent string, seen gate.Erasure, mine func(agent string) bool) error {
	if id == "" {
		return gate.Errorf(gate.CodeValidation, "claim needs a session")
	}
	return s.writer.do(ctx, claimSession{id, agent, seen, mine, s.opt.Now().UnixMilli()})
}

type claimSession struct {
	id, agent string
	seen      gate.Erasure
	mine      func(string) bool
	at        int64 // Unix milliseconds
}

func (w claimSession) apply(c *conn) error {
	if w.seen != 0 {
		if erased, err := erasedSince(c, w.id, w.seen); err != nil || erased {
			return cmp.Or(err, error(gate.ErrErased))
		}
	}
	foreign := false
	err := c.each(func(v []driver.Value) { foreign = foreign || !w.mine(v[0].(string)) }, 1, selectSessionAgents, w.id)
	if err != nil {
		return err
	}
	if foreign {
		return gate.Errorf(gate.CodeNotFound, "session %q is not known", w.id)
	}
	return joinSession(c, w.id, w.agent, w.at, "")
}

// SessionProjects are those that were committed with the session's first event.
func (s *Store) SessionProjects(ctx context.Context, session, agent string) (gate.Projects, error) {
	var v [1]driver.Value
	found, err := s.lookups.row(ctx, v[:], selectProjects, session, agent)
	if !found {
		return nil, err
	}
	return record.DecodeProjects(v[0].(string))
}

const selectProjects = `SELECT projects FROM session_agents WHERE session = ? AND agent = ?`

// joinSession makes the session belong to the agent, and keeps its projects where
// none are; most often both is so already.
func joinSession(c *conn, id, agent string, at int64, projects string) error {
	return c.exec(`INSERT INTO session_agents (session, agent, at, projects) VALUES (?, ?, ?, ?)
		ON CONFLICT (session, agent) DO UPDATE SET projects = excluded.projects WHERE projects = '' AND excluded.projects <> ''`, id, agent, at, projects)
}
