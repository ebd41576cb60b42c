package httphooks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"stopgate/gate"
)

// maxAnswer is how much of an answer is read, in bytes, after it was
// decompressed.
const maxAnswer = 1 << 20

// reply is what came back.
type reply struct {
	status   int
	body     []byte // at most maxAnswer bytes
	cut      bool   // there was more
	encoding string // that nobody asked for; empty: none
	gate     bool   // a gate answered, and is not asked by a hook
}

// send makes the request. The failure says why there is no reply.
func (c *Caller) send(ctx context.Context, p call, body []byte) (reply, *gate.Failure) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return reply{}, failf(gate.Timeout, "the time was up before a connection was free: http_hooks.connections of the server file")
	}
	client := c.direct[p.dialect]
	if c.proxied != nil && !p.here() {
		client = c.proxied
		if failure := c.foresee(ctx, p.dialect, p.target); failure != nil {
			return reply{}, failure
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url.String(), bytes.NewReader(body))
	if err != nil {
		return reply{}, failf(gate.EgressDenied, "the hook's URL cannot be sent")
	}
	req.Header = p.header
	// A server that has closed the connection meanwhile has not been asked: net/http
	// may ask once more, on a new one. The header itself is not sent.
	req.Header["X-Idempotency-Key"] = nil
	resp, err := client.Do(req)
	if err != nil {
		return reply{}, p.failure(ctx, "could not be reached", err)
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, encoding: resp.Header.Get("Content-Encoding"), gate: resp.Header.Get(gate.FromHook) != ""}
	if strings.EqualFold(r.encoding, "identity") {
		r.encoding = ""
	}
	if r.status < 200 {
		return r, nil // protocols were switched, and what follows heeds no time-out
	}
	r.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if len(r.body) > maxAnswer {
		r.body, r.cut = r.body[:maxAnswer], true
	}
	if err != nil && r.success() { // of another answer the status is enough
		return reply{}, p.failure(ctx, "broke off its answer", err)
	}
	return r, nil
}

func (r reply) success() bool { return r.status >= 200 && r.status < 300 }

// failure is why there is no answer, for a person. Messages of net/http hold the
// URL, whose query may be a secret, and words of the server.
func (p call) failure(ctx context.Context, what string, err error) *gate.Failure {
	if denied, ok := errors.AsType[*gate.Failure](err); ok {
		return denied
	}
	if ctx.Err() != nil {
		return failf(gate.Timeout, "%s did not answer in time", p.host)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return failf(gate.HTTPUnreachable, "%s %s: %s", p.host, what, plain(p.clean(err.Error()), 300))
}

// plain is the head of a foreign text on one line.
func plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if short := gate.Cut(s, most); short != s {
		return short + "…"
	}
	return s
}
