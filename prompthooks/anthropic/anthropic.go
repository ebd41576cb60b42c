// Package anthropic asks Anthropic's Claude models, or a server that speaks
// their Messages API, through github.com/anthropics/anthropic-sdk-go.
//
// One [Provider.Generate] is one HTTP request. No environment variable and no
// profile on disk changes where a request goes or with which key; only
// HTTPS_PROXY and its like are honoured, by the HTTP client that is used when
// none is given.
package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"stopgate/prompthooks"
	"stopgate/prompthooks/exchange"
)

// Options of a [Provider].
type Options struct {
	// APIKey is required, also for servers that ignore it.
	APIKey string
	// BaseURL of the server, without the API's version; empty =
	// [DefaultBaseURL].
	BaseURL string
	// Lacks is what the models are known not to do.
	Lacks prompthooks.Features
	// HTTPClient makes the requests; nil = one that keeps enough idle
	// connections for many judges. Its redirects are never followed: they
	// would carry the key elsewhere.
	HTTPClient *http.Client
}

// DefaultBaseURL is where Anthropic serves the API.
const DefaultBaseURL = "https://api.anthropic.com"

// Provider implements [prompthooks.Model].
type Provider struct {
	messages anthropic.MessageService
	peer     exchange.Peer
	lacks    prompthooks.Features
}

var _ prompthooks.Limited = (*Provider)(nil)

// New makes a Provider. It sends nothing. An error names the option that is
// wrong and never holds the key.
func New(o Options) (*Provider, error) {
	if o.APIKey == "" {
		return nil, errors.New("anthropic: no API key")
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	peer := exchange.Peer{Name: "anthropic", Secret: o.APIKey}
	if err := peer.CheckBase(o.BaseURL); err != nil {
		return nil, err
	}
	// The service alone: a whole client would look for credentials in the
	// environment and in profiles on disk.
	return &Provider{peer: peer, lacks: o.Lacks,
		messages: anthropic.NewMessageService(option.WithAPIKey(o.APIKey), option.WithBaseURL(strings.TrimRight(o.BaseURL, "/")+"/"),
			option.WithHTTPClient(exchange.Client(o.HTTPClient)), option.WithMaxRetries(0),
			option.WithRequestTimeout(requestTimeout), option.WithOpenTelemetryTraces(false))}, nil
}

// requestTimeout is longer than any hook's; where none is given the SDK makes
// one up of the tokens that may be written, or refuses the request.
const requestTimeout = time.Hour

// Lacks is what Options say.
func (p *Provider) Lacks() prompthooks.Features { return p.lacks }

// Generate makes one request. Its errors are [*prompthooks.Error] or ctx's own.
func (p *Provider) Generate(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
	if req.Model == "" || len(req.Model) > 200 {
		return prompthooks.Response{}, prompthooks.Errorf(prompthooks.Rejected, "anthropic: %q is not the name of a model", exchange.Clip(req.Model, 80))
	}
	answer, ex, err := exchange.Do(ctx, p.peer, req.Uses(), func(ctx context.Context) (*anthropic.Message, error) {
		return p.messages.New(ctx, params(req))
	})
	if err != nil {
		return prompthooks.Response{}, err
	}
	return response(answer, contentIn(ex.Body)), nil
}

// contentIn is the answer's content as it came: thoughts are signed and must go
// back unchanged, also those of a kind that the SDK does not know. Content
// without a block cannot be handed back.
func contentIn(body []byte) json.RawMessage {
	var b struct {
		Content []json.RawMessage `json:"content"`
	}
	if json.Unmarshal(body, &b) != nil || len(b.Content) == 0 {
		return nil
	}
	content, err := json.Marshal(b.Content)
	if err != nil {
		return nil
	}
	return content
}
