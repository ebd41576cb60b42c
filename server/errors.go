package server

import (
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// statuses is DESIGN §5's table.
var statuses = map[gate.Code]int{
	gate.CodeInvalidJSON:          http.StatusBadRequest,
	gate.CodeValidation:           http.StatusBadRequest,
	gate.CodeInvalidObjectType:    http.StatusBadRequest,
	gate.CodeUnauthenticated:      http.StatusUnauthorized,
	gate.CodeForbidden:            http.StatusForbidden,
	gate.CodeBadOrigin:            http.StatusForbidden,
	gate.CodeNotFound:             http.StatusNotFound,
	gate.CodeMethodNotAllowed:     http.StatusMethodNotAllowed,
	gate.CodeConflict:             http.StatusConflict,
	gate.CodePreconditionFailed:   http.StatusPreconditionFailed,
	gate.CodeBodyTooLarge:         http.StatusRequestEntityTooLarge,
	gate.CodeUnsupportedMediaType: http.StatusUnsupportedMediaType,
	gate.CodeIdempotencyMismatch:  http.StatusUnprocessableEntity,
	gate.CodeRateLimited:          http.StatusTooManyRequests,
	gate.CodeInternal:             http.StatusInternalServerError,
	gate.CodeOverloaded:           http.StatusServiceUnavailable,
}

var errPanicked = errors.New("handler panicked") // already logged, with its stack

// errorBody is the shape of every answer that is not a success.
type errorBody struct {
	Error struct {
		Code    gate.Code `json:"code"`
		Message string    `json:"message"`
		Details []remark  `json:"details"`
	} `json:"error"`
}

// remark is a [gate.Finding] where its severity is clear.
type remark struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// remarks are the findings of one severity; never nil.
func remarks(findings []gate.Finding, of gate.Severity) []remark {
	list := []remark{}
	for _, f := range findings {
		if f.Severity == of {
			list = append(list, remark{f.Path, f.Line, f.Column, f.Message})
		}
	}
	return list
}

// writeError is the one place where an error becomes an answer.
func (s *Server) writeError(err error, c echo.Context) {
	if c.Response().Committed {
		// Half an answer has left: cut it short, so that it cannot be taken
		// for a whole one.
		s.log.LogAttrs(c.Request().Context(), slog.LevelWarn, "answer was cut short",
			slog.String("request_id", requestIDOf(c)), slog.String("route", c.Path()), slog.Any("error", err))
		panic(http.ErrAbortHandler)
	}
	e := s.publicError(err, c)
	status := statuses[e.Code]
	switch status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		seconds := max(1, int64(math.Ceil(e.Retry.Seconds())))
		c.Response().Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	case http.StatusUnauthorized:
		c.Response().Header().Set("WWW-Authenticate", challenge(c.Request()))
	}
	var body errorBody
	body.Error.Code = codeOn(c.Request().URL.Path, e.Code)
	body.Error.Message = e.Message
	body.Error.Details = remarks(e.Details, gate.SeverityError)
	if err := s.answer(c, status, &body); err != nil {
		s.log.LogAttrs(c.Request().Context(), slog.LevelDebug, "error answer could not be sent",
			slog.String("request_id", requestIDOf(c)), slog.Any("error", err))
	}
}

// publicError is what the caller is told. What only we can mend is logged
// whole and told as internal.
func (s *Server) publicError(err error, c echo.Context) *gate.Error {
	var framework *echo.HTTPError
	var tooLarge *http.MaxBytesError
	switch e, ok := errors.AsType[*gate.Error](err); {
	case errors.As(err, &tooLarge): // first: a reader may have wrapped it in an error of its own
		return tooLargeError(tooLarge.Limit)
	case ok && e.Code != gate.CodeInternal && statuses[e.Code] != 0:
		return e
	case errors.As(err, &framework) && framework.Code == http.StatusNotFound:
		return gate.Errorf(gate.CodeNotFound, "no route %s %q: /openapi.yaml has them all", c.Request().Method, c.Request().URL.Path)
	case errors.As(err, &framework) && framework.Code == http.StatusMethodNotAllowed:
		return gate.Errorf(gate.CodeMethodNotAllowed, "method %q is not allowed here, these are: %s", c.Request().Method, c.Response().Header().Get("Allow"))
	}
	if !errors.Is(err, errPanicked) {
		level := slog.LevelError
		if c.Request().Context().Err() != nil { // the caller has gone, and ended what was done for it
			level = slog.LevelDebug
		}
		s.log.LogAttrs(c.Request().Context(), level, "request failed",
			slog.String("request_id", requestIDOf(c)), slog.String("route", c.Path()), slog.Any("error", err))
	}
	return gate.Errorf(gate.CodeInternal, "the server failed; its log says why under request id %q", requestIDOf(c))
}

// codeOn spells a code as the routes of that path do: the Azure routes have
// their own words (spec/azure.md 7).
func codeOn(path string, code gate.Code) gate.Code {
	azure := strings.HasPrefix(path, "/api/")
	switch {
	case azure && code == gate.CodeValidation:
		return "ValidationFailure"
	case azure && code == gate.CodeInvalidObjectType:
		return "InvalidObjectType"
	case code == gate.CodeInvalidObjectType:
		return gate.CodeValidation
	}
	return code
}

func tooLargeError(limit int64) *gate.Error {
	return gate.Errorf(gate.CodeBodyTooLarge, "request body is over the limit of %d bytes", limit)
}
