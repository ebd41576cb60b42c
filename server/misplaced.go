package server

import (
	"encoding/json"
	"fmt"

	"stopgate/gate"
)

// checkName wants what is stored under an agent's name to have a name that an agent
// can have: nobody could ever ask about another.
func (s *Server) checkName(of resource) error {
	if of.kind == gate.AgentSpec || of.kind == gate.HookSpec {
		return nil // the document's own name is checked where it stands
	}
	if err := s.opt.CheckName("agent", of.name); err != nil {
		return gate.Errorf(gate.CodeValidation, "%w", err)
	}
	return nil
}

// ofNobody warns of a network for an agent that has nothing else: its name may be
// misspelt.
func (s *Server) ofNobody(of resource) []gate.Finding {
	if of.kind != gate.NetworkSpec || s.opt.Gate.Policies.Find(gate.Attached(gate.Antigravity), of.name) != nil {
		return nil
	}
	what := "has no hooks of antigravity yet, and the network is for those alone"
	if !s.opt.Gate.Policies.Has(of.name) {
		what = "is not known: no spec and no hooks have that name yet"
	}
	return []gate.Finding{{Severity: gate.SeverityWarning, Message: fmt.Sprintf("agent %q %s", of.name, what)}}
}

// misplaced is a document that reads like one of another system than it was put for.
type misplaced struct{ finding gate.Finding }

// ofAnother says whose a document of hooks is, if by its form it is not of the dialect
// that it was put for; nil: it may be.
func (s *Server) ofAnother(of resource, body []byte) *misplaced {
	if !isAttached(of.kind) || !json.Valid(body) {
		return nil
	}
	d, err := s.opt.DialectOf("", body)
	if err != nil || gate.Attached(d) == of.kind {
		return nil
	}
	message := fmt.Sprintf("this looks like %s: use ?dialect=%[1]s", d)
	if d == gate.Azure {
		message = fmt.Sprintf("this looks like azure: PUT a spec to /api/v2/extendedAgent/agents/%s", of.name)
	}
	return &misplaced{gate.Finding{Severity: gate.SeverityError, Line: 1, Column: 1, Message: message}}
}

// before is the error that says so, and then what else is wrong, as err does.
func (m *misplaced) before(err error) error {
	return &gate.Error{Code: gate.CodeValidation, Message: m.finding.Message, Details: append([]gate.Finding{m.finding}, findingsOf(err)...)}
}
