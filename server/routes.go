package server

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// route is one line of DESIGN §5.
type route struct {
	method, path string
	query        query
	accepts      []string // media types of the body; nil: JSON
	access       access
	handle       echo.HandlerFunc
}

// handler is the route's handle behind its guard and the checks of its query and
// content type, which no route can go without. A host's query is its handler's to
// check: it takes an error for "allow".
func (s *Server) handler(r route) echo.HandlerFunc {
	accepts := r.accepts
	if accepts == nil {
		accepts = []string{typeJSON}
	}
	hasBody := r.method == http.MethodPost || r.method == http.MethodPut
	return func(c echo.Context) error {
		if !r.access.open {
			if err := s.notFromHook(c); err != nil {
				return err
			}
		}
		if err := s.guard(c, r.access); err != nil {
			if failure := hostsFailure(err); failure != nil && r.access.host {
				return s.hostOfNobody(c, failure)
			}
			return err
		}
		if !r.access.host {
			if err := r.query.check(c.Request().URL.RawQuery); err != nil {
				return err
			}
		}
		if hasBody {
			if err := checkContentType(c.Request(), accepts); err != nil {
				return err
			}
		}
		return r.handle(c)
	}
}

func (s *Server) routes() []route {
	const (
		get, put, post, del = http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete

		agents   = "/api/v2/extendedAgent/agents"
		hooks    = "/api/v2/extendedAgent/hooks"
		attached = "/v1/agents/:name/hooks"
		network  = "/v1/agents/:name/network"
		thread   = "/api/v1/threads/:thread/hooks"
		session  = "/v1/sessions/:session"
	)
	spec := []string{typeJSON, "application/yaml", "text/yaml", "application/x-yaml", "text/x-yaml"}
	text := []string{"text/plain", "application/x-ndjson", typeJSON}
	ofAttached := oneOf("dialect", attachable()...)
	ofAttached.elsewhere = map[string]string{string(gate.Azure): "; an agent's own spec is at " + agents + "/NAME"}
	dialect := query{ofAttached}
	anyDialect := query{oneOf("dialect", gate.Dialects...)}
	open := access{open: true}
	read := func(l limit) access { return access{scope: gate.ReadScope, limit: l} }
	host := access{scope: gate.EvaluateScope, limit: filtered, host: true}
	ask := func(l limit) access { return access{scope: gate.EvaluateScope, limit: l} }
	admin := func(l limit) access { return access{scope: gate.AdminScope, limit: l} }
	// What a route is about is the agent in its path, the session, or what its
	// handler finds; nil keeps it from those who are limited to some agents.
	return []route{
		{get, agents, nil, nil, read(filtered), s.listSpecs(gate.AgentSpec)},
		{get, agents + "/:name", nil, nil, read(ownAgent), s.getSpec(named(gate.AgentSpec))},
		{put, agents + "/:name", nil, spec, admin(ownAgent), s.putSpec(named(gate.AgentSpec))},
		{del, agents + "/:name", nil, nil, admin(ownAgent), s.deleteSpec(named(gate.AgentSpec))},
		// An agent-level hook is every agent's.
		{get, hooks, nil, nil, read(shared), s.listSpecs(gate.HookSpec)},
		{get, hooks + "/:name", nil, nil, read(shared), s.getSpec(named(gate.HookSpec))},
		{put, hooks + "/:name", nil, spec, admin(nil), s.putSpec(named(gate.HookSpec))},
		{del, hooks + "/:name", nil, nil, admin(nil), s.deleteSpec(named(gate.HookSpec))},

		{get, "/v1/agents", nil, nil, read(filtered), s.listAgents},
		{get, attached, dialect, nil, read(ownAgent), s.getAttached},
		{put, attached, dialect, nil, admin(ownAgent), s.putSpec(attachedHooks)},
		{del, attached, dialect, nil, admin(ownAgent), s.deleteSpec(attachedHooks)},
		{get, network, nil, nil, read(ownAgent), s.getSpec(named(gate.NetworkSpec))},
		{put, network, nil, nil, admin(ownAgent), s.putSpec(named(gate.NetworkSpec))},
		{del, network, nil, nil, admin(ownAgent), s.deleteSpec(named(gate.NetworkSpec))},

		{get, thread, nil, nil, read(ownSession("thread")), s.listThreadHooks},
		{post, thread + "/:hook/activate", nil, nil, admin(ownSession("thread")), s.switchHook(true)},
		{post, thread + "/:hook/deactivate", nil, nil, admin(ownSession("thread")), s.switchHook(false)},

		{post, "/v1/evaluate", nil, nil, ask(filtered), s.evaluate},
		{post, "/v1/hooks/:protocol", hostsQuery, nil, host, s.hook},
		{post, "/v1/dry-run", nil, nil, admin(filtered), s.dryRun},
		{post, "/v1/validate", anyDialect, spec, read(shared), s.validate},

		{get, session, nil, nil, read(ownSession("session")), s.getSession},
		{del, session, nil, nil, admin(ownSession("session")), s.deleteSession},
		{get, session + "/override", nil, nil, read(ownSession("session")), s.getOverride},
		{put, session + "/override", nil, nil, admin(ownSession("session")), s.putOverride},
		{del, session + "/override", nil, nil, admin(ownSession("session")), s.deleteOverride},
		{get, session + "/transcript", nil, nil, read(ownSession("session")), s.getTranscript},
		{put, session + "/transcript", anyOf("agent"), text, ask(filtered), s.upload(s.opt.Transcripts.Replace)},
		{post, session + "/transcript", anyOf("agent", "format", "at", "after", "then"), text, ask(filtered), s.appendTranscript},

		{get, "/v1/evaluations", evaluationsQuery, nil, read(filtered), s.listEvaluations},
		{get, "/v1/evaluations/export", evaluationsQuery, nil, read(filtered), s.exportEvaluations},
		{get, "/v1/evaluations/:id", nil, nil, read(filtered), s.getEvaluation},
		{get, "/v1/evaluations/:id/transcript", originalQuery, nil, read(filtered), s.getEvaluationTranscript},

		{get, "/v1/keys", nil, nil, admin(nil), s.listKeys},
		{post, "/v1/keys", nil, nil, admin(nil), s.createKey},
		{del, "/v1/keys/:key", nil, nil, admin(nil), s.revokeKey},
		{get, "/v1/audit", auditQuery, nil, admin(nil), s.listAudit},

		{get, "/healthz", nil, nil, open, s.healthz},
		{get, "/readyz", nil, nil, open, s.readyz},
		{get, "/metrics", query{{name: "name[]", many: true}}, nil, read(nil), s.getMetrics()},
		{get, "/openapi.yaml", nil, nil, open, s.openAPI},
		{get, "/schemas/", nil, nil, open, s.listSchemas},
		{get, "/schemas/:file", nil, nil, open, s.getSchema},
	}
}

// maxSegment is the longest name in a path, in bytes.
const maxSegment = 512

// segment is a path parameter, decoded once (spec/azure.md 9): Echo matches
// the escaped path where net/url kept one, the decoded path otherwise.
func segment(c echo.Context, name string) (string, error) {
	v := c.Param(name)
	if strings.Contains(v, "/") { // Echo lets the last parameter take all that follows
		return "", echo.ErrNotFound
	}
	if c.Request().URL.RawPath != "" {
		var err error
		if v, err = url.PathUnescape(v); err != nil {
			return "", gate.Errorf(gate.CodeValidation, "path parameter %q is not URL-escaped: %w", name, err)
		}
	}
	switch {
	case v == "":
		return "", gate.Errorf(gate.CodeNotFound, "path has an empty %s", name)
	case len(v) > maxSegment:
		return "", gate.Errorf(gate.CodeValidation, "path parameter %q has %d bytes, at most %d are allowed", name, len(v), maxSegment)
	case !utf8.ValidString(v) || strings.ContainsRune(v, 0): // no JSON body, and not every store, can hold it
		return "", gate.Errorf(gate.CodeValidation, "path parameter %q is not UTF-8 text without NUL", name)
	}
	return v, nil
}
