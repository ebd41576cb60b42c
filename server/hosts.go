package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
	"stopgate/internal/jsonscan"
)

// HostProtocol is how one kind of agent host speaks.
type HostProtocol interface {
	// Decode reads a host's payload. An event without a Name is one that no
	// hook is about. The event that comes with an error holds what could be
	// read before the fault.
	Decode(payload []byte, q HostQuery) (gate.Event, error)
	// Encode is the body of a 200 in the host's own form. It never fails.
	Encode(ev gate.Event, d gate.Decision) (body []byte, contentType string)
}

// HostQuery is what a POST /v1/hooks/{protocol} says beside its body: all but
// UserAgent in its URL.
type HostQuery struct {
	Agent string // empty: [gate.DefaultAgent]
	Event string // the host's name of the event, where its payloads name none
	// Session, Tool and Cwd, for hosts whose payload is a tool's arguments alone.
	Session, Tool, Cwd string
	// Project is the directory of the agent's project, which no payload says.
	Project string
	// Transcript is the session under which the host's conversation was
	// uploaded, in the place of the payload's path; Stale: without its newest
	// part.
	Transcript string
	Stale      bool
	Unattended bool // nobody can be asked
	UserAgent  string
}

// hostDeadline is shorter than what hosts give a hook (DESIGN §5).
const hostDeadline = 25 * time.Second

// hook is POST /v1/hooks/{protocol}: a host's own payload in, its own answer
// out, by the same path as an evaluation. Most hosts take any status but 200 as
// "allow", so whatever goes wrong with the gate is answered by on_gate_error in
// the host's form; only a request that is wrong itself gets a 4xx. It is recorded
// if its caller may use the agent and the session that it names: a record makes
// the session its agent's.
func (s *Server) hook(c echo.Context) error {
	name, err := segment(c, "protocol")
	if err != nil {
		return err
	}
	protocol, known := s.opt.Protocol(name)
	if !known {
		return s.unknownProtocol(name)
	}
	q, deadline, wrong := hostQuery(c.Request())
	var ev gate.Event
	asked, confined := false, false // by confine
	begun := false                  // ev is what the beginning of its body says
	who := callerOf(c)
	err = s.contain(func(c echo.Context) error {
		return s.admit(c, func(body []byte) error {
			var err error
			if ev, err = protocol.Decode(body, q); err != nil {
				return err
			}
			if ev.Name == "" {
				if err := unknownEvent(protocol, body, q); err != nil {
					return err
				}
				return s.decideForHost(c, protocol, ev, deadline, nil) // no hook is about it, and nothing is stored
			}
			asked = true
			if err := s.confineHost(c.Request().Context(), who, &ev); err != nil {
				return err
			}
			confined = true
			return s.decideForHost(c, protocol, ev, deadline, wrong)
		}, func(start []byte) {
			begun = true
			ev, _ = protocol.Decode(jsonscan.Beginning(start), q) // what that lacks is not known
		})
	}, c)
	failure := hostsFailure(err)
	if failure == nil || c.Response().Committed {
		return err
	}
	if ev.Name == "" && !begun { // not read
		ev, _ = protocol.Decode([]byte("{}"), q)
		asked, confined = false, false
	}
	mayKeep := func(ctx context.Context) bool {
		if !asked {
			confined = s.contain(func(echo.Context) error { return s.confineHost(ctx, who, &ev) }, c) == nil
		}
		return confined
	}
	d, _ := s.traced(c, &ev, func(ctx context.Context) (gate.Decision, error) { return s.refuse(ctx, &ev, failure, mayKeep), nil })
	err = s.answerHost(c, protocol, ev, d)
	s.drain(c, c.Request().Body)
	return err
}

const (
	// refusalTime is how long what is refused for want of room may wait for its
	// record: the store may be what is slow.
	refusalTime = 500 * time.Millisecond
	// refusalsAtOnce wait for theirs, so that in a flood the store has room for what
	// is decided.
	refusalsAtOnce = 64
)

// refuse answers an event that the gate could not take on, by on_gate_error. It is
// recorded if mayKeep says so, which may complete the event, and where there was no
// room for it only if that holds nobody up.
func (s *Server) refuse(ctx context.Context, ev *gate.Event, failure *gate.Failure, mayKeep func(context.Context) bool) gate.Decision {
	if failure.Code == gate.Overloaded {
		defer s.refusing.Add(-1)
		if s.refusing.Add(1) > refusalsAtOnce {
			return s.failUnrecorded(*ev, failure)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, refusalTime)
		defer cancel()
	}
	if !mayKeep(ctx) {
		return s.failUnrecorded(*ev, failure)
	}
	return s.opt.Gate.Fail(ctx, *ev, failure)
}

// decideForHost answers an event as the hooks do; wrong is what was wrong with its URL.
func (s *Server) decideForHost(c echo.Context, protocol HostProtocol, ev gate.Event, deadline time.Duration, wrong *gate.Failure) error {
	d, err := s.traced(c, &ev, func(ctx context.Context) (gate.Decision, error) {
		ctx, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		return s.opt.Gate.DecideForHost(ctx, ev, gate.Options{Caller: c.Request().Context(), Failure: wrong})
	})
	if err != nil {
		panic(http.ErrAbortHandler) // nobody is there to be answered
	}
	return s.answerHost(c, protocol, ev, d)
}

