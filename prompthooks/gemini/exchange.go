package gemini

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxBodyBytes bounds an answer. The longest that a model writes, 64k tokens,
// is under 1 MiB; the SDK needs some twenty times the body's size to read a
// hostile one.
const maxBodyBytes = 4 << 20

// exchange is what the SDK does not tell of one request.
type exchange struct {
	status     int
	retryAfter time.Duration // the longer of Retry-After and RetryInfo
	// content is the first candidate's content as it came. The SDK's own form
	// of it loses what it does not know, and the empty text beside a thought
	// signature (fault gx-080).
	content json.RawMessage
	broken  bool  // the body ended before its end
	fault   error // why the body is no answer, whatever the SDK makes of it
}

type exchangeKey struct{}

func withExchange(ctx context.Context, ex *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, ex)
}

// watched is a client that fills the exchange of its request's context, bounds
// bodies and follows no redirect.
func watched(c *http.Client) *http.Client {
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

type watch struct{ next http.RoundTripper }

func (w watch) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	ex, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		ex = &exchange{}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBodyBytes+1))
	resp.Body.Close()
	ex.status = resp.StatusCode
	ex.retryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	switch {
	case err != nil:
		ex.broken, ex.fault = true, fmt.Errorf("the body: %w", err)
		return nil, ex.fault
	case len(body) > maxBodyBytes:
		ex.fault = fmt.Errorf("the body is larger than %d bytes", maxBodyBytes)
		return nil, ex.fault
	}
	ex.read(body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// read takes from a body what the SDK loses.
func (ex *exchange) read(body []byte) {
	var b struct {
		Candidates []struct {
			Content json.RawMessage `json:"content"`
		} `json:"candidates"`
		Error *struct {
			Code    int              `json:"code"`
			Message string           `json:"message"`
			Details []map[string]any `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &b) != nil {
		return // the SDK says what is wrong
	}
	if len(b.Candidates) > 0 && string(b.Candidates[0].Content) != "null" {
		ex.content = b.Candidates[0].Content
	}
	if b.Error == nil {
		return
	}
	for _, d := range b.Error.Details {
		if delay, ok := d["retryDelay"].(string); ok {
			if wait, err := time.ParseDuration(delay); err == nil {
				ex.retryAfter = max(ex.retryAfter, wait)
			}
		}
	}
	if ex.status < 300 {
		// Some gateways put an error into a success; the SDK would see an
		// empty answer.
		ex.fault = errors.New(cmp.Or(b.Error.Message, "an error without a message"))
		if b.Error.Code >= 400 && b.Error.Code <= 599 {
			ex.status = b.Error.Code
		}
	}
}

// retryAfter reads the header: seconds, or a date. What cannot be read, or is
// past, is 0.
func retryAfter(value string, now time.Time) time.Duration {
	if s, err := strconv.Atoi(value); err == nil {
		return time.Duration(max(min(s, 86400), 0)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
