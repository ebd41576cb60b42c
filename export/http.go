package export

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"stopgate/gate"
)

// HTTPOptions of [NewHTTP]. URL is required.
type HTTPOptions struct {
	URL     string            // what is posted to
	Headers map[string]string // go with every request
	RootCAs *x509.CertPool    // vouch for it; nil: those that the system trusts
}

// HTTP is a [Sink] that posts lines as application/x-ndjson. A status of 2xx
// confirms all of them.
type HTTP struct {
	opt    HTTPOptions
	client *http.Client
}

var _ Sink = (*HTTP)(nil)

// NewHTTP makes the sink; it sends nothing yet.
func NewHTTP(opt HTTPOptions) *HTTP {
	const connectTime = 5 * time.Second
	return &HTTP{opt: opt, client: &http.Client{
		// To the one place it was told: no proxy of the environment's, and no
		// redirect, which would take headers and records along.
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: connectTime}).DialContext,
			TLSClientConfig:     &tls.Config{RootCAs: opt.RootCAs, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: connectTime, ForceAttemptHTTP2: true, MaxIdleConns: 1, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close ends the connections that wait for the next request.
func (h *HTTP) Close() error {
	h.client.CloseIdleConnections()
	return nil
}

// Send posts the lines as one body.
func (h *HTTP) Send(ctx context.Context, _ []gate.Record, lines [][]byte) error {
	body := bytes.Join(lines, nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.opt.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range h.opt.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("User-Agent", "stopgate")
	resp, err := h.client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the URL may hold what nobody is to read
		}
		return fmt.Errorf("export: %w", err)
	}
	defer resp.Body.Close()
	// A little is read, so that the connection can be used again.
	const enough = 64 << 10
	if _, err := io.CopyN(io.Discard, resp.Body, enough); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("export: the answer broke off: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return refusedWith(resp.StatusCode)
	}
	return nil
}

// refusedWith is a status that confirms nothing.
type refusedWith int

func (status refusedWith) Error() string {
	return fmt.Sprintf("export: it was answered with status %d", int(status))
}

// RecordsAtFault implements [Refusal]. Any other status is about who sends, how often,
// or the sink itself.
func (status refusedWith) RecordsAtFault() bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}
