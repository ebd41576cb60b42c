// Package openai asks models by OpenAI's Chat Completions API: those of OpenAI,
// of Azure OpenAI, and of every server that speaks it (Ollama, vLLM, llama.cpp,
// LM Studio, OpenRouter, …), through github.com/openai/openai-go.
//
// One [Provider.Generate] is one HTTP request. No environment variable changes
// where a request goes or with which key; only HTTPS_PROXY and its like are
// honoured, by the HTTP client that is used when none is given.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"stopgate/prompthooks"
	"stopgate/prompthooks/exchange"
)

// Options of a [Provider].
type Options struct {
	// APIKey is sent as a bearer token, or to Azure as its api-key header. It
	// is required where BaseURL is OpenAI's or Azure's.
	APIKey string
	// BaseURL of the API, with its version ("http://127.0.0.1:11434/v1");
	// empty = [DefaultBaseURL]. With AzureVersion it is the resource's
	// ("https://NAME.openai.azure.com") and required.
	BaseURL string
	// AzureVersion makes it Azure OpenAI: the api-version of deployment URLs,
	// as 2024-10-21, or "v1" for the API that has none.
	AzureVersion string
	// Lacks is what the models are known not to do.
	Lacks prompthooks.Features
	// HTTPClient makes the requests; nil = one that keeps enough idle
	// connections for many judges. Its redirects are never followed: they
	// would carry the key elsewhere.
	HTTPClient *http.Client
}

// DefaultBaseURL is where OpenAI serves the API.
const DefaultBaseURL = "https://api.openai.com/v1"

// Provider implements [prompthooks.Model].
type Provider struct {
	completions openai.ChatCompletionService
	models      openai.ModelService
	base        string // with a slash at its end
	azure       string // api-version; empty: not Azure
	peer        exchange.Peer
	lacks       prompthooks.Features
}

var _ prompthooks.Limited = (*Provider)(nil)

// New makes a Provider. It sends nothing. An error names the option that is
// wrong and never holds the key.
func New(o Options) (*Provider, error) {
	p := &Provider{azure: o.AzureVersion, peer: exchange.Peer{Name: "openai", Secret: o.APIKey}, lacks: o.Lacks}
	if p.azure != "" {
		p.peer.Name = "azure-openai"
	}
	switch {
	case o.BaseURL == "" && p.azure != "":
		return nil, errors.New("azure-openai: no base URL")
	case o.APIKey == "" && (o.BaseURL == "" || p.azure != ""):
		return nil, errors.New(p.peer.Name + ": no API key")
	case o.BaseURL == "":
		o.BaseURL = DefaultBaseURL
	}
	if err := p.peer.CheckBase(o.BaseURL); err != nil {
		return nil, err
	}
	p.base = strings.TrimRight(o.BaseURL, "/") + "/"
	// The service alone: a whole client would take options from the environment.
	options := []option.RequestOption{option.WithHTTPClient(exchange.Client(o.HTTPClient)), option.WithMaxRetries(0)}
	switch {
	case p.azure != "":
		options = append(options, option.WithHeader("Api-Key", o.APIKey))
	case o.APIKey != "":
		options = append(options, option.WithAPIKey(o.APIKey))
	}
	p.completions, p.models = openai.NewChatCompletionService(options...), openai.NewModelService(options...)
	return p, nil
}

// Models asks which models the server has, in its order; not of Azure, which
// lists what could be deployed. Its errors are those of Generate.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	models, _, err := exchange.Do(ctx, p.peer, 0, func(ctx context.Context) ([]openai.Model, error) {
		page, err := p.models.List(ctx, option.WithBaseURL(p.base))
		if err != nil || page == nil {
			return nil, err
		}
		return page.Data, nil
	})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range models {
		if m.ID != "" && len(m.ID) <= 200 {
			names = append(names, m.ID)
		}
	}
	return names, nil
}

// Lacks is what Options say.
func (p *Provider) Lacks() prompthooks.Features { return p.lacks }

// Generate makes one request. Its errors are [*prompthooks.Error] or ctx's own.
func (p *Provider) Generate(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
	if req.Model == "" || len(req.Model) > 200 || strings.Contains(req.Model, "..") && p.azure != "" {
		return prompthooks.Response{}, prompthooks.Errorf(prompthooks.Rejected, "%s: %q is not the name of a model", p.peer.Name, exchange.Clip(req.Model, 80))
	}
	answer, ex, err := exchange.Do(ctx, p.peer, req.Uses(), func(ctx context.Context) (*openai.ChatCompletion, error) {
		return p.completions.New(ctx, params(req), p.at(req.Model)...)
	})
	if err == nil {
		return response(answer), nil
	}
	if why := filtered(ex.Body); why != "" && ex.Status == http.StatusBadRequest {
		return prompthooks.Response{Message: prompthooks.Message{Role: prompthooks.Assistant},
			Finish: prompthooks.Refused, Detail: exchange.Clip(why, 200)}, nil
	}
	return prompthooks.Response{}, err
}

// at is where a deployment is asked. Azure has it in the path.
func (p *Provider) at(deployment string) []option.RequestOption {
	switch p.azure {
	case "":
		return []option.RequestOption{option.WithBaseURL(p.base)}
	case "v1":
		return []option.RequestOption{option.WithBaseURL(p.base + "openai/v1/")}
	}
	return []option.RequestOption{option.WithBaseURL(p.base + "openai/deployments/" + url.PathEscape(deployment) + "/"),
		option.WithQuery("api-version", p.azure)}
}

// filtered says why a filter stopped the prompt, which OpenAI and Azure tell in
// the body of a status 400; empty: none did. The model refused, it is not
// unavailable.
func filtered(body []byte) string {
	var b struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &b) != nil || b.Error.Code != "content_filter" && b.Error.Code != "invalid_prompt" {
		return ""
	}
	return "the prompt was blocked: " + b.Error.Message
}
