package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stopgate/config"
	"stopgate/gate"
)

type replayCommand struct {
	Files     []string `short:"f" name:"file" xor:"draft" sep:"none" placeholder:"SPEC" help:"The draft: spec file or hooks file, or a directory of them; may be given again."`
	Shadow    []string `xor:"draft" sep:"none" placeholder:"SPEC" help:"Compare SPEC live with what is in force: the same as -f SPEC --follow."`
	Against   []string `sep:"none" placeholder:"SPEC" help:"Compare with what these say, not with what was answered then; may be given again."`
	Server    string   `xor:"source" placeholder:"URL" help:"Evaluations of this server (STOPGATE_SERVER, ${server})."`
	Data      string   `xor:"source" placeholder:"DIR" help:"Evaluations of this data directory, or with --config of that file's database."`
	From      string   `xor:"source" placeholder:"FILE" help:"Evaluations of an export, one a line."`
	Agent     string   `placeholder:"NAME" help:"Only those of this agent, whose are also the hooks of other systems."`
	Session   string   `placeholder:"ID" help:"Only those of this session."`
	Event     string   `placeholder:"EVENT" help:"Only those of this event."`
	Decision  string   `placeholder:"D" help:"Only those that were decided so: allow, block or ask."`
	Hook      string   `placeholder:"NAME" help:"Only those in which this hook took part."`
	Since     string   `placeholder:"TIME" help:"Only those since then: 2026-01-31T12:00:00Z, or so long ago: 36h, 30d."`
	Until     string   `placeholder:"TIME" help:"Only those before then."`
	Limit     int      `default:"1000" placeholder:"N" help:"At most the newest N; of an export the first N."`
	Follow    bool     `help:"Go on with every evaluation that the server makes from now on, until interrupted."`
	AllActive bool     `help:"Ask on-demand hooks in every session, not only where they were switched on."`
	Redacted  bool     `help:"Ask about payloads too out of which secrets were taken: hooks see marks in their place."`
	Blind     bool     `name:"no-workspace" help:"Ask scripts too that may look at their agent's directory, which they do not see here."`
	HTTP      bool     `name:"http" help:"Ask http hooks too: they get requests about what happened long ago."`
	Record    string   `placeholder:"DIR" xor:"recording" help:"Keep every answer of the models in this new directory."`
	Replay    string   `placeholder:"DIR" xor:"recording" help:"Answer from such a directory, without a model."`
	Parallel  int      `default:"4" placeholder:"P" help:"Evaluations replayed at once."`
	ExitCode  bool     `help:"Exit 1 if anything changes, as git diff has it, and 65 if nothing is known to and not all could be replayed."`
	JSON      bool     `help:"Print everything as JSON; with --follow one object a line."`
	Config    string   `placeholder:"FILE" help:"Server file, for models and their prices, sandbox, redact_model_input and transcripts.roots."`
	Sandbox   string   `placeholder:"MODE" help:"auto, bubblewrap, process, container or off."`
}

// Help is the detail of `stopgate replay --help`.
func (replayCommand) Help() string {
	return `Asks the hooks of a draft about evaluations that were recorded, and prints which verdicts change. Each is judged by itself, as it was asked then: with the counts of then, and as much of the conversation as there was; where that is gone it says so. The draft takes the place of everything that was in force: give every file. Nothing is counted and nothing is recorded. docs/testing-hooks.md tells more.

Models are asked, and cost money: try --limit first, keep the answers with --record. Interrupted, it prints what it has.

Exit codes: 0 replayed, 1 spec with errors, or with --exit-code something changed, 64 usage, 65 unreadable input (a line of an export too), nothing to replay, or with --exit-code something that could not be replayed while nothing changed, 69 no server, or no model where all need one, 70 internal or interrupted.

Examples:
  stopgate replay -f agents --since 30d
  stopgate replay -f agents --against agents.old --from export.ndjson --record answers
  stopgate replay --shadow agents`
}

// maxReplayed bounds what one run keeps of evaluations in memory.
const maxReplayed = 100_000

// Validate is called by kong.
func (c replayCommand) Validate() error {
	switch {
	case len(c.specs()) == 0:
		return errors.New("give the draft: -f SPEC, or --shadow SPEC")
	case c.Limit < 1 || c.Limit > maxReplayed:
		return fmt.Errorf("--limit must be 1 to %d", maxReplayed)
	case c.Parallel < 1 || c.Parallel > maxParallel:
		return fmt.Errorf("--parallel must be 1 to %d", maxParallel)
	case c.live() && (c.Data != "" || c.From != ""):
		return errors.New("--follow and --shadow need a server")
	case c.live() && (c.Since != "" || c.Until != ""):
		return errors.New("--follow and --shadow begin now and have no end: leave --since and --until out")
	}
	_, err := c.filter(time.Now())
	return err
}

// specs are the files of the draft.
func (c replayCommand) specs() []string { return slices.Concat(c.Files, c.Shadow) }

// live reports whether what the server decides from now on is replayed.
func (c replayCommand) live() bool { return c.Follow || len(c.Shadow) > 0 }

