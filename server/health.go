package server

import (
	"context"
	_ "embed"
	"maps"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

//go:embed openapi.yaml
var openAPIDocument []byte

func (s *Server) openAPI(c echo.Context) error {
	return s.send(c, http.StatusOK, "application/yaml", openAPIDocument)
}

func (s *Server) healthz(c echo.Context) error {
	return s.answer(c, http.StatusOK, map[string]string{"status": "ok"})
}

// readyTimeout bounds the checks, so that a probe gets its answer.
const readyTimeout = 3 * time.Second

// readyz is 200 when the store works; what else evaluations need is reported,
// since hooks have their own failMode for it (DESIGN §5).
func (s *Server) readyz(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
	defer cancel()
	checks := map[string]Check{}
	if s.opt.Ready != nil {
		maps.Copy(checks, s.opt.Ready(ctx))
	}
	store := Check{OK: true}
	if err := s.opt.Store.Ping(ctx); err != nil {
		store = Check{Reason: err.Error()}
	}
	checks["store"] = store
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
