package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/internal/regular"
	"stopgate/wire"
)

type evalCommand struct {
	Files      []string `short:"f" name:"file" required:"" sep:"none" help:"Spec file, or a directory of them; may be given again."`
	Event      string   `required:"" placeholder:"FILE" help:"The event as JSON (the body of POST /v1/evaluate); - for standard input."`
	Transcript string   `placeholder:"FILE" help:"The conversation, as text or as lines of {role, content}."`
	Config     string   `placeholder:"FILE" help:"Server file, for models and sandbox."`
	Sandbox    string   `placeholder:"MODE" help:"auto, bubblewrap, process, container or off."`
	JSON       bool     `help:"Print the whole decision as JSON."`
}

// Help is the detail of `stopgate eval --help`.
func (evalCommand) Help() string {
	return `Counts nothing: stop_rejection_count and stop_hook_active are taken from the event. An event without agent_name goes to the one agent of the files.

Exit codes: 0 allow, 2 block, 3 ask. Other codes are failures: 64 usage, 65 unreadable input, 70 internal. Under a limit of address space (ulimit -v) leave it 2 GB: a Go program that runs out of memory before its first line ends with 2 as well.

Example:
  echo '{"hook_event_name":"Stop","final_output":"All done."}' | stopgate eval -f examples/marker.yaml --event -`
}

// maxEvent is the largest event that eval reads, as much as a server takes.
const maxEvent = 32 << 20

// Run decides the event and says so by its exit code.
func (c evalCommand) Run(p process) error {
	p.stdout, p.stderr = visible{p.stdout}, visible{p.stderr}
	files, err := readSpecFiles(c.Files)
	if err != nil {
		return err
	}
	specs, err := goodSpecs(p, files)
	if err != nil {
		return err
	}
	ev, err := c.event(p, specs)
	if err != nil {
		return err
	}
	cfg, err := loadConfig(p, c.Config, overrides{sandbox: c.Sandbox, offline: true})
	if err != nil {
		return err
	}
	// Whatever file the person at the command line names, they may read.
	cfg.Transcripts.Roots = []string{"/"}
	app, err := buildOffline(p.ctx, cfg, commandOptions(cfg, p.getenv), p.getenv)
	if err != nil {
		return err
	}
	defer app.close()
	d, err := app.gate.Decide(p.ctx, ev, gate.Options{Specs: specs, AllActive: true})
	if err != nil && gate.CodeOf(err) == gate.CodeNotFound {
		return exit{exitInput, fmt.Errorf("agent_name is %q, and the files hold %s", ev.Agent, agentsIn(specs))}
	}
	if err != nil {
		return exit{exitInput, err}
	}
	if p.ctx.Err() != nil { // hooks were cut short: what came of it is no decision
		return exit{exitInternal, errors.New("interrupted")}
	}
	if c.JSON {
		err = printJSON(p.stdout, d.WithoutEvidence())
	} else {
		err = printDecision(p.stdout, d)
	}
	if err != nil {
		return err
	}
	switch d.Outcome {
	case gate.Block:
		return exit{code: exitBlock}
	case gate.Ask:
		return exit{code: exitAsk}
	}
	return nil
}

func (c evalCommand) event(p process, specs []*gate.Spec) (gate.Event, error) {
	in := p.stdin
	if c.Event != "-" {
		f, err := regular.Open(c.Event)
		if err != nil {
			return gate.Event{}, exit{exitInput, err}
		}
		defer f.Close()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, maxEvent+1))
	if err != nil {
		return gate.Event{}, exit{exitInput, err}
	}
	if len(body) > maxEvent {
		return gate.Event{}, exit{exitInput, fmt.Errorf("event is larger than %d MiB", maxEvent>>20)}
	}
	if len(bytes.TrimSpace(body)) == 0 {
		where := c.Event
		if where == "-" {
			where = "standard input"
		}
		return gate.Event{}, exit{exitInput, fmt.Errorf(`%s is empty, want an event, as {"hook_event_name":"Stop","final_output":"All done."}`, where)}
	}
	named, err := withAgent(body, specs)
	if err != nil {
		return gate.Event{}, exit{exitInput, err}
	}
	ev, err := wire.DecodeNative(named)
	if err != nil {
		return gate.Event{}, exit{exitInput, err}
	}
	for _, w := range eventWarnings(body, ev) {
		fmt.Fprintf(p.stderr, "warning: %s\n", w)
	}
	ev.Dry, ev.Payload = true, body
	if c.Transcript != "" {
		if _, err := os.Stat(c.Transcript); err != nil {
			return gate.Event{}, exit{exitInput, fmt.Errorf("transcript: %w", err)}
		}
		ev.TranscriptPath, ev.InlineTranscript = absolute(c.Transcript), nil
	}
	return ev, nil
}