// filter is what picks the evaluations. Dry runs are nobody's work.
func (c replayCommand) filter(now time.Time) (f gate.RecordFilter, err error) {
	f = gate.RecordFilter{Agent: c.Agent, Session: c.Session, Event: gate.EventName(c.Event), Decision: gate.Outcome(c.Decision),
		Hook: c.Hook, DryRun: new(false)}
	if c.Event != "" && !f.Event.Known() {
		return f, fmt.Errorf("--event is %q, want one of %q", c.Event, gate.EventNames)
	}
	decisions := []gate.Outcome{gate.Allow, gate.Block, gate.Ask}
	if c.Decision != "" && !slices.Contains(decisions, f.Decision) {
		return f, fmt.Errorf("--decision is %q, want one of %q", c.Decision, decisions)
	}
	if f.Since, err = momentOf(c.Since, now); err != nil {
		return f, fmt.Errorf("--since %w", err)
	}
	if f.Until, err = momentOf(c.Until, now); err != nil {
		return f, fmt.Errorf("--until %w", err)
	}
	return f, nil
}

// momentOf reads a time, or how long ago it was; zero of the empty text.
func momentOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	ago, err := time.ParseDuration(text)
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("is %q, want a time as 2026-01-31T12:00:00Z, or how long ago it was, as 36h or 30d", text)
	}
	return now.Add(-ago), nil
}

// Run replays, and prints what came of it.
func (c replayCommand) Run(p process) error {
	if !c.JSON { // which has its own escapes, see printJSON
		p.stdout = visible{p.stdout}
	}
	from := p.stderr
	p.stderr = visible{p.stderr}
	now, err := c.draft(p, "the draft", c.specs())
	if err != nil {
		return err
	}
	drafts := []*draft{now}
	if len(c.Against) > 0 {
		was, err := c.draft(p, "the files of --against", c.Against)
		if err != nil {
			return err
		}
		drafts = append(drafts, was)
	}
	r, err := c.replayer(p, drafts)
	if err != nil {
		return err
	}
	defer r.close()
	p.stderr = from // whether it is a terminal decides what progress looks like
	if c.live() {
		return r.follow(p)
	}
	return r.all(p)
}

// draft is a set of hooks that evaluations are put to.
type draft struct {
	name  string // as a person is told
	specs []*gate.Spec
	hooks map[string]bool // names
}

// draft reads the files of one.
func (c replayCommand) draft(p process, name string, paths []string) (*draft, error) {
	files, err := readHookFiles("", false, paths)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f specFile) bool { return config.IsTestFile(f.path) && !gate.HasErrors(f.findings) })
	specs, err := goodSpecs(p, files)
	if err != nil {
		return nil, err
	}
	d := &draft{name: name, hooks: map[string]bool{}}
	for _, s := range specs {
		own := *s
		if own.Kind != gate.AgentSpec && own.Kind != gate.HookSpec { // which no file of another system says
			own.Name = cmp.Or(c.Agent, gate.DefaultAgent)
		}
		for i := range own.Hooks {
			d.hooks[own.Hooks[i].Name] = true
		}
		d.specs = append(d.specs, &own)
	}
	return d, nil
}

// about is the specs for an agent's events; ok is false where the draft says
// nothing of that agent. Agent-level hooks are about every agent.
func (d *draft) about(agent string) (specs []*gate.Spec, ok bool) {
	everyone := false
	for _, s := range d.specs {
		switch {
		case s.Kind != gate.HookSpec && s.Name == agent:
			return d.specs, true
		case s.Kind == gate.HookSpec:
			everyone = true
		}
	}
	return append(slices.Clone(d.specs), &gate.Spec{Kind: gate.AgentSpec, Name: agent}), everyone
}

// replayer wires what judges, and opens where the evaluations are.
func (c replayCommand) replayer(p process, drafts []*draft) (*replayer, error) {
	// Nothing is kept: of the data directory only what --data names is read.
	cfg, err := loadConfig(p, c.Config, overrides{sandbox: c.Sandbox, data: c.Data, offline: true})
	if err != nil {
		return nil, err
	}
	// Scripts see no workspace: what lies there now is not what lay there then.
	var workspaces []string
	if cfg.Sandbox.Workspace != config.WorkspaceNone {
		workspaces = cfg.Sandbox.WorkspaceRoots
	}
	cfg.Sandbox.Workspace, cfg.Sandbox.WorkspaceRoots = config.WorkspaceNone, nil
	app, err := buildOffline(p.ctx, cfg, commandOptions(cfg, p.getenv), p.getenv)
	if err != nil {
		return nil, err
	}
	r := &replayer{command: c, app: app, drafts: drafts, workspaces: workspaces}
	if err := r.open(p, cfg); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// interrupted is what a run ends with that a person has stopped.
func interrupted(ctx context.Context, done, of int) error {
	if ctx.Err() == nil {
		return nil
	}
	return exit{exitInternal, fmt.Errorf("interrupted: this is of %d evaluations of %d", done, of)}
}
