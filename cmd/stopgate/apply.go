package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stopgate/cmd/internal/hookclient"
	"stopgate/gate"
	"stopgate/wire/install"
)

type applyCommand struct {
	Files  []string `short:"f" name:"file" required:"" sep:"none" help:"Spec file, or a directory of them; may be given again."`
	Server string   `default:"${server}" help:"URL of the server (STOPGATE_SERVER)."`
	JSON   bool     `help:"Print what was stored as JSON."`
}

// Help is the detail of `stopgate apply --help`.
func (applyCommand) Help() string {
	return "Every file is checked before the first resource is sent. The key, if the server wants one, is taken from STOPGATE_API_KEY.\n\n" +
		"Agent-level hooks (GlobalHook) apply to every agent.\n\nExample: stopgate apply -f examples/marker.yaml --server http://127.0.0.1:8790"
}

// applied is one resource that the server stored.
type applied struct {
	Kind     gate.SpecKind  `json:"kind"`
	Name     string         `json:"name"`
	ETag     string         `json:"etag"`
	Warnings []gate.Finding `json:"warnings"`
}

// Run uploads the specs of every file.
func (c applyCommand) Run(p process) error {
	p.stdout, p.stderr = visible{p.stdout}, visible{p.stderr}
	if err := hookclient.CheckServer(c.Server); err != nil {
		return exit{exitUsage, err}
	}
	files, err := readSpecFiles(c.Files)
	if err != nil {
		return err
	}
	specs, err := goodSpecs(p, files)
	if err != nil {
		return err
	}
	printFindings(p.stderr, files)
	client := apiClient{base: strings.TrimRight(c.Server, "/"), key: p.getenv("STOPGATE_API_KEY")}
	all := []applied{}
	for _, s := range specs {
		stored, err := client.put(p.ctx, s)
		if err != nil {
			return err
		}
		all = append(all, stored)
		if !c.JSON {
			everyAgent := ""
			if s.Kind == gate.HookSpec {
				everyAgent = " (for every agent)"
			}
			fmt.Fprintf(p.stdout, "%s %s stored%s\n", s.Kind, s.Name, everyAgent)
		}
	}
	if c.JSON {
		return printJSON(p.stdout, all)
	}
	return nil
}

// apiClient speaks to a running server.
type apiClient struct{ base, key string }

// applyTimeout is for one small request to a server that may be far away.
const applyTimeout = 30 * time.Second

func (c apiClient) put(ctx context.Context, s *gate.Spec) (applied, error) {
	collection := map[gate.SpecKind]string{gate.AgentSpec: "agents", gate.HookSpec: "hooks"}[s.Kind]
	body, header, err := c.do(ctx, http.MethodPut, "/api/v2/extendedAgent/"+collection+"/"+url.PathEscape(s.Name), "application/json", s.Document)
	if err != nil {
		return applied{}, fmt.Errorf("%s %s: %w", s.Kind, s.Name, err)
	}
	var answer struct {
		Warnings []gate.Finding `json:"warnings"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return applied{}, exit{exitUnreachable, fmt.Errorf("%s does not answer like a stopgate server: %w", c.base, err)}
	}
	return applied{s.Kind, s.Name, header.Get("ETag"), answer.Warnings}, nil
}

// do sends one request. What the server refuses is an error with exit 1, a
// server that cannot be reached one with exit 69.
func (c apiClient) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	resp, err := c.send(ctx, method, path, contentType, body)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxSpecFile))
	if err != nil {
		return nil, nil, exit{exitUnreachable, err}
	}
	if resp.StatusCode/100 != 2 {
		return nil, nil, refusal(resp.Status, answer)
	}
	return answer, resp.Header, nil
}

func (c apiClient) send(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, exit{exitUsage, err}
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, exit{exitUnreachable, fmt.Errorf("no server at %s: %w (%s)", c.base, err, howToReach(c.base))}
	}
	return resp, nil
}

// refusedBy is the error of an answer that is a refusal, of which so many bytes are
// read.
func refusedBy(resp *http.Response, limit int64) error {
	answer, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil {
		return exit{exitUnreachable, err}
	}
	return refusal(resp.Status, answer)
}

// howToReach is what to do about a server that does not answer.
func howToReach(base string) string {
	if install.Loopback(base) {
		return "start it with: stopgate serve"
	}
	return "check its address, and that this machine reaches it and trusts its certificate"
}

// refusal is [hookclient.Refusal] with its exit code.
func refusal(status string, body []byte) error {
	err := hookclient.Refusal(status, body)
	if _, ours := errors.AsType[*gate.Error](err); ours {
		return exit{exitFindings, err}
	}
	return exit{exitUnreachable, err}
}
