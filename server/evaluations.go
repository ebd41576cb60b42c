package server

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

func (s *Server) listEvaluations(c echo.Context) error {
	filter, err := readFilter(c.Request().URL.RawQuery)
	if err != nil {
		return err
	}
	items, next, err := s.opt.Store.Records(c.Request().Context(), filter)
	if err != nil {
		return err
	}
	answer := struct {
		Value []gate.RecordSummary `json:"value"`
		Next  *string              `json:"next"`
	}{Value: items}
	if items == nil {
		answer.Value = []gate.RecordSummary{}
	}
	if next != "" {
		answer.Next = &next
	}
	return s.answer(c, http.StatusOK, answer)
}

func (s *Server) getEvaluation(c echo.Context) error {
	id, err := segment(c, "id")
	if err != nil {
		return err
	}
	rec, err := s.opt.Store.Record(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return s.answer(c, http.StatusOK, rec)
}

var filters = []string{"agent", "session", "event", "decision", "hook", "since", "until", "dry_run", "limit", "cursor"}

// readFilter is strict: a misspelt filter that was ignored would list what was
// not asked for.
func readFilter(query string) (gate.RecordFilter, error) {
	var f gate.RecordFilter
	values, err := url.ParseQuery(query)
	if err != nil {
		return f, gate.Errorf(gate.CodeValidation, "query cannot be read: %w", err)
	}
	for name, given := range values {
		if !slices.Contains(filters, name) {
			return f, gate.Errorf(gate.CodeValidation, "query parameter %q is unknown; there are %q", name, filters)
		}
		if len(given) > 1 {
			return f, gate.Errorf(gate.CodeValidation, "query parameter %q is given %d times", name, len(given))
		}
	}
	f.Agent, f.Session, f.Hook, f.Cursor = values.Get("agent"), values.Get("session"), values.Get("hook"), values.Get("cursor")
	if v := values.Get("event"); v != "" {
		if f.Event = gate.EventName(v); !f.Event.Known() {
			return f, gate.Errorf(gate.CodeValidation, "event %q is unknown; there are %q", v, gate.EventNames)
		}
	}
	if v := values.Get("decision"); v != "" {
		decisions := []gate.Outcome{gate.Allow, gate.Block, gate.Ask}
		if f.Decision = gate.Outcome(v); !slices.Contains(decisions, f.Decision) {
			return f, gate.Errorf(gate.CodeValidation, "decision %q is unknown; there are %q", v, decisions)
		}
	}
	if f.Since, err = readTime(values, "since"); err != nil {
		return f, err
	}
	if f.Until, err = readTime(values, "until"); err != nil {
		return f, err
	}
	switch v := values.Get("dry_run"); v {
	case "":
	case "true", "false":
		f.DryRun = new(v == "true")
	default:
		return f, gate.Errorf(gate.CodeValidation, "dry_run is %q, want true or false", v)
	}
	if v := values.Get("limit"); v != "" {
		if f.Limit, err = strconv.Atoi(v); err != nil || f.Limit < 1 || f.Limit > 1000 {
			return f, gate.Errorf(gate.CodeValidation, "limit %q is not a number from 1 to 1000", v)
		}
	}
	return f, nil
}

func readTime(values url.Values, name string) (time.Time, error) {
	v := values.Get(name)
	if v == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return time.Time{}, gate.Errorf(gate.CodeValidation, "%s %q is not a time of RFC 3339, as 2026-01-31T12:00:00Z", name, v)
	}
	return t, nil
}
