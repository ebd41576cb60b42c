package main

import (
	"context"
	"errors"
	"fmt"

	"stopgate/cmd/internal/hookclient"
	"stopgate/gate"
)

type hookCommand struct {
	Protocol      string   `required:"" placeholder:"P" help:"How the agent speaks: ${protocols}."`
	Agent         string   `placeholder:"NAME" help:"Agent spec to ask (default; with -f the only agent of the files)."`
	Event         string   `placeholder:"EVENT" help:"The host's name of the event, where its payload names none."`
	Server        string   `default:"${server}" help:"URL of the server (STOPGATE_SERVER)."`
	Files         []string `short:"f" name:"file" sep:"none" placeholder:"SPEC" help:"Decide here, by this spec file or directory, without a server; may be given again."`
	Deadline      float64  `default:"25" placeholder:"SECONDS" help:"How long hooks may take together; set the host's own timeout some 10 s higher."`
	OnUnreachable string   `default:"allow" enum:"allow,block" help:"The answer when nobody can be asked: allow or block."`
	Unattended    bool     `help:"Nobody is there to be asked: what a hook would ask a person is denied."`
	Transcript    string   `default:"auto" enum:"auto,send,path" help:"Send the conversation's new part to the server (auto: if it is another machine, or wants a key), or only its path."`
	Config        string   `placeholder:"FILE" help:"With -f: server file, for models and sandbox."`
	Data          string   `placeholder:"DIR" help:"With -f: data directory, for counts and records ($$XDG_STATE_HOME/stopgate)."`
}

// Help is the detail of `stopgate hook --help`.
func (hookCommand) Help() string {
	return `What an agent host runs as its command hook: the host's payload on standard input, its answer on standard output and nothing else. stopgate init writes the entry.

Always exits 0 (a bad flag: 1), since hosts read other codes as denials. What kept it from asking is in hook.log of the data directory, on standard error where that is a terminal, and stopgate doctor tells. The key, if the server wants one, is taken from STOPGATE_API_KEY.

Example: stopgate hook --protocol claude-code --agent marker < payload.json`
}

// Run answers one payload. It has no error for a host to see: what goes wrong
// is answered by --on-unreachable.
func (c hookCommand) Run(p process) error {
	var decide hookclient.Decide
	if len(c.Files) > 0 {
		decide = func(ctx context.Context, ev gate.Event, lost func(error)) (gate.Decision, error) {
			return c.decideHere(ctx, p, ev, lost)
		}
	}
	err := hookclient.Answer(p.ctx, hookclient.Flags{Protocol: c.Protocol, Agent: c.Agent, Event: c.Event, Server: c.Server, Deadline: c.Deadline,
		OnUnreachable: c.OnUnreachable, Unattended: c.Unattended, Transcript: c.Transcript, Data: c.Data},
		hookclient.Process{Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr, Getenv: p.getenv}, decide)
	if err != nil {
		return exit{hookclient.ExitBadFlag, err}
	}
	return nil
}

// decideHere is the server's own path without a server: counts and records are
// the data directory's, which a server may use at the same time (DESIGN §6).
func (c hookCommand) decideHere(ctx context.Context, p process, ev gate.Event, lost func(error)) (gate.Decision, error) {
	files, err := readSpecFiles(c.Files)
	if err != nil {
		return gate.Decision{}, err
	}
	var specs []*gate.Spec
	for _, f := range files {
		if gate.HasErrors(f.findings) {
			return gate.Decision{}, fmt.Errorf("%s has errors: see stopgate validate", f.path)
		}
		specs = append(specs, f.usable()...)
	}
	if c.Agent == "" {
		ev.Agent = onlyAgent(specs, ev.Agent)
	}
	cfg, err := loadConfig(p, c.Config, overrides{data: c.Data})
	if err != nil {
		return gate.Decision{}, err
	}
	app, err := buildOn(ctx, cfg, shared, p.getenv)
	if err != nil { // a store that cannot be had opens no gate whose hooks can be asked (DESIGN §2)
		noStore := err
		if app, err = buildOffline(ctx, cfg, commandOptions(cfg, p.getenv), p.getenv); err != nil {
			return gate.Decision{}, errors.Join(noStore, err)
		}
		lost(noStore)
		app.gate.Store = lostStore{noStore}
	}
	defer app.close()
	app.policies.SetFiles(specs)
	return app.gate.DecideForHost(ctx, ev, gate.Options{})
}

// lostStore is a store that did not open: what it is asked fails as that did.
type lostStore struct{ err error }

func (s lostStore) Counts(context.Context, gate.LedgerKey) (gate.Counts, gate.Erasure, error) {
	return gate.Counts{}, 0, s.err
}

func (s lostStore) Commit(context.Context, gate.Commit) error { return s.err }

func (s lostStore) SetActive(context.Context, string, string, bool, gate.Actor) error { return s.err }

func (s lostStore) Active(context.Context, string) (map[string]bool, error) { return nil, s.err }

func (s lostStore) SetOverride(context.Context, gate.Override, gate.Actor) error { return s.err }

func (s lostStore) Override(context.Context, string) (gate.Override, error) {
	return gate.Override{}, s.err
}

func (s lostStore) RemoveOverride(context.Context, string, gate.Actor) error { return s.err }

// onlyAgent is the one agent of the specs, else what stands already.
func onlyAgent(specs []*gate.Spec, otherwise string) string {
	name, agents := otherwise, 0
	for _, s := range specs {
		if s.Kind == gate.AgentSpec {
			name = s.Name
			agents++
		}
	}
	if agents != 1 {
		return otherwise
	}
	return name
}
