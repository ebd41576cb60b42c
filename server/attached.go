package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// resource is one document that can be put.
type resource struct {
	kind gate.SpecKind
	name string // of an agent's hooks and its network: the agent's
}

// about says which resource a request means.
type about func(c echo.Context) (resource, error)

// named is about the resource of that kind whose name is in the path.
func named(kind gate.SpecKind) about {
	return func(c echo.Context) (resource, error) {
		name, err := segment(c, "name")
		return resource{kind, name}, err
	}
}

// attachedHooks is about the hooks that the agent in the path has in the
// dialect that the query names.
func attachedHooks(c echo.Context) (resource, error) {
	name, err := segment(c, "name")
	if err != nil {
		return resource{}, err
	}
	asked := c.QueryParam("dialect")
	if asked == "" {
		return resource{}, gate.Errorf(gate.CodeValidation, "query has no dialect=: want one of %q as in ?dialect=%s", attachable(), gate.Antigravity)
	}
	return resource{gate.Attached(gate.Dialect(asked)), name}, nil
}

// hooksOf is what an agent has of one dialect, in GET /v1/agents/{name}/hooks.
type hooksOf struct {
	Dialect gate.Dialect   `json:"dialect"`
	ETag    string         `json:"etag"`
	Put     *time.Time     `json:"time"`     // nil: a file defines it
	InForce bool           `json:"in_force"` // false: this version cannot read what is stored, or this server asks none of its hooks
	Hooks   map[string]int `json:"hooks"`    // how many, by the dialect's own name of the event
	Unasked int            `json:"unasked"`  // of them, that this server cannot ask as it is now
}

// getAttached is one document of an agent's, or, without a dialect, the list of
// what it has.
func (s *Server) getAttached(c echo.Context) error {
	if c.QueryParam("dialect") != "" {
		return s.getSpec(attachedHooks)(c)
	}
	name, err := segment(c, "name")
	if err != nil {
		return err
	}
	list := []hooksOf{}
	for _, d := range gate.Dialects {
		kind := gate.Attached(d)
		if d == gate.Azure {
			kind = gate.AgentSpec
		}
		of, err := s.hooksOf(c.Request().Context(), d, resource{kind, name})
		if gate.CodeOf(err) == gate.CodeNotFound {
			continue
		}
		if err != nil {
			return err
		}
		list = append(list, of)
	}
	if len(list) == 0 {
		return gate.Errorf(gate.CodeNotFound, "%s %q is not known", gate.AgentSpec, name)
	}
	return s.answer(c, http.StatusOK, pageOf(list, ""))
}

// hooksOf is what is to be said of one document: CodeNotFound where there is none.
func (s *Server) hooksOf(ctx context.Context, d gate.Dialect, of resource) (has hooksOf, err error) {
	has.Dialect, has.Hooks = d, map[string]int{}
	spec := s.opt.Gate.Policies.Find(of.kind, of.name)
	if spec != nil {
		for i := range spec.Hooks {
			h := &spec.Hooks[i]
			has.Hooks[s.opt.EventName(d, h.Event)]++
			if s.opt.Unasked != nil && s.opt.Unasked(h) {
				has.Unasked++
			}
		}
		has.InForce = len(spec.Hooks) == 0 || has.Unasked < len(spec.Hooks)
	}
	if spec != nil && spec.Source != "" {
		has.ETag = etagOf(spec)
		return has, nil
	}
	stored, err := s.opt.Store.Spec(ctx, of.kind, of.name)
	has.ETag, has.Put = stored.ETag, new(time.UnixMilli(stored.At).UTC())
	return has, err
}

func isAttached(kind gate.SpecKind) bool {
	return slices.ContainsFunc(attachable(), func(d string) bool { return gate.Attached(gate.Dialect(d)) == kind })
}

// attachable are the dialects in which an agent may have hooks beside its spec,
// which has azure's.
func attachable() (names []string) {
	for _, d := range gate.Dialects {
		if d != gate.Azure {
			names = append(names, string(d))
		}
	}
	return names
}

// readAttached reads hooks in the dialect of the kind. What is wrong with the
// document is told by findings, what is no JSON by an error.
func (s *Server) readAttached(of resource, body []byte) (*gate.Spec, []gate.Finding, error) {
	for _, d := range gate.Dialects {
		if gate.Attached(d) == of.kind {
			return ownJSON(body, func() (*gate.Spec, []gate.Finding) { return s.opt.ReadAttached(d, of.name, body) })
		}
	}
	return nil, nil, gate.Errorf(gate.CodeInternal, "resources of kind %q are not known to this version", of.kind)
}

// ownJSON is what read makes of a body. The findings on one that is no JSON at
// all are the error that such a body is everywhere.
func ownJSON(body []byte, read func() (*gate.Spec, []gate.Finding)) (*gate.Spec, []gate.Finding, error) {
	spec, findings := read()
	if _, _, err := sound(spec, findings, nil); err != nil && !json.Valid(body) {
		return nil, nil, &gate.Error{Code: gate.CodeInvalidJSON, Message: err.Error(), Details: findings}
	}
	return spec, findings, nil
}

// shown is a document as an answer may have it: a network's and hooks' without
// their secrets (spec/antigravity.md 16).
func (s *Server) shown(kind gate.SpecKind, document json.RawMessage) json.RawMessage {
	if kind == gate.NetworkSpec || isAttached(kind) {
		return s.opt.HideSecrets(kind, document)
	}
	return document
}
