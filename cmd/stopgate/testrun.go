package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/internal/scratch"
	"stopgate/prompthooks/recording"
	"stopgate/transcripts"
)

// caseResult is what came of a case.
type caseResult struct {
	began, ended time.Time
	failures     []caseFailure
	decisions    []gate.Decision   // one for each event that was decided
	held         []map[hookKey]int // of each of these: which of a rule hook's rules held, by hook; see heldRules
}

// caseFailure is one thing that is not as it must be.
type caseFailure struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
}

func (r *caseResult) failf(at config.Place, format string, args ...any) {
	r.failures = append(r.failures, caseFailure{at.Line, fmt.Sprintf(format, args...)})
}

func (r *caseResult) took() time.Duration { return r.ended.Sub(r.began) }

func (s *suite) failed() bool {
	return slices.ContainsFunc(s.cases, func(c *testCase) bool { return len(c.result.failures) > 0 })
}

// tester runs cases by everything that a server decides with, but for the store,
// models and the network.
type tester struct {
	app    *app
	cfg    config.Server
	getenv func(string) string
	dir    *scratch.Dir
	record bool

	mu         sync.Mutex
	numbered   int // directories of cases
	recordings map[string]*recording.Recording
}

func (c testCommand) tester(p process) (*tester, error) {
	cfg, err := loadConfig(p, c.Config, overrides{sandbox: c.Sandbox, offline: true})
	if err != nil {
		return nil, err
	}
	cfg.Transcripts.Roots = []string{"/"} // whatever file the person at the command line names, they may read
	dir, err := scratch.Make("")
	if err != nil {
		return nil, err
	}
	cfg.Sandbox.Workspace, cfg.Sandbox.WorkspaceRoots = config.WorkspaceReadWrite, []string{dir.Path()}
	commands := commandOptions(cfg, p.getenv)
	commands.AsRoot = true // or a gate that is root would lay out directories that hooks cannot write
	app, err := buildOffline(p.ctx, cfg, commands, p.getenv)
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	return &tester{app: app, cfg: cfg, getenv: p.getenv, dir: dir, record: c.Record, recordings: map[string]*recording.Recording{}}, nil
}

func (t *tester) close() {
	for _, r := range t.recordings {
		_ = r.Close() // every answer is in a file of its own, closed
	}
	_ = t.app.close()
	_ = t.dir.Remove() // a Sweep takes what is left
}

// recorded is why an answer could not be kept.
func (t *tester) recorded() error {
	var errs []error
	for _, r := range t.recordings {
		errs = append(errs, r.Err())
	}
	return errors.Join(errs...)
}

// run runs every case, several at once, and yields each suite when all of its
// cases are done, in order. When ctx ends it yields no more.
func (t *tester) run(ctx context.Context, suites []*suite) iter.Seq[*suite] {
	return func(yield func(*suite) bool) {
		type job struct {
			of       *suite
			testCase *testCase
			left     *sync.WaitGroup
		}
		jobs, done := make(chan job), make([]sync.WaitGroup, len(suites))
		for i, s := range suites {
			done[i].Add(len(s.cases))
		}
		var workers sync.WaitGroup
		defer workers.Wait()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		for range runtime.GOMAXPROCS(0) {
			workers.Go(func() {
				for j := range jobs {
					if ctx.Err() == nil {
						t.play(ctx, j.of, j.testCase)
					}
					j.left.Done()
				}
			})
		}
		workers.Go(func() {
			defer close(jobs)
			for i, s := range suites {
				for _, c := range s.cases {
					jobs <- job{s, c, &done[i]}
				}
			}
		})
		for i, s := range suites {
			if done[i].Wait(); ctx.Err() != nil || !yield(s) {
				return
			}
		}
	}
}

// play runs one case in a directory of its own.
func (t *tester) play(ctx context.Context, s *suite, c *testCase) {
	r := &c.result
	r.began = time.Now()
	defer func() { r.ended = time.Now() }()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	t.mu.Lock()
	t.numbered++
	dir := filepath.Join(t.dir.Path(), strconv.Itoa(t.numbered))
	t.mu.Unlock()
	stage, err := t.stage(s, c, dir)
	if err != nil {
		r.failf(c.Place, "the case could not be set up: %s", err)
		return
	}
	defer stage.close()
	for i, e := range c.Events {
		ev := c.events[i]
		if stage.work != "" {
			ev.Cwd = stage.work
		}
		d, err := stage.decide(ctx, ev, i)
		switch {
		case ctx.Err() != nil:
			r.failf(c.Place, "the case took longer than %s", c.Timeout)
			return
		case err != nil:
			r.failf(e.Place, "there is no decision: %s", whole(err))
			return
		}
		r.decisions, r.held = append(r.decisions, d), append(r.held, stage.rules.take())
		stage.check(r, e, &ev, d)
	}
	checkCounts(r, c.TestCase)
	stage.checkFiles(r, c.TestCase)
}

