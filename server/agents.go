package server

import (
	"maps"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// knownAgent is one agent of the list: what it has of its own, in each dialect.
type knownAgent struct {
	Name string `json:"name"`
	// Dialects is how many hooks it has in each of which it has a document; 0 also of
	// one that this version cannot read.
	Dialects map[gate.Dialect]int `json:"dialects"`
	Network  bool                 `json:"network"` // it has a network object
}

// listAgents is GET /v1/agents: every agent of which anything is known, also where
// that is no spec, by name. There are no pages, as in [Server.listSpecs].
func (s *Server) listAgents(c echo.Context) error {
	stored, err := s.opt.Store.CurrentSpecs(c.Request().Context())
	if err != nil {
		return err
	}
	of := make([]resource, 0, len(stored))
	for _, doc := range stored {
		of = append(of, resource{doc.Kind, doc.Name})
	}
	for _, spec := range s.opt.Gate.Policies.Agents() { // a file's too
		of = append(of, resource{spec.Kind, spec.Name})
	}
	agents := map[string]*knownAgent{}
	for _, r := range of {
		if r.kind == gate.HookSpec || !callerOf(c).Owns(r.name) {
			continue
		}
		a := agents[r.name]
		if a == nil {
			a = &knownAgent{Name: r.name, Dialects: map[gate.Dialect]int{}}
			agents[r.name] = a
		}
		if r.kind == gate.NetworkSpec {
			a.Network = true
			continue
		}
		hooks := 0
		if spec := s.opt.Gate.Policies.Find(r.kind, r.name); spec != nil {
			hooks = len(spec.Hooks)
		}
		a.Dialects[dialectOfKind(r.kind)] = hooks
	}
	list := make([]*knownAgent, 0, len(agents))
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		list = append(list, agents[name])
	}
	return s.answer(c, http.StatusOK, pageOf(list, ""))
}

// dialectOfKind is the dialect of an agent's document with hooks.
func dialectOfKind(kind gate.SpecKind) gate.Dialect {
	for _, d := range gate.Dialects {
		if gate.Attached(d) == kind {
			return d
		}
	}
	return gate.Azure
}
