package server

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// validate is POST /v1/validate. A document with errors is a good request:
// only a body that cannot be read at all is refused.
func (s *Server) validate(c echo.Context) error {
	read := s.opt.ReadAny
	switch d := c.QueryParam("dialect"); {
	case d == "" || d == string(gate.Azure):
	case slices.Contains(attachable(), d):
		if err := checkContentType(c.Request(), []string{typeJSON}); err != nil {
			return err
		}
		of := resource{gate.Attached(gate.Dialect(d)), gate.DefaultAgent}
		read = func(_ string, body []byte) (*gate.Spec, []gate.Finding, error) { return s.readAttached(of, body) }
	default:
		return gate.Errorf(gate.CodeValidation, "dialect %.40q is unknown, want one of %s, %s", d, gate.Azure, strings.Join(attachable(), ", "))
	}
	return s.withBody(c.Request(), s.opt.Limits.SpecBytes, func(body []byte) error {
		_, findings, err := read(mediaType(c.Request()), body)
		if err != nil {
			if findings = findingsOf(err); findings == nil {
				return err
			}
		}
		return s.answer(c, http.StatusOK, struct {
			Valid    bool           `json:"valid"`
			Findings []gate.Finding `json:"findings"`
		}{!gate.HasErrors(findings), append([]gate.Finding{}, findings...)})
	})
}

// findingsOf are the remarks in an error about a document's content; nil when
// the error is about something else.
func findingsOf(err error) []gate.Finding {
	e, ok := errors.AsType[*gate.Error](err)
	switch {
	case !ok || e.Code != gate.CodeValidation && e.Code != gate.CodeInvalidObjectType:
		return nil
	case len(e.Details) == 0:
		return []gate.Finding{{Severity: gate.SeverityError, Message: e.Message}}
	}
	return e.Details
}