// withAgent names the only agent of the files, or "default" when they hold
// agent-level hooks alone, in an event that names none. What is no JSON object
// is for the decoder to refuse.
func withAgent(body []byte, specs []*gate.Spec) ([]byte, error) {
	fields := members(body)
	if fields == nil || fields["agent_name"] != nil {
		return body, nil
	}
	name := gate.DefaultAgent
	switch agents := agentNames(specs); len(agents) {
	case 0:
	case 1:
		name = agents[0]
	default:
		return nil, fmt.Errorf("event has no agent_name, and the files hold %s", agentsIn(specs))
	}
	fields["agent_name"], _ = json.Marshal(name) // a string always has a JSON form
	return json.Marshal(fields)
}

// members are those of a JSON object; nil for anything else.
func members(body []byte) (fields map[string]json.RawMessage) {
	if json.Unmarshal(body, &fields) != nil {
		return nil
	}
	return fields
}

// memberText is a member of a JSON object that is a text; empty: it is none.
func memberText(body []byte, name string) (text string) {
	_ = json.Unmarshal(members(body)[name], &text) // what is no text is left to who reads it
	return text
}

func agentNames(specs []*gate.Spec) (names []string) {
	for _, s := range specs {
		if s.Kind == gate.AgentSpec {
			names = append(names, s.Name)
		}
	}
	return names
}

// agentsIn names the agents of the files in an error.
func agentsIn(specs []*gate.Spec) string {
	names := agentNames(specs)
	switch len(names) {
	case 0:
		return `agent-level hooks alone: name "default"`
	case 1:
		return fmt.Sprintf("the agent %q", names[0])
	}
	return fmt.Sprintf("the agents %q", names)
}

// eventWarnings are what a service takes in silence, since agents send what
// they like, and a person who tries a hook did not mean.
func eventWarnings(body []byte, ev gate.Event) (warnings []string) {
	fields, known := members(body), config.EventFields()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			warnings = append(warnings, fmt.Sprintf("event field %.60q is unknown and has no effect%s", name, config.DidYouMean(name, known)))
		}
	}
	if _, given := fields["final_output"]; !given && (ev.Name == gate.Stop || ev.Name == gate.SubagentStop) {
		warnings = append(warnings, fmt.Sprintf("%s has no final_output: hooks see an empty answer", ev.Name))
	}
	return warnings
}

// printDecision is a decision for a person.
func printDecision(w io.Writer, d gate.Decision) error {
	var b strings.Builder
	fmt.Fprintf(&b, "decision: %s", d.Outcome)
	if d.Forced {
		b.WriteString(" (forced)")
	}
	if d.Degraded {
		b.WriteString(" (degraded)")
	}
	b.WriteString("\n")
	for _, f := range []struct{ name, text string }{{"reason", d.Reason}, {"context", d.AdditionalContext}} {
		if f.text != "" {
			fmt.Fprintf(&b, "%s: %s\n", f.name, strings.ReplaceAll(f.text, "\n", "\n  "))
		}
	}
	if len(d.Hooks) == 0 {
		b.WriteString("  no hook is about this event: check event, matcher and agent_name\n")
	}
	for _, v := range d.Hooks {
		fmt.Fprintf(&b, "  %s (%s): %s, %d ms", v.Name, v.Type, v.Outcome, v.DurationMS)
		if v.Shadow {
			b.WriteString(" (shadow)")
		}
		if v.Failure != nil {
			fmt.Fprintf(&b, ": %s", v.Failure)
		}
		for _, n := range v.Notes {
			fmt.Fprintf(&b, " [%s]", n)
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// noStore is the store of a single decision that counts nothing.
type noStore struct{}

func (noStore) Counts(context.Context, gate.LedgerKey) (gate.Counts, gate.Erasure, error) {
	return gate.Counts{}, gate.NeverErased, nil
}

func (noStore) Commit(_ context.Context, c gate.Commit) error {
	c.Settle(c.Seen)
	return nil
}

func (noStore) SetActive(context.Context, string, string, bool, gate.Actor) error { return nil }

func (noStore) Active(context.Context, string) (map[string]bool, error) { return nil, nil }

func (noStore) SetOverride(context.Context, gate.Override, gate.Actor) error { return nil }

func (noStore) Override(_ context.Context, session string) (gate.Override, error) {
	return gate.Override{}, gate.NoOverride(session)
}

func (noStore) RemoveOverride(context.Context, string, gate.Actor) error { return nil }
