// Package httphooks asks hooks that are reached over HTTP: it posts what the
// hook is told as JSON and reads the answer by the law of the hook's dialect.
//
// Where a request goes is the business of whoever wrote the hook, and so is
// hostile: each passes the egress rules of its dialect (egress.go), by the name
// of its host and again by the addresses that the name stands for, at the moment
// of dialling. No redirect is followed, no cookie is kept, TLS is always
// verified, and everything that comes back is bounded.
//
// A hook that could not be asked, or that answered what is no answer, has given
// no verdict. Both dialects that have http hooks go on then, and the record says
// why: a status alone never blocks (spec/antigravity.md 11, spec/claude-code.md 4).
package httphooks

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"stopgate/gate"
	"stopgate/internal/hostname"
)

// defaultConnections is how many requests run at once where nobody says
// otherwise: so many that one server that does not answer does not hold up the
// hooks of others (fault G34), and a quarter of the descriptors that a process
// usually has.
const defaultConnections = 256

// Options are what a [Caller] is made of. The zero value reaches every external
// host by antigravity's rules, and none by claude-code's.
type Options struct {
	// Allow are the hosts that hooks of claude-code may reach: "hooks.example.com",
	// or "*.example.com" for every host below it, or "*"; each may end with a
	// ":port". A host that is named whole may have a private address, in every
	// dialect, and in claude-code a loopback one: patterns stand for external
	// hosts only.
	Allow []string
	// Proxy is asked for every host that is not this machine; nil: none is. It
	// is http:// or https://, and may have a user and a password. The addresses of
	// names that only the proxy can resolve are the proxy's to refuse.
	Proxy *url.URL
	// RootCAs are who may vouch for a server; nil: whom the system trusts.
	RootCAs *x509.CertPool
	// Connections is how many requests run at once, over all events; further ones
	// wait, inside their own timeout. 0: 256.
	Connections int
	// Getenv gives the variables that headers of claude-code's hooks may name,
	// empty when not set; nil: there are none. It must not know the gate's own
	// keys.
	Getenv func(name string) string
	// Resolve finds the addresses of a name; nil: as the system does.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address of digits that may be reached, or to the proxy;
	// nil: as the system does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Caller is the evaluator of http hooks. It is safe for concurrent use.
type Caller struct {
	opt     Options
	allow   []hostname.Pattern
	direct  map[gate.Dialect]*http.Client // a connection is reused under the rules it was made by
	proxied *http.Client
	slots   chan struct{}
}

// New checks the options. It connects to nothing.
func New(opt Options) (*Caller, error) {
	c := &Caller{opt: opt, direct: map[gate.Dialect]*http.Client{}}
	var errs []error
	for _, text := range opt.Allow {
		p, fault := hostname.ReadPattern(text)
		if fault != "" {
			errs = append(errs, fmt.Errorf("httphooks: allowed host %q %s", text, fault))
		}
		c.allow = append(c.allow, p)
	}
	if p := opt.Proxy; p != nil && (p.Scheme != "http" && p.Scheme != "https" || p.Host == "") {
		errs = append(errs, fmt.Errorf("httphooks: proxy %q is not http:// or https:// with a host", p.Redacted()))
	}
	if opt.Connections < 0 {
		errs = append(errs, errors.New("httphooks: connections are less than 0"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if c.opt.Resolve == nil {
		c.opt.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if c.opt.Dial == nil {
		c.opt.Dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	n := cmp.Or(opt.Connections, defaultConnections)
	c.slots = make(chan struct{}, n)
	for _, d := range []gate.Dialect{gate.Antigravity, gate.ClaudeCode} {
		c.direct[d] = client(c.transport(n, dialer{c, d}.dial))
	}
	if opt.Proxy != nil {
		t := c.transport(n, c.opt.Dial)
		t.Proxy = http.ProxyURL(opt.Proxy)
		c.proxied = client(t)
	}
	return c, nil
}

// Close lets go of idle connections.
func (c *Caller) Close() error {
	for _, d := range c.direct {
		d.CloseIdleConnections()
	}
	if c.proxied != nil {
		c.proxied.CloseIdleConnections()
	}
	return nil
}

// transport keeps at most n connections. It takes no proxy from the environment,
// and speaks HTTP/1.1 alone, which every server does: there a time-out closes its
// connection, where one of HTTP/2 that has died unnoticed lets every hook of its
// host time out, and so the agent pass.
func (c *Caller) transport(n int, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: c.opt.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConns:           n,
		MaxIdleConnsPerHost:    n,
		MaxConnsPerHost:        n,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10, // far more than servers send; all 1xx answers together
	}
}

func client(t *http.Transport) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Evaluate asks one hook ([gate.Evaluator]).
func (c *Caller) Evaluate(ctx context.Context, in gate.Input) gate.Verdict {
	p, failure := c.plan(in)
	var r reply
	if failure == nil {
		r, failure = c.send(ctx, p, in.Context)
	}
	if failure != nil {
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: failure}
	}
	return p.judge(in.Hook.Event, r)
}

// Refusal says why a hook is not asked, whatever the event, as far as its URL and
// headers tell; nil: they are fine. An agent's network is not looked at.
func (c *Caller) Refusal(h *gate.Hook) *gate.Failure {
	_, failure := c.plan(gate.Input{Hook: h})
	return failure
}

func failf(code gate.FailureCode, format string, args ...any) *gate.Failure {
	return &gate.Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}
