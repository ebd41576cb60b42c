package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// around is what every request passes, known route or not: it gets its id, is
// refused if another web page sent it, has its error written and is counted.
func (s *Server) around(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		h := c.Response().Header()
		h.Set("X-Request-Id", s.requestID(c.Request()))
		h.Set("X-Content-Type-Options", "nosniff")
		if len(c.Request().TransferEncoding) > 0 && c.Request().ProtoMajor == 1 {
			// It may have had a Content-Length too, which net/http takes away: then another
			// may see the request end elsewhere, and the next begin there (RFC 9112, 6.1).
			h.Set("Connection", "close")
		}
		body := c.Request().Body // before a handler puts a limit round it
		err := s.checkOrigin(c.Request())
		if err == nil {
			err = s.contain(next, c)
		}
		if err != nil {
			s.writeError(err, c)
			s.drain(c, body)
		}
		s.metrics.request(c.Path(), c.Request().Method, c.Response().Status, time.Since(began))
		return nil
	}
}

// contain makes a panic of a handler an internal error. The caller never sees
// the stack, the log does.
func (s *Server) contain(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == any(http.ErrAbortHandler) { // ours, to cut an answer short
			panic(p)
		}
		s.log.LogAttrs(c.Request().Context(), slog.LevelError, "handler panicked",
			slog.String("request_id", requestIDOf(c)), slog.String("route", c.Path()),
			slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
		err = errPanicked
	}()
	return next(c)
}

// maxRequestID bounds what a caller may have us repeat in headers and logs.
const maxRequestID = 64

// requestID is the caller's own if it is harmless, else a new one. It is
// unique, not secret.
func (s *Server) requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); harmless(id) {
		return id
	}
	return s.idPrefix + strconv.FormatUint(s.requests.Add(1), 36)
}

func harmless(id string) bool {
	for i := range len(id) {
		c := id[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return id != "" && len(id) <= maxRequestID
}

func requestIDOf(c echo.Context) string { return c.Response().Header().Get("X-Request-Id") }
