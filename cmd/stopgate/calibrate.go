package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"stopgate/calibrate"
	"stopgate/config"
	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/recording"
)

type calibrateCommand struct {
	Set      string   `required:"" placeholder:"FILE" help:"Labelled runs, one {id, label, messages} a line; label is pass or fail."`
	Files    []string `short:"f" name:"file" required:"" sep:"none" help:"Spec file, or a directory of them; may be given again."`
	Hook     string   `placeholder:"NAME" help:"The Stop prompt hook to measure; without it all of the files together."`
	Model    string   `placeholder:"NAME" help:"Ask this model instead of the ones that the hooks name."`
	Context  string   `placeholder:"FILE" help:"Text put before every conversation as a message of the system: the agent's policy, say."`
	Limit    int      `placeholder:"N" help:"Only the first N runs of the set."`
	Repeat   int      `default:"1" placeholder:"K" help:"Judge every run K times."`
	Parallel int      `default:"4" placeholder:"P" help:"Runs judged at once."`
	SkipBad  bool     `help:"Leave out lines that are no run, and say which."`
	Record   string   `placeholder:"DIR" xor:"recording" help:"Keep every answer of the model in this new directory."`
	Replay   string   `placeholder:"DIR" xor:"recording" help:"Answer from such a directory, without a model or its key."`
	Config   string   `placeholder:"FILE" help:"Server file, for models and limits."`
	JSON     bool     `help:"Print every number and every run as JSON."`
}

// Help is the detail of `stopgate calibrate --help`.
func (calibrateCommand) Help() string {
	return `Puts every run of a labelled set to the Stop prompt hooks of the files, as stopgate eval would, and says how often they were right: fail is an answer that the gate should reject. The last message of the assistant is the final answer; messages after it are left out, save the results of its calls. What the numbers mean: docs/judging.md.

Asks the model for every run and repeat: try --limit first. Interrupted, it prints the numbers of what was judged so far.

Exit codes: 0 measured, 1 spec with errors, 64 usage, 65 unreadable input, 69 no model, or no verdict of any, 70 internal or interrupted.

Example:
  stopgate calibrate --set runs.jsonl -f examples/completeness.yaml --repeat 3 --record answers/`
}

// Bounds of the flags.
const (
	maxRepeat   = 100
	maxParallel = 64
)

// Validate is called by kong.
func (c calibrateCommand) Validate() error {
	switch {
	case c.Limit < 0:
		return errors.New("--limit must not be negative")
	case c.Repeat < 1 || c.Repeat > maxRepeat:
		return fmt.Errorf("--repeat must be 1 to %d", maxRepeat)
	case c.Parallel < 1 || c.Parallel > maxParallel:
		return fmt.Errorf("--parallel must be 1 to %d", maxParallel)
	}
	return nil
}

// Run measures, and prints what came of it.
func (c calibrateCommand) Run(p process) error {
	files, err := readSpecFiles(c.Files)
	if err != nil {
		return err
	}
	specs, err := goodSpecs(p, files)
	if err != nil {
		return err
	}
	hooks, err := stopPrompts(specs, c.Hook, c.Model)
	if err != nil {
		return exit{exitInput, err}
	}
	cfg, err := loadConfig(p, c.Config, overrides{sandbox: string(config.SandboxOff), offline: true, unasked: c.Replay != ""})
	if err != nil {
		return err
	}
	app, err := buildOffline(p.ctx, cfg, commandOptions(cfg, p.getenv), p.getenv)
	if err != nil {
		return err
	}
	defer app.close()
	m := &measurement{command: c, app: app, hooks: hooks}
	if err := m.open(p, cfg); err != nil {
		return err
	}
	defer m.close()
	trials, err := m.run(p)
	if err != nil {
		return err
	}
	if err := m.print(p, trials); err != nil {
		return err
	}
	return judged(trials)
}

// judged reports that there is nothing to measure where no trial has a verdict,
// and why the first has none.
func judged(trials []calibrate.Trial) error {
	if len(trials) == 0 || slices.ContainsFunc(trials, func(t calibrate.Trial) bool { return t.Failure == nil }) {
		return nil
	}
	return exit{exitUnreachable, fmt.Errorf("no run was judged, so nothing was measured: %w", trials[0].Failure)}
}

// stopHooks are the hooks that are measured.
type stopHooks struct {
	agent string
	specs []*gate.Spec
	hooks []*gate.Hook
}

