// Package exchange holds what every provider of models needs beside its SDK:
// one HTTP request whose status, wait and body are known whatever the SDK makes
// of them, whose body is bounded, whose redirects are not followed, and whose
// errors are of one form and hold no secret.
//
// A provider gives its SDK the client of [Client] and makes each request
// inside [Do].
package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stopgate/prompthooks"
)

// MaxBodyBytes bounds an answer. The longest that a model writes, 64k tokens,
// is under 1 MiB; SDKs need some twenty times the body's size to read a hostile
// one.
const MaxBodyBytes = 4 << 20

// Peer is who is asked.
type Peer struct {
	Name   string // begins every error
	Secret string // shown in no error and no answer; may be empty
}

// CheckBase says what is wrong with the URL at which the peer's API is: paths are
// added to its end, so that it has no query.
func (p Peer) CheckBase(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" {
		return errors.New(p.Name + ": base URL is not an http or https URL without a query")
	}
	return nil
}

// Exchange is what came of one request.
type Exchange struct {
	Status     int           // as the server meant it; 0: it did not answer
	RetryAfter time.Duration // as the server asks; 0: it does not say
	Body       []byte        // whole, with secrets blotted out; nil: none came

	sent   bool
	broken bool  // the body ended before its end
	fault  error // why the body is no answer, whatever the SDK makes of it
	said   complaint
	secret []string // what the request carried to be let in
}

// Do makes one request by calling an SDK whose client is one of [Client]'s.
// Its error is ctx's own or a [*prompthooks.Error]; a panic of the SDK, which
// some bodies cause (fault gx-078), is one too. uses is what the request asks
// of the model, so that a refusal of it is known as such.
func Do[T any](ctx context.Context, peer Peer, uses prompthooks.Features, call func(context.Context) (T, error)) (T, *Exchange, error) {
	ex := &Exchange{secret: []string{peer.Secret}}
	answer, err := recovered(context.WithValue(ctx, key{}, ex), call)
	if err == nil && ex.fault == nil {
		return answer, ex, nil
	}
	var none T
	if ctx.Err() != nil {
		return none, ex, ctx.Err()
	}
	return none, ex, ex.failure(peer.Name, uses, err)
}

func recovered[T any](ctx context.Context, call func(context.Context) (T, error)) (answer T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the body has not the shape of an answer: %v", r)
		}
	}()
	return call(ctx)
}

type key struct{}

// Client is c (nil: one that keeps enough idle connections for many judges),
// made to fill the exchange of its request's context, to bound bodies and to
// follow no redirect.
func Client(c *http.Client) *http.Client {
	if c == nil {
		c = defaultClient()
	}
	w := *c
	next := w.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	w.Transport = watch{next}
	w.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &w
}

// defaultClient is one for many judges at once: 5,000 open requests share it.
// A hook's own timeout bounds each of them.
func defaultClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
	}}
}

type watch struct{ next http.RoundTripper }

func (w watch) RoundTrip(req *http.Request) (*http.Response, error) {
	ex, ok := req.Context().Value(key{}).(*Exchange)
	if !ok {
		ex = &Exchange{}
	}
	ex.sent = true
	ex.secret = append(ex.secret, credentials(req.Header)...)
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBodyBytes+1))
	resp.Body.Close()
	ex.Status, ex.RetryAfter = resp.StatusCode, retryAfter(resp.Header, time.Now())
	switch {
	case err != nil:
		ex.broken, ex.fault = true, fmt.Errorf("the body: %w", err)
		return nil, ex.fault
	case len(body) > MaxBodyBytes:
		ex.fault = fmt.Errorf("the body is larger than %d bytes", MaxBodyBytes)
		return nil, ex.fault
	}
	// A proxy that echoes what it was sent must not have the key reach a
	// record, or as a reason the gated agent.
	ex.Body = ex.blotted(body)
	if ex.read(); ex.fault == nil && ex.Status < 300 && len(bytes.TrimSpace(ex.Body)) > 0 {
		// SDKs go by the header, and proxies get it wrong.
		resp.Header = resp.Header.Clone()
		resp.Header.Set("Content-Type", "application/json")
	}
	resp.Body = io.NopCloser(bytes.NewReader(ex.Body))
	resp.ContentLength = int64(len(ex.Body))
	return resp, nil
}

// read takes from a body what SDKs do not tell.
func (ex *Exchange) read() {
	body := bytes.TrimSpace(ex.Body)
	object := len(body) > 0 && body[0] == '{' && json.Valid(body)
	if object {
		ex.said = complaintIn(body)
	}
	switch {
	case ex.Status >= 300 || len(body) == 0:
	case !object:
		ex.fault = errors.New("it is no JSON object: " + Clip(string(body), 100))
	case ex.said.made:
		// Some gateways put an error into a success; an SDK would see an empty
		// answer.
		ex.fault = errors.New(ex.said.message)
		if ex.said.status != 0 {
			ex.Status = ex.said.status
		}
	}
}

// credentials are what let a request in.
func credentials(h http.Header) []string {
	return []string{h.Get("X-Goog-Api-Key"), h.Get("Api-Key"), h.Get("X-Api-Key"), strings.TrimPrefix(h.Get("Authorization"), "Bearer ")}
}

func (ex *Exchange) blotted(text []byte) []byte { return Blot(text, ex.secret) }
