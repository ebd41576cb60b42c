package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stopgate/cmd/internal/hookclient"
	"stopgate/gate"
)

type overrideCommand struct {
	Session string        `arg:"" help:"The session's id, as records have it."`
	Reason  string        `help:"Why; it is recorded with each Stop that is let through."`
	For     time.Duration `placeholder:"DURATION" help:"How long, in whole minutes, as 30m; at most 24h."`
	Remove  bool          `help:"End the override that there is."`
	Server  string        `default:"${server}" help:"URL of the server (STOPGATE_SERVER)."`
}

// Help is the detail of `stopgate override --help`.
func (overrideCommand) Help() string {
	return "Lets a session stop for a while: its Stop hooks are not asked, and each Stop is allowed, forced, and recorded with the reason and the name of the key. " +
		"Other events are judged as ever. The key, which needs the scope admin, is taken from STOPGATE_API_KEY.\n\n" +
		"Example: stopgate override 0198f2c4 --reason \"the staging cluster is down\" --for 30m"
}

// Run sets or ends an override.
func (c overrideCommand) Run(p process) error {
	if err := c.check(); err != nil {
		return exit{exitUsage, err}
	}
	client := apiClient{base: strings.TrimRight(c.Server, "/"), key: p.getenv("STOPGATE_API_KEY")}
	path, out := "/v1/sessions/"+url.PathEscape(c.Session)+"/override", visible{p.stdout}
	if c.Remove {
		if _, _, err := client.do(p.ctx, http.MethodDelete, path, "", nil); err != nil {
			return err
		}
		fmt.Fprintf(out, "session %s is judged again\n", c.Session)
		return nil
	}
	body, err := json.Marshal(map[string]any{"reason": c.Reason, "minutes": int(c.For / time.Minute)})
	if err != nil {
		return err
	}
	answer, _, err := client.do(p.ctx, http.MethodPut, path, "application/json", body)
	if err != nil {
		return err
	}
	var set gate.Override
	if err := json.Unmarshal(answer, &set); err != nil {
		return exit{exitUnreachable, fmt.Errorf("%s does not answer like a stopgate server: %w", client.base, err)}
	}
	fmt.Fprintf(out, "session %s may stop until %s\n", c.Session, set.Until.Format(time.RFC3339))
	return nil
}

func (c overrideCommand) check() error {
	switch {
	case c.Session == "":
		return errors.New("session is empty")
	case c.Remove && (c.Reason != "" || c.For != 0):
		return errors.New("--remove goes with neither --reason nor --for")
	case !c.Remove && strings.TrimSpace(c.Reason) == "":
		return errors.New("--reason is missing")
	case !c.Remove && (c.For < time.Minute || c.For > gate.MaxOverride || c.For%time.Minute != 0):
		return fmt.Errorf("--for is %s, want whole minutes up to %s, as 30m", c.For, gate.MaxOverride)
	}
	return hookclient.CheckServer(c.Server)
}
