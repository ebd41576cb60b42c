package server

import (
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

func (s *Server) listEvaluations(c echo.Context) error {
	filter, err := readFilter(c.QueryParams())
	if err != nil {
		return err
	}
	who := callerOf(c)
	filter.Agents = append([]string{}, who.Agents...) // of a caller without any: none, where nil would be all
	items, next, err := s.opt.Store.Records(c.Request().Context(), filter)
	if err != nil {
		return err
	}
	// The store has kept to the caller's agents and sessions; this is so whatever
	// store it is.
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
	seen, err := s.mayRead(c, rec)
	if err != nil {
		return gate.Record{}, err
	}
	if !seen { // as if there were none
		return gate.Record{}, gate.Errorf(gate.CodeNotFound, "evaluation %q is not known", id)
	}
	return rec, nil
}

// TranscriptAsText is the header of an evaluation's conversation: "true" where
// some of it is as it was sent, so that its markers may be anybody's.
const TranscriptAsText = "X-Transcript-As-Text"

// originalQuery asks for a conversation with the secrets that hooks could read in it.
var originalQuery = query{oneOf("original", booleans...)}

// getEvaluationTranscript is what the hooks of an evaluation could read, without
// secrets; as it was, which a replay needs, for an administrator who asks for it. Only
// what was uploaded is shown: a path that an event names is anybody's word.
func (s *Server) getEvaluationTranscript(c echo.Context) error {
	rec, err := s.evaluationOf(c)
	if err != nil {
		return err
	}
	original := c.QueryParam("original") == "true"
	if original && !callerOf(c).May(gate.AdminScope) {
		return gate.Errorf(gate.CodeForbidden, "scope %q is needed for a conversation with its secrets, and this credential does not have it", gate.AdminScope)
	}
	text, asText, err := s.opt.Transcripts.ReadFor(c.Request().Context(), rec, original)
	if err != nil {
		return err
	}
	if original {
		s.log.LogAttrs(c.Request().Context(), slog.LevelInfo, "a conversation was shown with its secrets", slog.String("request_id", requestIDOf(c)),
			slog.String("evaluation_id", rec.EvaluationID), slog.String("by", callerOf(c).Name))
	}
	defer text.Close()
	c.Response().Header().Set(TranscriptAsText, strconv.FormatBool(asText))
	if !asText && wantsMessages(c.Request()) {
		return s.answerMessages(c, text)
	}
	return s.answerText(c, text)
}

// messagesType is that of a conversation as messages.
const messagesType = "application/x-ndjson"

// wantsMessages reports whether a request asks for a conversation as messages. What was
// sent as text is none, whoever asks.
func wantsMessages(r *http.Request) bool {
	for _, accepted := range r.Header.Values("Accept") {
		for one := range strings.SplitSeq(accepted, ",") {
			if kind, _, err := mime.ParseMediaType(one); err == nil && kind == messagesType {
				return true
			}
		}
	}
	return false
}

func (s *Server) answerMessages(c echo.Context, text io.Reader) error {
	c.Response().Header().Set("Content-Type", messagesType)
	c.Response().WriteHeader(http.StatusOK)
	if c.Request().Method == http.MethodHead {
		return nil
	}
	return s.opt.Transcripts.WriteMessages(s.paced(c), text)
}

// mayRead reports whether a record is its caller's to read: its agent is, and every
// other that its session belongs to, since the judge has read what those said; and so
// of the session whose conversation was read in the place of its own, which may be
// nobody's any more, and is then for nobody who is limited.
func (s *Server) mayRead(c echo.Context, rec gate.Record) (bool, error) {
	who := callerOf(c)
	if !who.Limited() || !who.Owns(rec.Agent) {
		return who.Owns(rec.Agent), nil
	}
	elsewhere := rec.ReadElsewhere()
	for _, session := range []string{rec.Session, elsewhere} {
		if session == "" {
			continue
		}
		agents, err := s.opt.Store.SessionAgents(c.Request().Context(), session)
		if err != nil || !who.OwnsAll(agents) || session == elsewhere && len(agents) == 0 {
			return false, err
		}
	}
	return true, nil
}

var (
	booleans         = []string{"true", "false"}
	decisions        = []gate.Outcome{gate.Allow, gate.Block, gate.Ask}
	evaluationsQuery = append(anyOf("agent", "session", "hook", "aside", "since", "until", "limit", "cursor"),
		oneOf("event", gate.EventNames...), oneOf("decision", decisions...), oneOf("dry_run", booleans...))
)

// readFilter reads a query that was checked.
func readFilter(values url.Values) (gate.RecordFilter, error) {
	f := gate.RecordFilter{Agent: values.Get("agent"), Session: values.Get("session"), Hook: values.Get("hook"), Aside: values.Get("aside"), Cursor: values.Get("cursor"),
		Event: gate.EventName(values.Get("event")), Decision: gate.Outcome(values.Get("decision"))}
	if v := values.Get("dry_run"); v != "" {
		f.DryRun = new(v == "true")
	}
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
