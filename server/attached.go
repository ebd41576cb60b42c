package server

import (
	"encoding/json"
	"slices"
	"strings"

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
	if !slices.Contains(attachable(), asked) {
		return resource{}, gate.Errorf(gate.CodeValidation, "dialect is %.40q, want one of %s as in ?dialect=%s",
			asked, strings.Join(attachable(), ", "), gate.Antigravity)
	}
	return resource{gate.Attached(gate.Dialect(asked)), name}, nil
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

// shown is a document as an answer may have it: a network's without its secrets
// (spec/antigravity.md 16).
func (s *Server) shown(kind gate.SpecKind, document json.RawMessage) json.RawMessage {
	if kind == gate.NetworkSpec {
		return s.opt.HideSecrets(document)
	}
	return document
}
