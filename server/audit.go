package server

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// listAudit answers what was changed, by whom and from where.
func (s *Server) listAudit(c echo.Context) error {
	filter, err := readAuditFilter(c.QueryParams())
	if err != nil {
		return err
	}
	entries, next, err := s.opt.Store.Audit(c.Request().Context(), filter)
	if err != nil {
		return err
	}
	return s.answer(c, http.StatusOK, pageOf(entries, next))
}

var auditQuery = append(anyOf("kind", "name", "by", "since", "until", "limit", "cursor"), oneOf("action", gate.Actions...))

// readAuditFilter reads a query that was checked.
func readAuditFilter(values url.Values) (gate.AuditFilter, error) {
	f := gate.AuditFilter{Action: gate.Action(values.Get("action")), Kind: values.Get("kind"), Name: values.Get("name"),
		By: values.Get("by"), Cursor: values.Get("cursor")}
	var err error
	if f.Since, err = readTime(values, "since"); err != nil {
		return f, err
	}
	if f.Until, err = readTime(values, "until"); err != nil {
		return f, err
	}
	f.Limit, err = readLimit(values)
	return f, err
}
