// Package gemini asks Google's Gemini models, or a server that speaks their
// API, through google.golang.org/genai.
//
// One [Provider.Generate] is one HTTP request: the SDK's retries, its automatic
// continuation and its redirects are off. No environment variable changes where
// a request goes or with which key; only HTTPS_PROXY and its like are honoured,
// by the HTTP client that is used when none is given.
package gemini

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"google.golang.org/genai"

	"stopgate/prompthooks"
)

// Options of a [Provider].
type Options struct {
	// APIKey is required, also for servers that ignore it.
	APIKey string
	// BaseURL of the server, with http or https; empty = [DefaultBaseURL].
	BaseURL string
	// HTTPClient makes the requests; nil = one that keeps enough idle
	// connections for many judges. Its redirects are never followed: they
	// would carry the key elsewhere.
	HTTPClient *http.Client
}

// DefaultBaseURL is where Google serves the Gemini API.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/"

// Provider implements [prompthooks.Model].
type Provider struct {
	client *genai.Client
	apiKey string
}

var _ prompthooks.Model = (*Provider)(nil)

// New makes a Provider. It sends nothing. An error names the option that is
// wrong and never holds the key.
func New(ctx context.Context, o Options) (*Provider, error) {
	// An empty key, or base URL, would be taken from the environment.
	if o.APIKey == "" {
		return nil, errors.New("gemini: no API key")
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	base, err := url.Parse(o.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New("gemini: base URL is not an http or https URL")
	}
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey:      o.APIKey,
		Backend:     genai.BackendGeminiAPI,
		HTTPClient:  watched(o.HTTPClient),
		HTTPOptions: genai.HTTPOptions{BaseURL: o.BaseURL, APIVersion: "v1beta"},
	})
	if err != nil { // its text may show the whole configuration
		return nil, errors.New("gemini: the client cannot be made: " + redact(err.Error(), o.APIKey))
	}
	return &Provider{client: client, apiKey: o.APIKey}, nil
}

// Generate makes one request. Its errors are [*prompthooks.Error] or ctx's own.
func (p *Provider) Generate(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
	if !validModel(req.Model) {
		return prompthooks.Response{}, prompthooks.Errorf(prompthooks.Rejected, "gemini: %q is not the name of a model", clip(req.Model, 80))
	}
	var ex exchange
	answer, err := p.send(withExchange(ctx, &ex), req)
	if err == nil && ex.fault == nil {
		return response(answer, ex.content), nil
	}
	if ctx.Err() != nil {
		return prompthooks.Response{}, ctx.Err()
	}
	return prompthooks.Response{}, p.failure(&ex, err)
}

// send calls the SDK. Some bodies make it panic (fault gx-078); that is an
// error like any other that a body causes.
func (p *Provider) send(ctx context.Context, req prompthooks.Request) (answer *genai.GenerateContentResponse, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the body has not the shape of an answer: %v", r)
		}
	}()
	return p.client.Models.GenerateContent(ctx, req.Model, nil, config(req))
}

// failure translates what went wrong. The HTTP status decides, not what the
// body says of itself.
func (p *Provider) failure(ex *exchange, err error) *prompthooks.Error {
	if ex.fault != nil {
		err = ex.fault
	}
	said := err.Error()
	if api, ok := errors.AsType[genai.APIError](err); ok && strings.TrimSpace(api.Message) != "" {
		said = api.Message
	}
	said = clip(redact(said, p.apiKey), 300)
	_, sent := errors.AsType[*url.Error](err)
	switch {
	case ex.status == 0 && !sent:
		return prompthooks.Errorf(prompthooks.Rejected, "gemini: the request cannot be made: %s", said)
	case ex.status == 0:
		return prompthooks.Errorf(prompthooks.Unavailable, "gemini: the server cannot be reached: %s", said)
	case ex.status == http.StatusTooManyRequests:
		return &prompthooks.Error{Kind: prompthooks.RateLimited, RetryAfter: ex.retryAfter, Message: "gemini: status 429: " + said}
	case ex.status >= 500:
		return &prompthooks.Error{Kind: prompthooks.Unavailable, RetryAfter: ex.retryAfter,
			Message: fmt.Sprintf("gemini: status %d: %s", ex.status, said)}
	case ex.status >= 300:
		return prompthooks.Errorf(prompthooks.Rejected, "gemini: status %d: %s", ex.status, said)
	case ex.broken:
		return prompthooks.Errorf(prompthooks.Unavailable, "gemini: the connection broke: %s", said)
	}
	return prompthooks.Errorf(prompthooks.Garbled, "gemini: the answer cannot be read: %s", said)
}

// validModel keeps a name from reaching another path of the server.
func validModel(name string) bool {
	if name == "" || len(name) > 200 || strings.Contains(name, "..") {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:@/", r))
	})
}

func redact(s, secret string) string { return strings.ReplaceAll(s, secret, "[key]") }

// clip makes foreign text safe to show: one line, at most n bytes.
func clip(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s[:min(len(s), 4*n)])
	if s = strings.Join(strings.Fields(s), " "); len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
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
