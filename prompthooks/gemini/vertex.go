package gemini

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"google.golang.org/genai"

	"stopgate/prompthooks"
	"stopgate/prompthooks/exchange"
)

// VertexOptions of a [Provider] of Vertex AI.
type VertexOptions struct {
	Project  string // required
	Location string // as europe-west4; empty = global
	// Token is asked for an OAuth access token before each request; nil = by
	// Application Default Credentials, which are looked for when they are first
	// needed. It must be safe for concurrent use, and keep its tokens.
	Token func(ctx context.Context) (string, error)
	// BaseURL of the server; empty = Google's for the location.
	BaseURL string
	// Lacks is what the models are known not to do.
	Lacks prompthooks.Features
	// HTTPClient is as in [Options].
	HTTPClient *http.Client
}

// A project's and a location's name become part of a path, and of a host's name.
var (
	projectName  = regexp.MustCompile(`\A[a-z0-9][a-z0-9.:-]*\z`)
	locationName = regexp.MustCompile(`\A[a-z0-9-]+\z`)
)

// NewVertex makes a Provider of Vertex AI. It sends nothing. An error names the
// option that is wrong.
func NewVertex(ctx context.Context, o VertexOptions) (*Provider, error) {
	if o.Location == "" {
		o.Location = "global"
	}
	// What is empty would be taken from the environment.
	if !projectName.MatchString(o.Project) || strings.Contains(o.Project, "..") {
		return nil, fmt.Errorf("vertex: project is %q, want the id of a Google Cloud project", exchange.Clip(o.Project, 80))
	}
	if !locationName.MatchString(o.Location) {
		return nil, fmt.Errorf("vertex: location is %q, want one as europe-west4, or global", exchange.Clip(o.Location, 80))
	}
	if o.BaseURL == "" {
		o.BaseURL = vertexBaseURL(o.Location)
	}
	if o.Token == nil {
		o.Token = defaultToken()
	}
	client := exchange.Client(o.HTTPClient)
	client.Transport = authorized{token: o.Token, next: client.Transport}
	return open(ctx, exchange.Peer{Name: "vertex"}, o.Lacks, &genai.ClientConfig{
		Backend: genai.BackendVertexAI, Project: o.Project, Location: o.Location, HTTPClient: client,
		HTTPOptions: genai.HTTPOptions{BaseURL: o.BaseURL, APIVersion: "v1"},
	})
}

func vertexBaseURL(location string) string {
	switch location {
	case "global":
		return "https://aiplatform.googleapis.com/"
	case "us", "eu": // several regions under one name
		return "https://aiplatform." + location + ".rep.googleapis.com/"
	}
	return "https://" + location + "-aiplatform.googleapis.com/"
}

// authorized adds an access token to each request.
type authorized struct {
	token func(context.Context) (string, error)
	next  http.RoundTripper
}

func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := a.token(req.Context())
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, prompthooks.Errorf(prompthooks.Unavailable, "vertex: no access token: %s", exchange.Clip(err.Error(), 300))
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return a.next.RoundTrip(req)
}

// defaultToken is a source of tokens by Application Default Credentials. It
// looks for them again as long as there are none.
func defaultToken() func(context.Context) (string, error) {
	var mu sync.Mutex
	var found *auth.Credentials
	find := func() (*auth.Credentials, error) {
		mu.Lock()
		defer mu.Unlock()
		if found == nil {
			c, err := credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"}})
			if err != nil {
				return nil, errors.New("there are no Application Default Credentials: " + err.Error())
			}
			found = c
		}
		return found, nil
	}
	return func(ctx context.Context) (string, error) {
		c, err := find()
		if err != nil {
			return "", err
		}
		token, err := c.Token(ctx)
		if err != nil {
			return "", err
		}
		return token.Value, nil
	}
}
