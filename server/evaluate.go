package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// evaluate is POST /v1/evaluate: one event in, one decision out. A caller that
// goes away takes its judges with it, unless it has a key to ask again with;
// scripts run to their end, since what they did cannot be undone.
func (s *Server) evaluate(c echo.Context) error {
	return s.admit(c, func(body []byte) error {
		ev, err := s.opt.Decode(body)
		if err != nil {
			return err
		}
		key, err := idempotencyKey(c)
		if err != nil {
			return err
		}
		if err := s.confine(c.Request().Context(), callerOf(c), &ev); err != nil {
			if failure, ok := errors.AsType[*gate.Failure](err); ok {
				return s.conclude(c, &ev, s.failUnrecorded(ev, failure)) // nobody knows whose its session is
			}
			return err
		}
		if key.Key == "" {
			return s.decide(c, ev, gate.Options{Caller: c.Request().Context()})
		}
		return s.decideOnce(c, ev, key, body)
	}, nil)
}

// admit lets one more evaluation in, if there is room, and hands it its body
// (see withBody). refused may be nil (see intake).
func (s *Server) admit(c echo.Context, use func(body []byte) error, refused func(start []byte)) error {
	s.metrics.inFlight.Add(1)
	defer s.metrics.inFlight.Add(-1)
	return s.takeIn(c, intake{places: 1, limit: s.opt.Limits.BodyBytes, use: use, refused: refused})
}

// decide has the event decided and answers it.
func (s *Server) decide(c echo.Context, ev gate.Event, opt gate.Options) error {
	d, err := s.traced(c, &ev, func(ctx context.Context) (gate.Decision, error) { return s.opt.Gate.Decide(ctx, ev, opt) })
	if errors.Is(err, gate.ErrAbandoned) {
		panic(http.ErrAbortHandler) // nobody is there to be answered
	}
	if err != nil {
		return err
	}
	return s.conclude(c, &ev, d)
}

// traced has the event decided within a span of its own, where there are traces.
func (s *Server) traced(c echo.Context, ev *gate.Event, decide func(context.Context) (gate.Decision, error)) (d gate.Decision, err error) {
	if s.opt.Trace == nil || ev.Name == "" { // no hook is about it
		return decide(s.running)
	}
	ctx, end := s.opt.Trace(s.running, c.Request().Header, ev)
	defer func() { end(&d, err) }()
	return decide(ctx)
}

func (s *Server) conclude(c echo.Context, ev *gate.Event, d gate.Decision) error {
	s.logDecision(c.Request().Context(), requestIDOf(c), ev, &d)
	d = told(callerOf(c), d).WithoutEvidence()
	return s.answer(c, http.StatusOK, &d)
}

// told is a decision as that caller is told it. Why the gate failed names files
// and servers, and is for those who may read, as in the record and the log.
func told(who gate.Caller, d gate.Decision) gate.Decision {
	if d.GateError == nil || who.May(gate.ReadScope) {
		return d
	}
	switch code := d.GateError.Code; code {
	case gate.StoreUnavailable, gate.TranscriptUnreadable, gate.Internal:
		d.GateError = &gate.Failure{Code: code, Message: "the gate itself failed: its log says why"}
	}
	return d
}

// logDecision writes what an operator would look for: quiet for plain allows,
// a warning where something let the agent pass that should not have.
func (s *Server) logDecision(ctx context.Context, requestID string, ev *gate.Event, d *gate.Decision) {
	level := slog.LevelDebug
	switch {
	case d.Degraded:
		level = slog.LevelWarn
	case d.Outcome != gate.Allow || d.Forced:
		level = slog.LevelInfo
	}
	if !s.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("evaluation_id", d.EvaluationID), slog.String("request_id", requestID),
		slog.String("agent", ev.Agent), slog.String("session", ev.Session), slog.String("event", string(ev.Name)),
		slog.String("decision", string(d.Outcome)), slog.Bool("forced", d.Forced), slog.Bool("degraded", d.Degraded), slog.Bool("dry_run", ev.Dry)}
	if d.GateError != nil {
		attrs = append(attrs, slog.String("gate_error", d.GateError.Error()))
	}
	for i := range d.Hooks {
		if f := d.Hooks[i].Failure; f != nil {
			attrs = append(attrs, slog.String("failed."+d.Hooks[i].Name, string(f.Code)))
		}
	}
	s.log.LogAttrs(ctx, level, "decision", attrs...)
}
