package server

import (
	"context"
	_ "embed"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

//go:embed openapi.yaml
var openAPIDocument []byte

func (s *Server) openAPI(c echo.Context) error {
	return s.send(c, http.StatusOK, "application/yaml", openAPIDocument)
}

// listSchemas are the paths of all JSON Schemas.
func (s *Server) listSchemas(c echo.Context) error {
	paths := []string{}
	for _, name := range slices.Sorted(maps.Keys(s.opt.Schemas)) {
		paths = append(paths, "/schemas/"+name+".json")
	}
	return s.answer(c, http.StatusOK, map[string][]string{"value": paths})
}

// getSchema is one JSON Schema, as /schemas/spec.json.
func (s *Server) getSchema(c echo.Context) error {
	file, err := segment(c, "file")
	if err != nil {
		return err
	}
	name, isJSON := strings.CutSuffix(file, ".json")
	text := s.opt.Schemas[name]
	if !isJSON || text == nil {
		return gate.Errorf(gate.CodeNotFound, "there is no schema %q: /schemas/NAME.json has %s", file, strings.Join(slices.Sorted(maps.Keys(s.opt.Schemas)), ", "))
	}
	return s.send(c, http.StatusOK, "application/schema+json", text)
}

func (s *Server) healthz(c echo.Context) error {
	return s.answer(c, http.StatusOK, map[string]string{"status": "ok"})
}

// readyTimeout bounds the checks, so that a probe gets its answer.
const readyTimeout = 3 * time.Second

// readyz is 200 when the store works; what else evaluations need is reported,
// since hooks have their own failMode for it (DESIGN §5). Everybody may ask;
// why something does not work is told to those who may read.
func (s *Server) readyz(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
	defer cancel()
	checks := map[string]Check{}
	if s.opt.Ready != nil {
		maps.Copy(checks, s.opt.Ready(ctx))
	}
	store := Check{OK: true, Reason: s.opt.StoreName}
	if err := s.opt.Store.Ping(ctx); err != nil {
		store = Check{Reason: err.Error()}
	}
	checks["store"] = store
	if who, err := s.identify(c.Request()); err != nil || !who.May(gate.ReadScope) {
		for name, check := range checks { // reasons name files and servers
			checks[name] = Check{OK: check.OK}
		}
	}
	status, word := http.StatusOK, "ready"
	switch {
	case s.draining.Load():
		status, word = http.StatusServiceUnavailable, "shutting_down"
	case !store.OK:
		status, word = http.StatusServiceUnavailable, "not_ready"
	}
	return s.answer(c, status, struct {
		Status  string           `json:"status"`
		Version string           `json:"version,omitempty"`
		Checks  map[string]Check `json:"checks"`
	}{word, s.opt.Version, checks})
}
