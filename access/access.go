// Package access finds out who sends a request: by an API key, by the token of an
// identity provider (package oidc), or by a client certificate. [Login] is asked
// for every request; [Mint] makes a key; [TLS] reads certificates anew when
// their files change.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"net/netip"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"stopgate/gate"
)

// Options say who may log in.
type Options struct {
	Keys    gate.Keys // nil: no API keys
	Tokens  Tokens    // nil: no tokens
	Clients []Client  // by certificate; the first that fits counts
	Now     func() time.Time
}

// Tokens knows the bearer tokens of an identity provider. Errors are a
// [*gate.Error]: CodeUnauthenticated, or CodeOverloaded where the provider's
// keys cannot be had just now.
type Tokens interface {
	Verify(ctx context.Context, token string) (gate.Caller, error)
}

// Login is who may come in. It is safe for concurrent use.
type Login struct {
	opt      Options
	keys     *keyring
	failures *failures
	recent   *lru.Cache[[32]byte, time.Time] // credentials that were good, by their sums
}

const (
	// rememberedCredentials bounds what is remembered of credentials; one takes
	// some 100 bytes.
	rememberedCredentials = 10_000
	// recentlyGood is how long a credential that was good is looked at whatever
	// else comes from its address.
	recentlyGood = 10 * time.Minute
)

// New makes a login.
func New(opt Options) (*Login, error) {
	if opt.Now == nil {
		return nil, errors.New("login needs a clock")
	}
	l := &Login{opt: opt}
	var err error
	if l.failures, err = newFailures(opt.Now); err != nil {
		return nil, err
	}
	if opt.Keys != nil {
		if l.keys, err = newKeyring(opt.Keys, opt.Now); err != nil {
			return nil, err
		}
	}
	l.recent, err = lru.New[[32]byte, time.Time](rememberedCredentials)
	return l, err
}

// Caller is who sends a request with that token, or on a connection with that
// client certificate if there is no token. Errors are a [*gate.Error]:
// CodeUnauthenticated; CodeRateLimited after many of those from one address;
// CodeOverloaded where it cannot be found out just now.
//
// An address that is locked out is told so for every further wrong credential,
// and few tokens from there are looked at. A good key comes in still, and a token
// that was good here within [recentlyGood] without being counted: behind a proxy
// all callers have one address, and whoever guesses there locks out nobody else.
// Keys are not counted at all, since to look one up is a sum and a row by its ID:
// less than it would cost to keep those out who have not come lately.
func (l *Login) Caller(ctx context.Context, bearer string, certificate *x509.Certificate, from netip.Addr) (gate.Caller, error) {
	if bearer == "" {
		return callerOf(certificate, l.opt.Clients, l.opt.Now())
	}
	sum := sha256.Sum256([]byte(bearer))
	var wait time.Duration
	if !l.recentlyGood(sum) {
		wait = l.failures.locked(from)
	}
	if wait > 0 && !isKey(bearer) && !l.failures.check(from) {
		return gate.Caller{}, lockedOut(wait)
	}
	who, err := l.bearer(ctx, bearer)
	switch {
	case err == nil:
		l.recent.Add(sum, l.opt.Now())
	case gate.CodeOf(err) == gate.CodeUnauthenticated && wait > 0:
		return who, lockedOut(wait)
	case gate.CodeOf(err) == gate.CodeUnauthenticated:
		l.failures.add(from)
	}
	return who, err
}

func lockedOut(wait time.Duration) error {
	return &gate.Error{Code: gate.CodeRateLimited, Retry: wait,
		Message: "too many wrong credentials came from this address: wait before you try another"}
}

func (l *Login) recentlyGood(sum [32]byte) bool {
	at, ok := l.recent.Get(sum)
	return ok && l.opt.Now().Sub(at) < recentlyGood
}

func (l *Login) bearer(ctx context.Context, bearer string) (gate.Caller, error) {
	switch ours := isKey(bearer); {
	case ours && l.keys != nil:
		return l.keys.caller(ctx, bearer)
	case !ours && l.opt.Tokens != nil:
		return l.opt.Tokens.Verify(ctx, bearer)
	}
	return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "credential is of no kind that is accepted here")
}

// isKey reports whether a credential is a key, good or not, and no token.
func isKey(bearer string) bool { return strings.HasPrefix(bearer, keyPrefix) }
