package server

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// listAudit answers what was changed, by whom and from where.
func (s *Server) listAudit(c echo.Context) error {
	filter, err := readAuditFilter(c.Request().URL.RawQuery)
	if err != nil {
		return err
	}
	entries, next, err := s.opt.Store.Audit(c.Request().Context(), filter)
	if err != nil {
		return err
	}
	return s.answer(c, http.StatusOK, pageOf(entries, next))
}

var auditFilters = []string{"action", "kind", "name", "by", "since", "until", "limit", "cursor"}

func readAuditFilter(query string) (gate.AuditFilter, error) {
	values, err := readQuery(query, auditFilters)
	if err != nil {
		return gate.AuditFilter{}, err
	}
	f := gate.AuditFilter{Action: gate.Action(values.Get("action")), Kind: values.Get("kind"), Name: values.Get("name"),
		By: values.Get("by"), Cursor: values.Get("cursor")}
	if f.Action != "" && !slices.Contains(gate.Actions, f.Action) {
		return f, gate.Errorf(gate.CodeValidation, "action %q is unknown; there are %q", f.Action, gate.Actions)
	}
	if f.Since, err = readTime(values, "since"); err != nil {
		return f, err
	}
	if f.Until, err = readTime(values, "until"); err != nil {
		return f, err
	}
	f.Limit, err = readLimit(values)
	return f, err
}