// stopPrompts keeps of specs the prompt hooks on Stop, or the one of that name. Hooks of two agents are never asked about one answer, so there must
// be one agent at most.
func stopPrompts(specs []*gate.Spec, name, model string) (stopHooks, error) {
	h := stopHooks{agent: gate.DefaultAgent}
	var agents, known []string
	for _, spec := range specs {
		s := *spec
		s.Hooks = slices.DeleteFunc(slices.Clone(s.Hooks), func(k gate.Hook) bool { return k.Event != gate.Stop || k.Type != gate.PromptHook })
		for i := range s.Hooks {
			known = append(known, fmt.Sprintf("%q", s.Hooks[i].Name))
		}
		s.Hooks = slices.DeleteFunc(s.Hooks, func(k gate.Hook) bool { return name != "" && k.Name != name })
		if len(s.Hooks) == 0 {
			continue
		}
		if s.Kind == gate.AgentSpec {
			h.agent = s.Name
			agents = append(agents, fmt.Sprintf("%q", s.Name))
		}
		for i := range s.Hooks {
			s.Hooks[i].Shadow = false // it is measured by what it refuses
			if model != "" {
				s.Hooks[i].Model, s.Hooks[i].Models = model, nil
			}
			h.hooks = append(h.hooks, &s.Hooks[i])
		}
		h.specs = append(h.specs, &s)
	}
	switch {
	case len(known) == 0:
		return h, errors.New("the files hold no prompt hook on Stop")
	case len(h.hooks) == 0:
		return h, fmt.Errorf("no prompt hook on Stop is called %q; there are: %s", name, strings.Join(known, ", "))
	case len(agents) > 1:
		return h, fmt.Errorf("the files have Stop prompt hooks of several agents (%s): give one agent's file, or name one hook with --hook", strings.Join(agents, ", "))
	}
	return h, nil
}

// measurement is one use of the command.
type measurement struct {
	command   calibrateCommand
	app       *app
	hooks     stopHooks
	set       *labelledSet
	recording *recording.Recording // nil: neither kept nor replayed

	mu      sync.Mutex
	drifted int // replayed requests that were not quite the recorded ones
}

// open opens the set, the recording and, unless it is replayed, looks for the
// models.
func (m *measurement) open(p process, cfg config.Server) error {
	c := m.command
	if c.Replay == "" {
		for _, name := range m.modelNames() {
			if _, _, err := m.app.models.find(name); err != nil {
				return exit{exitUnreachable, err}
			}
		}
	}
	system, err := readSystem(c.Context)
	if err != nil {
		return exit{exitInput, fmt.Errorf("--context: %w", err)}
	}
	m.set, err = openSet(c.Set, system, c.Limit, c.SkipBad, func(run calibrate.Run) error {
		ev := stopOf(run, m.hooks.agent)
		t, err := m.app.transcripts.Attach(p.ctx, &ev)
		if err != nil {
			return err
		}
		return t.Close()
	})
	if p.ctx.Err() != nil {
		return exit{exitInternal, errors.New("interrupted")}
	}
	if err != nil {
		return exit{exitInput, err}
	}
	switch {
	case c.Record != "":
		m.recording, err = recording.Create(c.Record, secrets(cfg, p.getenv))
	case c.Replay != "":
		m.recording, err = recording.Open(c.Replay)
	}
	if err != nil {
		m.close()
		return exit{exitInput, err}
	}
	return nil
}

func (m *measurement) close() {
	_ = m.set.file.Close() // only read
	if m.recording != nil {
		_ = m.recording.Close() // every answer is in a file of its own, closed
	}
}

