package hookclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"stopgate/gate"
)

// Client asks a server on a host's behalf. It follows no redirect: what a server
// answers is a host's to obey, and a key is that server's alone.
type Client struct {
	Base string // URL, without a slash at its end
	Key  string // empty: none is sent

	http http.Client
}

// MaxAnswer bounds an answer, in bytes: its texts have 9,000 each.
const MaxAnswer = 1 << 20

// NewClient is a client of the server at a URL; with an empty key it sends none.
func NewClient(server, key string) *Client {
	c := &Client{Base: strings.TrimRight(server, "/"), Key: key}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// Decide posts a payload and gives the answer, which is the host's to read: one
// JSON object, or nothing.
func (c *Client) Decide(ctx context.Context, path string, payload []byte) ([]byte, error) {
	status, body, err := c.Send(ctx, http.MethodPost, path, "application/json", bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("server at %s answered %w", c.Base, Refusal(strconv.Itoa(status), body))
	}
	body = bytes.TrimSpace(body)
	var object map[string]json.RawMessage
	if len(body) > 0 && (json.Unmarshal(body, &object) != nil || object == nil) {
		return nil, fmt.Errorf("%s does not answer like a stopgate server", c.Base)
	}
	return body, nil
}

// Send makes one request and gives the answer, at most 1 MiB of it: a longer one
// is an error, as is a server that cannot be reached.
func (c *Client) Send(ctx context.Context, method, path, contentType string, content io.Reader) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, content)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", contentType)
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the URL, which c.Base names
		}
		return 0, nil, fmt.Errorf("no server at %s: %w", c.Base, err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if err == nil && len(body) > MaxAnswer {
		err = fmt.Errorf("answer of %s is larger than %d bytes", c.Base, MaxAnswer)
	}
	return resp.StatusCode, body, err
}

// CheckServer refuses what is not the URL of a server, for every command that
// asks one.
func CheckServer(server string) error {
	u, err := url.Parse(server)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return fmt.Errorf("server (--server or STOPGATE_SERVER) is %q, want a URL, as http://127.0.0.1:8790", server)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("server (--server or STOPGATE_SERVER) is %q, want scheme, host and path alone", u.Redacted())
	}
	return nil
}

// Refusal is the error of an answer that is none of those that were hoped for: a
// [gate.Error] where it is one of stopgate's own, else its status alone.
func Refusal(status string, body []byte) error {
	var answer struct {
		Error struct {
			Code, Message string
			Details       []gate.Finding
		}
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error.Message == "" {
		return fmt.Errorf("server answered %s", status)
	}
	return &gate.Error{Code: gate.Code(answer.Error.Code), Message: answer.Error.Message, Details: answer.Error.Details}
}
