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
	"strings"
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
	// A proxy that echoes what it was sent must not have the key reach a
	// record, or as a reason the gated agent.
	if key := req.Header.Get("X-Goog-Api-Key"); key != "" {
		body = bytes.ReplaceAll(body, []byte(key), []byte("[key]"))
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
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &b) != nil {
		return // the SDK says what is wrong
	}
	if len(b.Candidates) > 0 && string(b.Candidates[0].Content) != "null" {
		ex.content = b.Candidates[0].Content
	}
	if len(b.Error) == 0 || string(b.Error) == "null" {
		return
	}
	// Whatever form it has, it is an error; what of it cannot be read is zero.
	var e struct {
		Code    int              `json:"code"`
		Message string           `json:"message"`
		Details []map[string]any `json:"details"`
	}
	_ = json.Unmarshal(b.Error, &e)
	for _, d := range e.Details {
		if delay, ok := d["retryDelay"].(string); ok {
			ex.retryAfter = max(ex.retryAfter, seconds(delay))
		}
	}
	if ex.status < 300 {
		// Some gateways put an error into a success; the SDK would see an
		// empty answer.
		ex.fault = errors.New(cmp.Or(e.Message, "an error without a message"))
		if e.Code >= 400 && e.Code <= 599 {
			ex.status = e.Code
		}
	}
}

// longest is what a wait too long to be written as a duration is read as.
const longest = 24 * time.Hour

// seconds reads a wait as "3.5s"; what is no such text is 0.
func seconds(text string) time.Duration {
	number, ok := strings.CutSuffix(text, "s")
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil && !errors.Is(err, strconv.ErrRange) || !(n > 0) {
		return 0
	}
	if n > longest.Seconds() {
		return longest
	}
	return time.Duration(n * float64(time.Second))
}

// retryAfter reads the header: seconds, or a date. What cannot be read, or is
// past, is 0.
func retryAfter(value string, now time.Time) time.Duration {
	if s, err := strconv.Atoi(value); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(max(min(s, 86400), 0)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
