package server

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// validate is POST /v1/validate. A document with errors is a good request:
// only a body that cannot be read at all is refused.
func (s *Server) validate(c echo.Context) error {
	if d := c.QueryParam("dialect"); d != "" && d != string(gate.Azure) {
		return gate.Errorf(gate.CodeValidation, "dialect %q is unknown; there is %q", d, gate.Azure)
	}
	return s.withBody(c.Request(), s.opt.Limits.SpecBytes, func(body []byte) error {
		_, findings, err := s.opt.ReadAny(mediaType(c.Request()), body)
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
