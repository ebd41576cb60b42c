package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"stopgate/access"
	"stopgate/config"
	"stopgate/gate"
	"stopgate/internal/terminal"
)

type keyCommand struct {
	Create keyCreateCommand `cmd:"" help:"Make a key; it is printed this once."`
	List   keyListCommand   `cmd:"" help:"List the keys, without the keys themselves."`
	Revoke keyRevokeCommand `cmd:"" help:"Revoke a key; a running server refuses it within a second."`
}

// keyPlace is where the keys are that a command is about.
type keyPlace struct {
	Server string `placeholder:"URL" help:"Ask a running server, with an admin key in STOPGATE_API_KEY (STOPGATE_SERVER)."`
	Config string `placeholder:"FILE" help:"Without a server: the server file that names the data directory."`
	Data   string `placeholder:"DIR" help:"Without a server: the data directory ($$XDG_STATE_HOME/stopgate); a server may be using it."`
}

const keyPlaceHelp = "Works on the data directory, or the database of the server file, also while a server uses it; or, with --server or STOPGATE_SERVER, through that server's admin routes."

type keyCreateCommand struct {
	Name    string   `required:"" help:"What people call it; no other living key may have it."`
	Scope   []string `required:"" placeholder:"SCOPE" help:"What it may do: evaluate (ask), read (see), admin (everything)."`
	Agents  []string `default:"*" placeholder:"PATTERN" help:"The agents it is limited to, as 'build-*,deploy': * is any text, ? any character."`
	Expires string   `placeholder:"TIME" help:"When it ends: 90d, 12h from now, or 2027-01-31T00:00:00Z; never, if left out."`
	JSON    bool     `help:"Print the key and what is known of it as JSON."`
	keyPlace
}

// Help is the detail of `stopgate key create --help`.
func (keyCreateCommand) Help() string {
	return keyPlaceHelp + " Prints the key alone on standard output. An agent's key needs evaluate and nothing else.\n\nExample: stopgate key create --name builder --scope evaluate --agents 'build-*' --expires 90d"
}

// Run makes a key.
func (c keyCreateCommand) Run(p process) error {
	k := gate.Key{Name: c.Name, Agents: c.Agents}
	for _, s := range c.Scope {
		k.Scopes = append(k.Scopes, gate.Scope(s))
	}
	var err error
	if k.Expires, err = readExpiry(c.Expires, time.Now()); err != nil {
		return exit{exitUsage, err}
	}
	if err := k.Check(time.Now()); err != nil {
		return exit{exitUsage, err}
	}
	keys, err := c.open(p, true)
	if err != nil {
		return err
	}
	made, err := keys.create(p.ctx, k)
	if err := errors.Join(err, keys.close()); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, made)
	}
	fmt.Fprintf(p.stderr, "key %s (%s) made in %s: may %s\n", terminal.Visible(made.Name), made.ID, keys.where(), mayDo(made.Key))
	_, err = fmt.Fprintln(p.stdout, made.Secret)
	return err
}

// readExpiry reads a duration from now, or a moment.
func readExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, ok := config.ParseDuration(text); ok && d > 0 {
		return now.Add(d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("--expires is %q: want 90d or 12h, more than 0, or a time as 2027-01-31T00:00:00Z", text)
	}
	return t, nil
}

// mayDo is what a key is for, in words.
func mayDo(k gate.Key) string {
	scopes := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		scopes[i] = string(s)
	}
	agents := "for every agent"
	if (gate.Caller{Agents: k.Agents}).Limited() {
		agents = "for " + terminal.Visible(strings.Join(k.Agents, ", "))
	}
	until := "without end"
	if !k.Expires.IsZero() {
		until = "until " + k.Expires.UTC().Format(time.RFC3339)
	}
	return strings.Join(scopes, ", ") + " " + agents + ", " + until
}

type keyListCommand struct {
	JSON bool `help:"Print JSON."`
	keyPlace
}

// Help is the detail of `stopgate key list --help`.
func (keyListCommand) Help() string { return keyPlaceHelp + "\n\nExample: stopgate key list" }

// Run lists the keys.
func (c keyListCommand) Run(p process) error {
	keys, err := c.open(p, false)
	if err != nil {
		return err
	}
	list, err := keys.list(p.ctx)
	if err := errors.Join(err, keys.close()); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, map[string]any{"value": list})
	}
	return printKeys(visible{p.stdout}, list, time.Now())
}

func printKeys(w io.Writer, list []gate.Key, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tNAME\tMAY\tSTATE\tLAST USED")
	for _, k := range list {
		state := "good"
		switch {
		case !k.Revoked.IsZero():
			state = "revoked " + k.Revoked.UTC().Format(time.DateOnly)
		case !k.Expires.IsZero() && !now.Before(k.Expires):
			state = "expired"
		}
		used := "never"
		if !k.LastUsed.IsZero() {
			used = k.LastUsed.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", k.ID, terminal.Visible(k.Name), mayDo(k), state, used)
	}
	return t.Flush()
}

type keyRevokeCommand struct {
	Key string `arg:"" help:"ID of the key, the name of one that was not revoked, or the key itself, as it was found somewhere."`
	keyPlace
}

// Help is the detail of `stopgate key revoke --help`.
func (keyRevokeCommand) Help() string {
	return keyPlaceHelp + "\n\nExample: stopgate key revoke builder"
}

// Run revokes a key.
func (c keyRevokeCommand) Run(p process) error {
	id, err := access.KeyID(c.Key)
	if err != nil { // and is not sent: most of it may be right
		return exit{exitUsage, fmt.Errorf("%w: revoke it by its ID, the eight letters after sg_", err)}
	}
	keys, err := c.open(p, false)
	if err != nil {
		return err
	}
	key := c.Key
	if id != "" { // the rest of the key is for nobody's log
		key, err = id, living(p.ctx, keys, id)
	}
	if err == nil {
		err = keys.revoke(p.ctx, key)
	}
	if err := errors.Join(err, keys.close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "key %s revoked\n", terminal.Visible(key))
	return err
}

// living wants a key with that ID. To revoke takes names as well, and another
// key's may be the same.
func living(ctx context.Context, from keys, id string) error {
	list, err := from.list(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(k gate.Key) bool { return k.ID == id && k.Revoked.IsZero() }) {
		return refused(gate.Errorf(gate.CodeNotFound, "key %q is not known, or was revoked before", id))
	}
	return nil
}

// madeKey is a key as it is shown once.
type madeKey struct {
	Secret string `json:"key"`
	gate.Key
}

// UnmarshalJSON reads both halves of a server's answer.
func (k *madeKey) UnmarshalJSON(b []byte) error {
	var secret struct{ Key string }
	if err := errors.Join(json.Unmarshal(b, &secret), json.Unmarshal(b, &k.Key)); err != nil {
		return err
	}
	k.Secret = secret.Key
	return nil
}