// stage is where one case is played.
type stage struct {
	tester *tester
	suite  *suite
	played *testCase
	dir    string
	work   string // the events' working directory; empty: they name their own
	gate   gate.Gate
	talks  *transcripts.Store
	judges *scriptedJudges
	world  *scriptedWorld
	rules  heldRules
}

// stage lays out a case's directory. The gate is the real one; its ledger is a
// map, since nothing has to survive.
func (t *tester) stage(s *suite, c *testCase, dir string) (_ *stage, err error) {
	st := &stage{tester: t, suite: s, played: c, dir: dir}
	defer func() {
		if err != nil {
			st.close()
		}
	}()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if c.Files != nil {
		if st.work, err = layOut(dir, c.Files); err != nil {
			return nil, err
		}
	}
	st.talks, err = transcripts.Open(transcripts.Options{Dir: filepath.Join(dir, "transcripts"), Roots: t.cfg.Transcripts.Roots,
		MaxBytes: t.cfg.Transcripts.MaxSize, MaxMessageBytes: int(t.cfg.Transcripts.MaxLine)})
	if err != nil {
		return nil, err
	}
	st.judges = newScriptedJudges(t.app.judging)
	if st.world, err = newScriptedWorld(s.file.AllowHosts, withoutOwnKeys(t.cfg, t.getenv)); err != nil {
		return nil, err
	}
	with := *t.app
	with.transcripts = st.talks
	st.gate = *t.app.gate
	st.gate.Store, st.gate.Transcripts, st.gate.FindAnswer = newCaseLedger(), st.talks, with.findAnswer
	st.gate.Evaluators = map[gate.HookType]gate.Evaluator{gate.PromptHook: st.judges, gate.CommandHook: t.app.runner,
		gate.HTTPHook: st.world.caller, gate.RuleHook: &st.rules}
	return st, nil
}

func (st *stage) close() {
	if st.world != nil {
		st.world.close()
	}
	if st.talks != nil {
		_ = st.talks.Close()
	}
	_ = os.RemoveAll(st.dir) // the tester's own directory goes last, whatever lies in it
}

// decide asks the gate as a server does: hosts are answered also where the gate
// itself fails.
func (st *stage) decide(ctx context.Context, ev gate.Event, i int) (gate.Decision, error) {
	script, err := st.tester.scriptOf(st.suite, st.played, i)
	if err != nil {
		return gate.Decision{}, err
	}
	st.judges.play(script)
	e := st.played.Events[i]
	st.world.play(e.HTTP)
	g := st.gate
	if e.Recording.Name != "" {
		g.Transcripts = constantPaths{st.talks}
	}
	opt := gate.Options{Specs: st.suite.activeSpecs(e.Active)}
	if ev.Protocol != gate.Native {
		return g.DecideForHost(ctx, ev, opt)
	}
	return g.Decide(ctx, ev, opt)
}

// layOut writes a working directory.
func layOut(dir string, files map[string]string) (string, error) {
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		return "", err
	}
	defer root.Close()
	for name, text := range files {
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return "", err
		}
		if err := root.WriteFile(name, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return work, nil
}

// maxLeft is how much of a file that a hook has written is looked at, in bytes.
const maxLeft = 1 << 20

// readLeft is what a hook has left. Hooks are hostile: no link leads out of the
// directory, and no pipe is waited for.
func readLeft(root *os.Root, name string) (string, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if about, err := f.Stat(); err != nil || !about.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxLeft+1))
	if err == nil && len(data) > maxLeft {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxLeft)
	}
	return string(data), err
}

// caseLedger holds the counts of one case.
type caseLedger struct {
	noStore
	mu     sync.Mutex
	counts map[gate.LedgerKey]gate.Counts
}

func newCaseLedger() *caseLedger { return &caseLedger{counts: map[gate.LedgerKey]gate.Counts{}} }

// Counts implements [gate.Ledger].
func (l *caseLedger) Counts(_ context.Context, key gate.LedgerKey) (gate.Counts, gate.Erasure, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[key], gate.NeverErased, nil
}

// Commit implements [gate.Ledger].
func (l *caseLedger) Commit(_ context.Context, c gate.Commit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Key.Session == "" {
		c.Settle(c.Seen)
		return nil
	}
	now := l.counts[c.Key]
	if now != c.Seen && c.Stale != nil && c.Stale(now) {
		return gate.ErrStale
	}
	l.counts[c.Key], _ = c.Settle(now)
	return nil
}
