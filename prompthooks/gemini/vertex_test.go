package gemini

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"stopgate/prompthooks"
)

func TestVertexChecksOptions(t *testing.T) {
	for _, o := range []VertexOptions{{}, {Project: "../x"}, {Project: "a/b"}, {Project: "a..b"}, {Project: "p", Location: "evil.example/"},
		{Project: "p", Location: "a.b"}, {Project: "p", BaseURL: "ftp://x"}} {
		if _, err := NewVertex(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "vertex: ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, project := range []string{"my-project", "example.com:my-project", "123456789"} {
		if _, err := NewVertex(t.Context(), VertexOptions{Project: project}); err != nil {
			t.Error(err)
		}
	}
}

func TestVertexBaseURL(t *testing.T) {
	for location, want := range map[string]string{
		"global": "https://aiplatform.googleapis.com/", "eu": "https://aiplatform.eu.rep.googleapis.com/",
		"europe-west4": "https://europe-west4-aiplatform.googleapis.com/",
	} {
		if got := vertexBaseURL(location); got != want {
			t.Errorf("%s is at %s", location, got)
		}
	}
}

// Without a token nothing is sent, and it may be there later.
func TestVertexWithoutToken(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	p, err := NewVertex(t.Context(), VertexOptions{Project: "p", BaseURL: s.URL,
		Token: func(context.Context) (string, error) { return "", errors.New("no credentials\n") }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Generate(t.Context(), prompthooks.Request{Model: "m"})
	if bad, ok := errors.AsType[*prompthooks.Error](err); !ok || bad.Kind != prompthooks.Unavailable || bad.Message != "vertex: no access token: no credentials" {
		t.Errorf("got %v", err)
	}
}

// Application Default Credentials are looked for when they are needed.
func TestVertexDefaultCredentials(t *testing.T) {
	s := serve(t, says("x"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json")
	p, err := NewVertex(t.Context(), VertexOptions{Project: "p", BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Generate(t.Context(), prompthooks.Request{Model: "m"})
	if err == nil || !strings.Contains(err.Error(), "Application Default Credentials") || len(s.seen()) != 0 {
		t.Errorf("got %v", err)
	}
}
