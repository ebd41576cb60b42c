// Package oidc knows the bearer tokens of one OpenID Connect issuer: signed by
// one of the keys that it publishes, for our audience, in their time. What a
// token may do is said by the first [Rule] that its claims fit.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"

	"stopgate/gate"
)

// Options say whose tokens are believed, and what they may do. All but Name are
// required.
type Options struct {
	Issuer   string // as in the tokens' iss: https, or http on a loopback address
	Audience string // one of the tokens' aud
	Name     string // claim that names the caller; empty, or absent from a token: sub
	Rules    []Rule
	Now      func() time.Time
	// Transport reaches the issuer.
	Transport http.RoundTripper
}

// algorithms are those with a public key, so that none of them takes a published
// key for a secret that is shared.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// Issuer knows the tokens of one issuer. It is safe for concurrent use.
type Issuer struct {
	opt    Options
	fetch  *fetcher
	client context.Context // carries the HTTP client, as the library wants it

	discovering chan struct{} // holds a token while nobody asks
	mu          sync.Mutex
	keys        *keys // nil: not discovered
}

// New asks nobody yet: an issuer that cannot be reached does not keep a gate
// from starting.
func New(opt Options) (*Issuer, error) {
	switch {
	case opt.Now == nil || opt.Transport == nil:
		return nil, errors.New("oidc needs a clock and a transport")
	case opt.Audience == "":
		return nil, errors.New("oidc needs an audience: without one the tokens of every other service would be good here")
	}
	u, err := url.Parse(opt.Issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("oidc issuer %q is no URL of an issuer", opt.Issuer)
	}
	if err := secure(u); err != nil {
		return nil, fmt.Errorf("oidc issuer: %w", err)
	}
	f := newFetcher(opt.Transport, opt.Now)
	i := &Issuer{opt: opt, fetch: f, discovering: make(chan struct{}, 1)}
	i.client = oidc.ClientContext(context.Background(), f.client())
	i.discovering <- struct{}{}
	return i, nil
}

// secure reports a URL that anybody on the way could answer.
func secure(u *url.URL) error {
	if u.Scheme == "https" {
		return nil
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("%q is not https", u.Redacted())
}

// Verify is whose token it is. Errors are a [*gate.Error]: CodeUnauthenticated;
// CodeOverloaded where the issuer's keys cannot be had.
func (i *Issuer) Verify(ctx context.Context, token string) (gate.Caller, error) {
	set, err := i.current(ctx)
	if err != nil {
		return gate.Caller{}, unreachable(err)
	}
	check := checking{set: set}
	config := &oidc.Config{ClientID: i.opt.Audience, SupportedSigningAlgs: algorithms, Now: i.opt.Now}
	good, err := oidc.NewVerifier(i.opt.Issuer, &check, config).Verify(ctx, token)
	if check.unreachable != nil {
		return gate.Caller{}, unreachable(check.unreachable)
	}
	if err != nil {
		return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "token is not good: %s", reason(err))
	}
	var claims map[string]any
	if err := good.Claims(&claims); err != nil {
		return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "token is not good: its claims cannot be read")
	}
	return i.caller(good.Subject, claims)
}

// reason is what is wrong with a token, without what it says.
func reason(err error) string {
	if e, ok := errors.AsType[*oidc.TokenExpiredError](err); ok {
		return "it expired at " + e.Expiry.UTC().Format(time.RFC3339)
	}
	for _, known := range []struct{ sign, says string }{
		{"expected audience", "it is for another audience"},
		{"different provider", "it is another issuer's"},
		{"before the nbf", "it is not valid yet"},
		{"malformed jwt", "it is no JWT, or signed in a way that is not accepted"},
	} {
		if strings.Contains(err.Error(), known.sign) {
			return known.says
		}
	}
	return "its signature is by none of the issuer's keys"
}

// unreachable does not say that a token is bad.
func unreachable(cause error) error {
	return &gate.Error{Code: gate.CodeOverloaded, Retry: fetchEvery, Err: cause,
		Message: "tokens cannot be checked just now: the issuer's keys cannot be had"}
}

// maxSubject bounds what is taken from a token as a name, in bytes.
const maxSubject = 255

// caller is who a token is about, and what the rules let them do.
func (i *Issuer) caller(subject string, claims map[string]any) (gate.Caller, error) {
	if !nameable(subject) {
		return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "token is not good: its sub is not 1 to %d bytes of printable text", maxSubject)
	}
	who := gate.Caller{Name: subject, Credential: "oidc:" + i.opt.Issuer + " " + subject}
	if i.opt.Name != "" {
		if name, ok := claim(claims, i.opt.Name).(string); ok && nameable(name) {
			who.Name = name
		}
	}
	for _, r := range i.opt.Rules {
		if r.fits(claims) {
			who.Scopes, who.Agents = r.Scopes, r.agents(claims)
			break
		}
	}
	return who, nil
}

func nameable(s string) bool {
	return s != "" && len(s) <= maxSubject && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
