package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// Bounds of an override's body and reason, in bytes: the reason goes into each
// record of what it lets pass.
const (
	maxOverrideBody   = 64 << 10
	maxOverrideReason = 2000
)

// putOverride lets a session stop for a while.
func (s *Server) putOverride(c echo.Context) error {
	session, err := segment(c, "session")
	if err != nil {
		return err
	}
	var o gate.Override
	err = s.withBody(c, maxOverrideBody, func(body []byte) error {
		o, err = readOverride(body, s.opt.Gate.Now())
		return err
	})
	if err != nil {
		return err
	}
	who := callerOf(c)
	o.Session, o.By, o.Agents = session, who.Name, who.Agents
	if err := s.opt.Store.SetOverride(c.Request().Context(), o, actorOf(c)); err != nil {
		return err
	}
	return s.answer(c, http.StatusOK, o)
}

// readOverride is strict: a misspelt field would let an agent stop for another
// time than was meant.
func readOverride(body []byte, now time.Time) (gate.Override, error) {
	var asked struct {
		Reason  string     `json:"reason"`
		Minutes *int       `json:"minutes"`
		Until   *time.Time `json:"until"`
	}
	if !json.Valid(body) {
		return gate.Override{}, gate.Errorf(gate.CodeInvalidJSON, "body is not a JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&asked); err != nil {
		return gate.Override{}, gate.Errorf(gate.CodeValidation, "override cannot be read: %w", err)
	}
	now = now.UTC().Truncate(time.Millisecond)
	o := gate.Override{Reason: strings.TrimSpace(asked.Reason), Since: now}
	most := int(gate.MaxOverride / time.Minute)
	switch {
	case o.Reason == "" || len(o.Reason) > maxOverrideReason:
		return o, gate.Errorf(gate.CodeValidation, "reason has %d bytes, want a reason of at most %d", len(o.Reason), maxOverrideReason)
	case (asked.Minutes == nil) == (asked.Until == nil):
		return o, gate.Errorf(gate.CodeValidation, "override needs either minutes or until")
	case asked.Minutes != nil && (*asked.Minutes < 1 || *asked.Minutes > most):
		return o, gate.Errorf(gate.CodeValidation, "minutes is %d, want 1 to %d", *asked.Minutes, most)
	case asked.Minutes != nil:
		o.Until = now.Add(time.Duration(*asked.Minutes) * time.Minute)
	default:
		o.Until = asked.Until.UTC().Truncate(time.Millisecond)
	}
	if !o.Until.After(now) || o.Until.After(now.Add(gate.MaxOverride)) {
		return o, gate.Errorf(gate.CodeValidation, "until is %s, want a time within the next %s", o.Until.Format(time.RFC3339), gate.MaxOverride)
	}
	return o, nil
}

// getOverride shows the session's override while it is in force.
func (s *Server) getOverride(c echo.Context) error {
	session, err := segment(c, "session")
	if err != nil {
		return err
	}
	o, err := s.overrideOf(c.Request().Context(), session)
	if err != nil {
		return err
	}
	return s.answer(c, http.StatusOK, o)
}

// overrideOf is the session's override that is in force. CodeNotFound.
func (s *Server) overrideOf(ctx context.Context, session string) (*gate.Override, error) {
	o, err := s.opt.Store.Override(ctx, session)
	if err == nil && !o.In(s.opt.Gate.Now()) {
		err = gate.NoOverride(session)
	}
	if err != nil {
		return nil, err
	}
	return &o, nil
}

func (s *Server) deleteOverride(c echo.Context) error {
	session, err := segment(c, "session")
	if err != nil {
		return err
	}
	if err := s.opt.Store.RemoveOverride(c.Request().Context(), session, actorOf(c)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
