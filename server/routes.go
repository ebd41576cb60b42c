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
	accepts      []string // media types of the body; nil: JSON
	handle       echo.HandlerFunc
}

// handler is the route's handle behind the content-type check, which no route
// with a body can go without.
func (r route) handler() echo.HandlerFunc {
	if r.method != http.MethodPost && r.method != http.MethodPut {
		return r.handle
	}
	accepts := r.accepts
	if accepts == nil {
		accepts = []string{typeJSON}
	}
	return func(c echo.Context) error {
		if err := checkContentType(c.Request(), accepts); err != nil {
			return err
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
	return []route{
		{get, agents, nil, s.listSpecs(gate.AgentSpec)},
		{get, agents + "/:name", nil, s.getSpec(named(gate.AgentSpec))},
		{put, agents + "/:name", spec, s.putSpec(named(gate.AgentSpec))},
		{del, agents + "/:name", nil, s.deleteSpec(named(gate.AgentSpec))},
		{get, hooks, nil, s.listSpecs(gate.HookSpec)},
		{get, hooks + "/:name", nil, s.getSpec(named(gate.HookSpec))},
		{put, hooks + "/:name", spec, s.putSpec(named(gate.HookSpec))},
		{del, hooks + "/:name", nil, s.deleteSpec(named(gate.HookSpec))},

		{get, attached, nil, s.getSpec(attachedHooks)},
		{put, attached, nil, s.putSpec(attachedHooks)},
		{del, attached, nil, s.deleteSpec(attachedHooks)},
		{get, network, nil, s.getSpec(named(gate.NetworkSpec))},
		{put, network, nil, s.putSpec(named(gate.NetworkSpec))},
		{del, network, nil, s.deleteSpec(named(gate.NetworkSpec))},

		{get, thread, nil, s.listThreadHooks},
		{post, thread + "/:hook/activate", nil, s.switchHook(true)},
		{post, thread + "/:hook/deactivate", nil, s.switchHook(false)},

		{post, "/v1/evaluate", nil, s.evaluate},
		{post, "/v1/hooks/:protocol", nil, s.hook},
		{post, "/v1/dry-run", nil, s.dryRun},
		{post, "/v1/validate", spec, s.validate},

		{get, session, nil, s.getSession},
		{del, session, nil, s.deleteSession},
		{get, session + "/transcript", nil, s.getTranscript},
		{put, session + "/transcript", text, s.upload(s.opt.Transcripts.Replace)},
		{post, session + "/transcript", text, s.appendTranscript},

		{get, "/v1/evaluations", nil, s.listEvaluations},
		{get, "/v1/evaluations/:id", nil, s.getEvaluation},

		{get, "/healthz", nil, s.healthz},
		{get, "/readyz", nil, s.readyz},
		{get, "/metrics", nil, s.getMetrics()},
		{get, "/openapi.yaml", nil, s.openAPI},
		{get, "/schemas/:file", nil, s.getSchema},
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
