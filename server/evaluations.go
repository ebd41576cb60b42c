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
	who := callerOf(c)
	filter.Agents = append([]string{}, who.Agents...) // of a caller without any: none, where nil would be all
	items, next, err := s.opt.Store.Records(c.Request().Context(), filter)
	if err != nil {
		return err
	}
	// The store has kept to the caller's agents; this is so whatever store it is.
	items = slices.DeleteFunc(items, func(r gate.RecordSummary) bool { return !who.Owns(r.Agent) })
	return s.answer(c, http.StatusOK, pageOf(items, next))
}

// page is one page of a list.
type page[T any] struct {
	Value []T     `json:"value"`
	Next  *string `json:"next"` // null at the end
}

func pageOf[T any](items []T, next string) page[T] {
	p := page[T]{Value: append([]T{}, items...)}
	if next != "" {
		p.Next = &next
	}
	return p
}

func (s *Server) getEvaluation(c echo.Context) error {
	rec, err := s.evaluationOf(c)
	if err != nil {
		return err
	}
	return s.answer(c, http.StatusOK, rec)
}

// evaluationOf is the record that a path names.
func (s *Server) evaluationOf(c echo.Context) (gate.Record, error) {
	id, err := segment(c, "id")
	if err != nil {
		return gate.Record{}, err
	}
	rec, err := s.opt.Store.Record(c.Request().Context(), id)
	if err != nil {
		return gate.Record{}, err
	}
	if !callerOf(c).Owns(rec.Agent) { // as if there were none
		return gate.Record{}, gate.Errorf(gate.CodeNotFound, "evaluation %q is not known", id)
	}
	return rec, nil
}

// TranscriptAsText is the header of an evaluation's conversation: "true" where
// some of it is as it was sent, so that its markers may be anybody's.
const TranscriptAsText = "X-Transcript-As-Text"

// getEvaluationTranscript is what the hooks of an evaluation could read. Only what
// was uploaded is shown: a path that an event names is anybody's word.
func (s *Server) getEvaluationTranscript(c echo.Context) error {
	rec, err := s.evaluationOf(c)
	if err != nil {
		return err
	}
	text, asText, err := s.opt.Transcripts.ReadFor(c.Request().Context(), rec)
	if err != nil {
		return err
	}
	defer text.Close()
	c.Response().Header().Set(TranscriptAsText, strconv.FormatBool(asText))
	return s.answerText(c, text)
}

var filters = []string{"agent", "session", "event", "decision", "hook", "since", "until", "dry_run", "limit", "cursor"}

// readFilter is strict: a misspelt filter that was ignored would list what was
// not asked for.
func readFilter(query string) (gate.RecordFilter, error) {
	var f gate.RecordFilter
	values, err := readQuery(query, filters)
	if err != nil {
		return f, err
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
	f.Limit, err = readLimit(values)
	return f, err
}

// readQuery takes a query apart that may have these parameters, each once.
func readQuery(query string, known []string) (url.Values, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, gate.Errorf(gate.CodeValidation, "query cannot be read: %w", err)
	}
	for name, given := range values {
		if !slices.Contains(known, name) {
			return nil, gate.Errorf(gate.CodeValidation, "query parameter %q is unknown; there are %q", name, known)
		}
		if len(given) > 1 {
			return nil, gate.Errorf(gate.CodeValidation, "query parameter %q is given %d times", name, len(given))
		}
	}
	return values, nil
}

// readLimit is how many a page is to have; 0 is the store's default.
func readLimit(values url.Values) (int, error) {
	v := values.Get("limit")
	if v == "" {
		return 0, nil
	}
	limit, err := strconv.Atoi(v)
	if err != nil || limit < 1 || limit > 1000 {
		return 0, gate.Errorf(gate.CodeValidation, "limit %q is not a number from 1 to 1000", v)
	}
	return limit, nil
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
