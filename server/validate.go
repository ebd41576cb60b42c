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
	d := gate.Dialect(c.QueryParam("dialect"))
	media := mediaType(c.Request())
	return s.withBody(c, s.opt.Limits.SpecBytes, func(body []byte) error {
		findings, err := s.examine(c, d, media, body)
		if err != nil {
			return err
		}
		return s.answer(c, http.StatusOK, struct {
			Valid    bool           `json:"valid"`
			Findings []gate.Finding `json:"findings"`
		}{!gate.HasErrors(findings), append([]gate.Finding{}, findings...)})
	})
}

// examine is what is to be said of a document: of a dialect, or, where that is
// empty, of the one that it has the form of.
func (s *Server) examine(c echo.Context, d gate.Dialect, media string, body []byte) (findings []gate.Finding, err error) {
	if d == "" && media == typeJSON {
		d, findings = s.recognize(body)
	}
	var spec *gate.Spec
	switch {
	case findings != nil:
		return findings, nil
	case d == "" || d == gate.Azure:
		spec, findings, err = s.opt.ReadAny(media, body)
	case media != typeJSON:
		return nil, gate.Errorf(gate.CodeUnsupportedMediaType, "content type %.40q is not read here, want %s", media, typeJSON)
	default:
		spec, findings, err = s.readAttached(resource{gate.Attached(d), gate.DefaultAgent}, body)
	}
	if of := findingsOf(err); of != nil {
		return of, nil
	}
	return s.withUnserved(c, spec, body, findings), err
}

// recognize is the dialect that JSON has the form of, or what is to be said where
// it has none.
func (s *Server) recognize(body []byte) (gate.Dialect, []gate.Finding) {
	d, err := s.opt.DialectOf("", body)
	if err != nil {
		return "", []gate.Finding{{Severity: gate.SeverityError, Line: 1, Column: 1, Message: err.Error()}}
	}
	return d, nil
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
