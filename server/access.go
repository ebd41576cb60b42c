package server

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// Login finds out who sends a request.
type Login interface {
	// Caller is who sends a request with a bearer token (empty: without one), on
	// a connection with a verified client certificate (nil: without one), from an
	// address. Errors are a [*gate.Error]: CodeUnauthenticated, it is nobody we
	// know; CodeRateLimited, too many who were nobody came from there; any other,
	// it could not be found out.
	Caller(ctx context.Context, bearer string, certificate *x509.Certificate, from netip.Addr) (gate.Caller, error)
}

// access is who may use a route. The zero value is nobody, where there is a
// login.
type access struct {
	open  bool       // everybody, without a login
	scope gate.Scope // that the caller must have
	// limit is asked of a caller that is limited to some agents. nil refuses it:
	// the route is about all of them.
	limit limit
	host  bool // a host takes an error of ours for "allow", so there is none
}

// limit reports what a caller, limited to some agents, may not do with a
// request.
type limit func(s *Server, c echo.Context, who gate.Caller) error

// filtered says that the handler itself keeps to the caller's agents.
func filtered(*Server, echo.Context, gate.Caller) error { return nil }

// shared says that nothing behind the route is any agent's own.
func shared(*Server, echo.Context, gate.Caller) error { return nil }

// ownAgent wants the agent in the path to be one of the caller's. To see one
// that is not is to see nothing.
func ownAgent(_ *Server, c echo.Context, who gate.Caller) error {
	name, err := segment(c, "name")
	switch {
	case err != nil:
		return err
	case who.Owns(name):
		return nil
	case reads(c.Request()):
		return gate.Errorf(gate.CodeNotFound, "%s %q is not known", gate.AgentSpec, name)
	}
	return notYours(name)
}

// ownSession wants the session in the path to belong to the caller's agents
// alone. Another one and an unknown one look the same.
func ownSession(param string) limit {
	return func(s *Server, c echo.Context, who gate.Caller) error {
		session, err := segment(c, param)
		if err != nil {
			return err
		}
		agents, err := s.opt.Store.SessionAgents(c.Request().Context(), session)
		if err != nil {
			return err
		}
		if len(agents) == 0 || !who.OwnsAll(agents) {
			return unknownSession(session)
		}
		return nil
	}
}

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// notYours says nothing of whether there is such an agent.
func notYours(agent string) error {
	return gate.Errorf(gate.CodeForbidden, "agent %q is not one of those that this credential is limited to", agent)
}

func unknownSession(session string) error {
	return gate.Errorf(gate.CodeNotFound, "session %q is not known", session)
}

const callerKey = "caller"

// callerOf is who sent the request; behind a guard it is always set.
func callerOf(c echo.Context) gate.Caller {
	who, _ := c.Get(callerKey).(gate.Caller)
	return who
}

// actorOf is the caller as one who changes something.
func actorOf(c echo.Context) gate.Actor {
	who := callerOf(c)
	return gate.Actor{Name: who.Name, Credential: who.Credential, Address: addressOf(c.Request()).String()}
}

// addressOf is the other end of the connection. What a header says of whom it
// stands for is anybody's word.
func addressOf(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // no TCP connection behind it
	}
	return ap.Addr().Unmap().WithZone("")
}

// guard lets those pass who may use the route, and leaves who they are in the
// context.
func (s *Server) guard(c echo.Context, a access) error {
	if a.open {
		return nil
	}
	who, err := s.identify(c.Request())
	if err != nil {
		return err
	}
	c.Set(callerKey, who)
	switch {
	case a.scope == "" || !who.May(a.scope):
		return gate.Errorf(gate.CodeForbidden, "scope %q is needed for this, and this credential does not have it", a.scope)
	case !who.Limited():
		return nil
	case a.limit == nil:
		return gate.Errorf(gate.CodeForbidden, "this is about every agent, and this credential is limited to some")
	}
	return a.limit(s, c, who)
}

// notFromHook refuses what a gate's own http hook asks, whoever asked that gate. An
// answer by on_gate_error would be the hook's verdict there, so this is an error, of a
// host's route too; and a hook's URL is anybody's to write, and no way to this API.
func (s *Server) notFromHook(c echo.Context) error {
	if c.Request().Header.Get(gate.FromHook) == "" {
		return nil
	}
	c.Response().Header().Set(gate.FromHook, "refused")
	s.log.LogAttrs(c.Request().Context(), slog.LevelWarn, "an http hook leads to a gate, and was refused",
		slog.String("request_id", requestIDOf(c)), slog.String("route", c.Path()))
	return gate.Errorf(gate.CodeForbidden, "a gate is not asked from within a gate's hook: it would ask hooks for a hook, without end")
}

// identify finds out who sent a request.
func (s *Server) identify(r *http.Request) (gate.Caller, error) {
	if s.opt.Login == nil {
		return gate.Anonymous(), nil
	}
	if err := noKeyInURL(r); err != nil {
		return gate.Caller{}, err
	}
	token, err := bearer(r)
	if err != nil {
		return gate.Caller{}, err
	}
	var certificate *x509.Certificate
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		certificate = r.TLS.PeerCertificates[0]
	}
	if token == "" && certificate == nil {
		return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "request has no credential: send the header Authorization: Bearer KEY")
	}
	return s.opt.Login.Caller(r.Context(), token, certificate, addressOf(r))
}

// maxBearer bounds a token, in bytes.
const maxBearer = 8 << 10

// bearer is the token in the Authorization header; empty where there is none.
// Two of them are refused: what stands in front of us may have read the other
// one.
func bearer(r *http.Request) (string, error) {
	values := r.Header["Authorization"]
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", gate.Errorf(gate.CodeUnauthenticated, "header Authorization is given %d times", len(values))
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ") // RFC 9110, 11.4: one or more
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxBearer || strings.IndexFunc(token, notInToken) >= 0 {
		return "", gate.Errorf(gate.CodeUnauthenticated, "header Authorization is not Bearer and one key or token")
	}
	return token, nil
}

// notInToken are the bytes that no token has (RFC 6750, 2.1).
func notInToken(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~+/=", r))
}

// noKeyInURL refuses a key in the query, also beside a good header: URLs end up
// in logs and histories, so that it is to be replaced.
func noKeyInURL(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	for name := range r.URL.Query() {
		if slices.Contains([]string{"access_token", "api_key", "api-key", "apikey", "authorization", "key", "token"}, strings.ToLower(name)) {
			return gate.Errorf(gate.CodeValidation, "query has a %q: a key in a URL is written down by many; revoke it, and send another in the header Authorization", strings.ToLower(name))
		}
	}
	return nil
}

// challenge is what goes with a 401 (RFC 6750, 3).
func challenge(r *http.Request) string {
	if len(r.Header["Authorization"]) == 0 {
		return `Bearer realm="stopgate"`
	}
	return `Bearer realm="stopgate", error="invalid_token"`
}
