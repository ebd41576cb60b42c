package server

import (
	"context"
	"errors"
	"slices"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// A session belongs to the agents of its events, and to those that it was
// claimed for by an upload; to nobody, too, after an upload that named none. A
// caller that is limited to some agents may use a session only where it belongs to
// those alone, since what a session has, its conversation above all, is one for all
// its agents. Names are first come, first served: such a caller can find out that a
// name is taken, and no more.

// claim makes a session that the request writes to belong to the agent that the
// request names, or the only one that its caller has, or else to nobody.
func (s *Server) claim(c echo.Context, session string, seen gate.Erasure) error {
	who, agent := callerOf(c), c.QueryParam("agent")
	switch {
	case agent == "" && c.QueryParams().Has("agent"):
		return gate.Errorf(gate.CodeValidation, "query parameter agent is empty: name the agent, or leave it out")
	case agent == "" && !who.Limited():
		return s.claimFor(c.Request().Context(), who, session, gate.Nobody, seen)
	case agent == "":
		var one bool
		if agent, one = who.OnlyAgent(); !one {
			return gate.Errorf(gate.CodeValidation, "query has no agent=: this credential is for several agents, and the session must belong to one")
		}
	}
	if len(agent) > maxSegment {
		return gate.Errorf(gate.CodeValidation, "query parameter agent has %d bytes, at most %d are allowed", len(agent), maxSegment)
	}
	if !who.Owns(agent) {
		return notYours(agent)
	}
	return s.claimFor(c.Request().Context(), who, session, agent, seen)
}

// claimFor makes a session belong to one of the caller's agents, unless it was erased
// since seen.
func (s *Server) claimFor(ctx context.Context, who gate.Caller, session, agent string, seen gate.Erasure) error {
	agents, err := s.opt.Store.SessionAgents(ctx, session)
	switch {
	case err != nil:
		return err
	case !who.OwnsAll(agents):
		return unknownSession(session)
	case slices.Contains(agents, agent):
		return nil
	}
	if len(agents) == 0 && who.Limited() {
		// A conversation that nobody said whose it is, is not for the first to come.
		text, _, _, err := s.opt.Transcripts.Read(ctx, session)
		if err == nil {
			text.Close()
			return unknownSession(session)
		}
		if gate.CodeOf(err) != gate.CodeNotFound {
			return err
		}
	}
	return s.opt.Store.ClaimSession(ctx, session, agent, seen, who.Owns)
}

// confine holds an event to its caller's agents: the agent that it is about, and
// the one that its sub-agent's end is moved to; its session, and the
// conversation that it names. Errors are a [*gate.Error], or a [*gate.Failure]
// where the store does not say whose the session is, or the session was erased just
// now.
func (s *Server) confine(ctx context.Context, who gate.Caller, ev *gate.Event) error {
	if !who.Limited() {
		return nil
	}
	if !who.Owns(ev.Agent) {
		return notYours(ev.Agent)
	}
	agent := ev.Agent
	if ev.Name == gate.SubagentStop && ev.AgentType != "" && s.opt.Gate.Policies.Find(gate.AgentSpec, ev.AgentType) != nil {
		if agent = ev.AgentType; !who.Owns(agent) { // its hooks are asked, and it is recorded as its own
			return notYours(agent)
		}
	}
	if ev.TranscriptPath != "" { // a file of this machine is nobody's, and may be anybody's
		if ev.Protocol == gate.Native && ev.TranscriptSession == "" {
			return gate.Errorf(gate.CodeForbidden, "execution_summary names a file of the server's machine, which a credential that is limited to some agents may not read: send the conversation")
		}
		ev.TranscriptPath, ev.TranscriptStale = "", true
	}
	for _, session := range []string{ev.Session, ev.TranscriptSession} {
		if session == "" {
			continue
		}
		seen, err := s.opt.Store.Erasure(ctx, session)
		if err == nil {
			err = s.claimFor(ctx, who, session, agent, seen)
		}
		switch {
		case errors.Is(err, gate.ErrErased):
			return &gate.Failure{Code: gate.SessionErased, Message: err.Error()}
		case err != nil && gate.CodeOf(err) == gate.CodeInternal:
			return &gate.Failure{Code: gate.StoreUnavailable, Message: err.Error()}
		case err != nil:
			return err
		}
		if session == ev.Session {
			ev.Erasure = seen
		}
	}
	return nil
}

// confineHost is confine for a host: what its credential may not do is the gate's to
// answer, for the host would take an error for "allow".
func (s *Server) confineHost(ctx context.Context, who gate.Caller, ev *gate.Event) error {
	err := s.confine(ctx, who, ev)
	if e, ok := errors.AsType[*gate.Error](err); ok {
		return &gate.Failure{Code: gate.NotPermitted, Message: e.Message}
	}
	return err
}
