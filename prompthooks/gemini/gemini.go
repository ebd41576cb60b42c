// Package gemini asks Google's Gemini models, by the Gemini API or by Vertex
// AI, or a server that speaks their API, through google.golang.org/genai.
//
// One [Provider.Generate] is one HTTP request: the SDK's retries, its automatic
// continuation and its redirects are off. No environment variable changes where
// a request goes or with which key; only HTTPS_PROXY and its like are honoured,
// by the HTTP client that is used when none is given, and what Google calls
// Application Default Credentials, where Vertex AI is asked without a token.
package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genai"

	"stopgate/prompthooks"
	"stopgate/prompthooks/exchange"
)

// Options of a [Provider] of the Gemini API.
type Options struct {
	// APIKey is required, also for servers that ignore it.
	APIKey string
	// BaseURL of the server, with http or https; empty = [DefaultBaseURL].
	BaseURL string
	// Lacks is what the models are known not to do.
	Lacks prompthooks.Features
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
	peer   exchange.Peer
	lacks  prompthooks.Features
}

var _ prompthooks.Limited = (*Provider)(nil)

// New makes a Provider of the Gemini API. It sends nothing. An error names the
// option that is wrong and never holds the key.
func New(ctx context.Context, o Options) (*Provider, error) {
	// An empty key, or base URL, would be taken from the environment.
	if o.APIKey == "" {
		return nil, errors.New("gemini: no API key")
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	return open(ctx, exchange.Peer{Name: "gemini", Secret: o.APIKey}, o.Lacks, &genai.ClientConfig{
		APIKey:      o.APIKey,
		Backend:     genai.BackendGeminiAPI,
		HTTPClient:  exchange.Client(o.HTTPClient),
		HTTPOptions: genai.HTTPOptions{BaseURL: o.BaseURL, APIVersion: "v1beta"},
	})
}

func open(ctx context.Context, peer exchange.Peer, lacks prompthooks.Features, c *genai.ClientConfig) (*Provider, error) {
	if err := peer.CheckBase(c.HTTPOptions.BaseURL); err != nil {
		return nil, err
	}
	client, err := genai.NewClient(ctx, c)
	if err != nil { // its text shows the whole configuration
		return nil, errors.New(peer.Name + ": the client cannot be made of this configuration")
	}
	return &Provider{client: client, peer: peer, lacks: lacks}, nil
}

// Lacks is what Options say.
func (p *Provider) Lacks() prompthooks.Features { return p.lacks }

// Generate makes one request. Its errors are [*prompthooks.Error] or ctx's own.
func (p *Provider) Generate(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
	if !validModel(req.Model) {
		return prompthooks.Response{}, prompthooks.Errorf(prompthooks.Rejected, "%s: %q is not the name of a model", p.peer.Name, exchange.Clip(req.Model, 80))
	}
	answer, ex, err := exchange.Do(ctx, p.peer, req.Uses(), func(ctx context.Context) (*genai.GenerateContentResponse, error) {
		return p.client.Models.GenerateContent(ctx, req.Model, nil, config(req))
	})
	if bad, ok := errors.AsType[*prompthooks.Error](err); ok {
		if bad.Kind == prompthooks.RateLimited || bad.Kind == prompthooks.Unavailable {
			bad.RetryAfter = max(bad.RetryAfter, retryInfo(ex.Body))
		}
	}
	if err != nil {
		return prompthooks.Response{}, err
	}
	return response(answer, contentIn(ex.Body)), nil
}

// contentIn is the first candidate's content as it came. The SDK's own form of
// it loses what it does not know, and the empty text beside a thought signature
// (fault gx-080).
func contentIn(body []byte) json.RawMessage {
	var b struct {
		Candidates []struct {
			Content json.RawMessage `json:"content"`
		} `json:"candidates"`
	}
	if json.Unmarshal(body, &b) != nil || len(b.Candidates) == 0 || string(b.Candidates[0].Content) == "null" {
		return nil // the SDK says what is wrong
	}
	return b.Candidates[0].Content
}

// retryInfo is the wait that the body of an error asks for: Google writes it
// there ("3.5s") and not in a header. What cannot be read is 0.
func retryInfo(body []byte) (wait time.Duration) {
	var b struct {
		Error struct {
			Details []map[string]any `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &b)
	for _, d := range b.Error.Details {
		text, _ := d["retryDelay"].(string)
		number, ok := strings.CutSuffix(text, "s")
		if n, err := strconv.ParseFloat(number, 64); ok && (err == nil || errors.Is(err, strconv.ErrRange)) {
			wait = max(wait, exchange.Seconds(n))
		}
	}
	return wait
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