// modelNames are whom the hooks ask.
func (m *measurement) modelNames() []string {
	names := map[string]bool{}
	for _, h := range m.hooks.hooks {
		for i := range max(h.Votes, 1) {
			names[h.Voter(i)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// secrets are what no recording may hold.
func secrets(cfg config.Server, getenv func(string) string) []string {
	all := []string{getenv("STOPGATE_API_KEY")}
	for _, p := range cfg.Models.Providers {
		all = append(all, string(p.APIKey))
	}
	return all
}

// task is one run to be judged for the n-th time.
type task struct {
	place  runPlace
	repeat int
}

// run judges every run as often as is asked for, all of them once before any of
// them twice, so that what is there when it is interrupted is of the whole set.
// When it is interrupted the trials so far are the result.
func (m *measurement) run(p process) ([]calibrate.Trial, error) {
	ctx, stop := context.WithCancelCause(p.ctx)
	defer stop(nil)
	tasks := make(chan task)
	go func() {
		defer close(tasks)
		for repeat := range m.command.Repeat {
			for _, place := range m.set.runs {
				select {
				case tasks <- task{place, repeat + 1}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	shown := newProgress(p.stderr, len(m.set.runs)*m.command.Repeat)
	var trials []calibrate.Trial
	var workers sync.WaitGroup
	for range m.command.Parallel {
		workers.Go(func() {
			for t := range tasks {
				trial, err := m.judge(ctx, t)
				if ctx.Err() != nil {
					return // it was cut short: what came of it is no verdict
				}
				if err != nil {
					stop(err)
					return
				}
				m.mu.Lock()
				trials = append(trials, trial)
				m.mu.Unlock()
				shown.step()
			}
		})
	}
	workers.Wait()
	shown.end()
	if p.ctx.Err() == nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	slices.SortFunc(trials, func(a, b calibrate.Trial) int {
		return cmp.Or(strings.Compare(a.Run, b.Run), cmp.Compare(a.Repeat, b.Repeat))
	})
	return trials, nil
}

// judge puts a run to the hooks once. Each time has a judge of its own: nothing
// that one remembers, an answer or what was spent today, reaches another.
func (m *measurement) judge(ctx context.Context, t task) (calibrate.Trial, error) {
	run, err := m.set.run(t.place)
	if err != nil {
		return calibrate.Trial{}, exit{exitInput, err}
	}
	options := m.app.judging
	options.DailyTokens = 0
	var take *recording.Take
	if m.recording != nil {
		take = m.recording.Take(takeName(run, t.repeat))
		options.Model = take.Record(m.app.models.find)
		if m.command.Replay != "" {
			options.Model = take.Replay()
		}
	}
	judge, err := prompthooks.New(options)
	if err != nil {
		return calibrate.Trial{}, err
	}
	g := *m.app.gate
	g.Transcripts, g.Evaluators = constantPaths{g.Transcripts}, map[gate.HookType]gate.Evaluator{gate.PromptHook: judge}
	began := time.Now()
	d, err := g.Decide(ctx, stopOf(run, m.hooks.agent), gate.Options{Specs: m.hooks.specs, AllActive: true})
	if err != nil {
		return calibrate.Trial{}, exit{exitInput, fmt.Errorf("%s:%d: %w", m.command.Set, t.place.line, err)}
	}
	trial := calibrate.TrialOf(run, t.repeat, d)
	if m.command.Replay == "" { // else it is this machine that was measured
		trial.MS = float64(time.Since(began).Microseconds()) / 1000
	}
	return trial, m.recorded(trial, take)
}

// takeName is what the answers to one judgement are kept under: whose words were
// judged, and the how-many-th time.
func takeName(run calibrate.Run, repeat int) string {
	return fmt.Sprintf("%q, repeat %d, conversation %.8x", run.ID, repeat, sha256.Sum256(run.Messages))
}

// recorded is an error where an answer could not be kept, or is missing in what
// is replayed: such a trial tells of the recording, not of the gate.
func (m *measurement) recorded(trial calibrate.Trial, take *recording.Take) error {
	if take == nil {
		return nil
	}
	if err := m.recording.Err(); err != nil {
		return exit{exitInternal, err}
	}
	if take.Missing() > 0 && trial.Failure != nil {
		return exit{exitInput, fmt.Errorf("run %q: %s", trial.Run, trial.Failure.Message)}
	}
	if take.Drifted() > 0 {
		m.mu.Lock()
		m.drifted += take.Drifted()
		m.mu.Unlock()
	}
	return nil
}

// print writes the result; one that is not of every run is an error as well.
func (m *measurement) print(p process, trials []calibrate.Trial) error {
	c := calibration{Set: m.command.Set, Repeat: m.command.Repeat, Planned: len(m.set.runs) * m.command.Repeat,
		Lines: m.set.bad, Skipped: m.set.skipped, Replayed: m.command.Replay != "", Drifted: m.drifted, Trials: trials,
		Report: calibrate.Measure(trials)}
	for _, h := range m.hooks.hooks {
		c.Hooks = append(c.Hooks, h.Name)
	}
	c.Partial = len(trials) < c.Planned
	var err error
	if m.command.JSON {
		err = printJSON(p.stdout, c)
	} else {
		err = c.print(p.stdout)
	}
	if err == nil && c.Partial {
		err = exit{exitInternal, fmt.Errorf("interrupted: the numbers are of %d trials of %d", len(trials), c.Planned)}
	}
	return err
}