func (s *Server) answerHost(c echo.Context, protocol HostProtocol, ev gate.Event, d gate.Decision) error {
	s.logDecision(c.Request().Context(), requestIDOf(c), &ev, &d)
	body, contentType := protocol.Encode(ev, told(callerOf(c), d))
	return s.send(c, http.StatusOK, contentType, body)
}

// hostOfNobody answers a host of which could not be found out who it is, by
// on_gate_error, and keeps nothing of it.
func (s *Server) hostOfNobody(c echo.Context, failure *gate.Failure) error {
	name, err := segment(c, "protocol")
	if err != nil {
		return err
	}
	protocol, known := s.opt.Protocol(name)
	if !known {
		return s.unknownProtocol(name)
	}
	q, _, _ := hostQuery(c.Request())
	ev, _ := protocol.Decode([]byte("{}"), q)
	if err := s.answerHost(c, protocol, ev, s.failUnrecorded(ev, failure)); err != nil {
		return err
	}
	s.drain(c, c.Request().Body)
	return nil
}

// failUnrecorded answers an event by on_gate_error, keeps nothing of it, and
// counts it as [Server.Observe] would have.
func (s *Server) failUnrecorded(ev gate.Event, failure *gate.Failure) gate.Decision {
	s.metrics.gateErrors.WithLabelValues(string(failure.Code)).Inc()
	return s.opt.Gate.FailUnrecorded(ev, failure)
}

func (s *Server) unknownProtocol(name string) error {
	return gate.Errorf(gate.CodeNotFound, "protocol %q is unknown: want one of %s", name, strings.Join(s.opt.ProtocolNames, ", "))
}

// hostsFailure is what of an error is the gate's to answer: a size or a load that
// it does not take, a lock-out, which strangers at the host's address may have
// brought about, or a fault of its own. nil: it is the request's, by DESIGN §5's list
// of what a host may be told by a status.
func hostsFailure(err error) *gate.Failure {
	if err == nil {
		return nil
	}
	if errors.Is(err, errPanicked) {
		return &gate.Failure{Code: gate.Internal, Message: "the gate panicked: its log says where"}
	}
	if failure, ok := errors.AsType[*gate.Failure](err); ok {
		return failure
	}
	switch gate.CodeOf(err) {
	case gate.CodeInvalidJSON, gate.CodeValidation, gate.CodeUnsupportedMediaType, gate.CodeUnauthenticated, gate.CodeForbidden:
		return nil
	case gate.CodeBodyTooLarge:
		return &gate.Failure{Code: gate.BodyTooLarge, Message: err.Error()}
	case gate.CodeOverloaded, gate.CodeRateLimited:
		return &gate.Failure{Code: gate.Overloaded, Message: err.Error()}
	}
	return &gate.Failure{Code: gate.Internal, Message: err.Error()}
}

var hostsQuery = append(anyOf("agent", "event", "session", "tool", "cwd", "project", "transcript", "deadline"),
	oneOf("stale", booleans...), oneOf("unattended", booleans...))

// hostQuery reads what the URL says, as much of it as is right. What is wrong with
// it is the gate's to answer, for the host would go on. An agent that is named once
// is the agent still; else nobody knows whose event it is, and it is the default
// agent's, whose hooks are those of the agent level, which are every agent's.
func hostQuery(r *http.Request) (q HostQuery, deadline time.Duration, wrong *gate.Failure) {
	v := r.URL.Query()
	q = HostQuery{Agent: v.Get("agent"), Event: v.Get("event"), Session: v.Get("session"), Tool: v.Get("tool"), Cwd: v.Get("cwd"), Project: v.Get("project"),
		Transcript: v.Get("transcript"), Stale: v.Get("stale") == "true", Unattended: v.Get("unattended") == "true", UserAgent: r.UserAgent()}
	err := hostsQuery.check(r.URL.RawQuery)
	if err == nil && q.Agent == "" && v.Has("agent") {
		err = errors.New("query parameter agent is empty: name the agent, or leave it out for the one called default")
	}
	deadline = hostDeadline
	if text := v.Get("deadline"); text != "" && err == nil {
		seconds, bad := strconv.ParseFloat(text, 64)
		if bad != nil || !(seconds > 0 && seconds <= 3600) {
			err = fmt.Errorf("query parameter deadline is %.40q, want seconds, more than 0 and at most 3600", text)
		} else {
			deadline = time.Duration(seconds * float64(time.Second))
		}
	}
	if len(v["agent"]) > 1 {
		q.Agent = ""
	}
	if err != nil {
		wrong = &gate.Failure{Code: gate.BadQuery, Message: err.Error()}
	}
	return q, deadline, wrong
}

// unknownEvent reports an event that the URL alone names, by no name of the
// protocol's: a person has misspelt it, while a payload's is the host's own, which may
// have others than the gate has hooks for (spec/claude-code.md 9).
func unknownEvent(protocol HostProtocol, body []byte, q HostQuery) error {
	event := q.Event
	q.Event = ""
	if _, err := protocol.Decode(body, q); event == "" || gate.CodeOf(err) != gate.CodeValidation {
		return nil
	}
	return &gate.Failure{Code: gate.BadQuery, Message: fmt.Sprintf("query parameter event is %.40q, which is no event that hooks are about here", event)}
}
