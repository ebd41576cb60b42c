package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"stopgate/commandhooks"
	"stopgate/config"
	"stopgate/gate"
	"stopgate/httphooks"
	"stopgate/internal/scratch"
	"stopgate/prompthooks"
	"stopgate/redact"
	"stopgate/rulehooks"
	"stopgate/server"
	"stopgate/store/postgres"
	"stopgate/store/sqlite"
	"stopgate/transcripts"
	"stopgate/wire/contracts"
)

// overrides are flags that win over the server file.
type overrides struct {
	listen, data, agents, sandbox string
	unasked                       bool // no model is going to be asked, so that none needs its key
	offline                       bool // nothing is kept, so that no data directory needs to be known
}

// loadConfig is defaults, then the server file, then flags, checked whole. What
// is wrong with the flags alone is a matter of usage.
func loadConfig(p process, file string, o overrides) (config.Server, error) {
	load := config.LoadServer
	if o.unasked {
		load = config.LoadServerUnasked
	}
	cfg, err := load(file, p.getenv, o.apply)
	if err == nil {
		return cfg, nil
	}
	if _, without := load(file, p.getenv, overrides{data: o.data, offline: o.offline}.apply); without == nil {
		return config.Server{}, exit{exitUsage, err}
	}
	return config.Server{}, exit{exitInput, err}
}

func (o overrides) apply(s *config.Server) {
	s.Listen, s.Data, s.Agents = cmp.Or(o.listen, s.Listen), cmp.Or(o.data, s.Data), cmp.Or(o.agents, s.Agents)
	s.Sandbox.Mode = cmp.Or(config.SandboxMode(o.sandbox), s.Sandbox.Mode)
	if o.offline && s.Data == "" {
		s.Data = os.DevNull // in which no project lies
	}
}

// app is stopgate wired: everything that decides, without a listener.
type app struct {
	gate        *gate.Gate
	policies    *gate.Policies
	store       namedStore       // nil offline
	redactor    *redact.Redactor // nil offline, where nothing is kept
	transcripts *transcripts.Store
	runner      *commandhooks.Runner
	caller      *httphooks.Caller
	models      *models
	judge       *prompthooks.Judge
	judging     prompthooks.Options // what prompt hooks are asked with
	closers     []func() error
}

// close ends what was opened, last first.
func (a *app) close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i]())
	}
	return errors.Join(errs...)
}

// sharing says whether other processes may use the data directory too.
type sharing bool

const (
	alone  sharing = false // it is taken, as only a server does
	shared sharing = true
)

// namedStore is a store that says which one it is, without a secret.
type namedStore interface {
	gate.Store
	gate.Outbox
	fmt.Stringer
}

// openStore opens the database of the server file, or SQLite in the data
// directory. conversation says whether a session's conversation is kept; nil: none
// is.
func openStore(ctx context.Context, cfg config.Server, data sharing, conversation func(context.Context, string) (bool, error)) (namedStore, error) {
	if cfg.Database == "" {
		return sqlite.Open(ctx, sqlite.Options{Dir: cfg.Data, Durability: sqlite.Durability(cfg.Durability),
			Lock: data == alone, Retention: cfg.Retention.Records, MaxBytes: cfg.Retention.RecordsMaxSize, Conversation: conversation, Now: time.Now})
	}
	store, err := postgres.Open(ctx, postgres.Options{URL: string(cfg.Database), Retention: cfg.Retention.Records, Conversation: conversation,
		MaxBytes: cfg.Retention.RecordsMaxSize, MaxTextBytes: cfg.Retention.TranscriptsMaxSize})
	return store, databaseError(err)
}

// shelf is the transcripts for a store that is opened before they are.
type shelf struct {
	opened atomic.Pointer[transcripts.Store]
}

// has reports whether a session's conversation is kept.
func (s *shelf) has(ctx context.Context, session string) (bool, error) {
	t := s.opened.Load()
	if t == nil {
		return false, errors.New("the transcripts are not open yet")
	}
	return t.Has(ctx, session)
}

// buildOn wires an app on the store and the data directory.
func buildOn(ctx context.Context, cfg config.Server, data sharing, getenv func(string) string) (*app, error) {
	redactor, err := redactorOf(cfg)
	if err != nil {
		return nil, err
	}
	var conversations shelf
	store, err := openStore(ctx, cfg, data, conversations.has)
	if err != nil {
		return nil, err
	}
	texts, _ := store.(gate.SharedTexts) // nil: the data directory has them
	if texts != nil || data == shared {
		cfg.Retention.TranscriptsMaxSize = 0 // the store's matter, or the server's
	}
	commands := commandOptions(cfg, getenv)
	if data == alone { // others ask once and end
		commands.Pool, commands.ForkPython = cfg.Sandbox.Pool, cfg.Sandbox.Python == config.PythonForked
	}
	a, err := build(ctx, cfg, filepath.Join(cfg.Data, "transcripts"), texts, store.Erasure, commands, getenv)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	conversations.opened.Store(a.transcripts)
	a.redactor = redactor
	a.store = redactor.Store(store)
	a.gate.Store = a.store
	a.gate.Beginnings = &gate.Beginnings{Find: commands.Workspace.Projects, Stored: a.store}
	if cfg.Redaction.ModelInput {
		a.gate.Evaluators[gate.PromptHook] = redactor.Evaluator(a.gate.Evaluators[gate.PromptHook])
	}
	a.closers = append(a.closers, store.Close)
	return a, nil
}

// buildOffline wires an app for single decisions: it counts nothing and leaves
// nothing behind.
func buildOffline(ctx context.Context, cfg config.Server, commands commandhooks.Options, getenv func(string) string) (*app, error) {
	dir, err := scratch.Make("")
	if err != nil {
		return nil, err
	}
	commands.Workspace.Hidden = append(slices.Clone(commands.Workspace.Hidden), dir.Path())
	a, err := build(ctx, cfg, dir.Path(), nil, nil, commands, getenv)
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	a.gate.Store = noStore{}
	// The first to be opened is the last to be closed.
	a.closers = append([]func() error{dir.Remove}, a.closers...)
	return a, nil
}

// build wires everything but the store. texts has the transcripts of all
// replicas; nil: there is but one. erasure is the store's; nil: nothing is erased.
// getenv gives the variables that headers of
// http hooks may name.
func build(ctx context.Context, cfg config.Server, transcriptDir string, texts gate.SharedTexts,
	erasure func(context.Context, string) (gate.Erasure, error), commands commandhooks.Options, getenv func(string) string) (*app, error) {
	a := &app{policies: &gate.Policies{}}
	var errs []error
	masks, err := masksOf(cfg)
	errs = append(errs, err)
	a.transcripts, err = transcripts.Open(transcripts.Options{Dir: transcriptDir, Shared: texts, Erasure: erasure, Masks: masks, Roots: cfg.Transcripts.Roots,
		MaxBytes: cfg.Transcripts.MaxSize, MaxMessageBytes: int(cfg.Transcripts.MaxLine), MaxTotal: cfg.Retention.TranscriptsMaxSize})
	errs = append(errs, err)
	a.runner, err = commandhooks.New(ctx, commands)
	errs = append(errs, err)
	if a.runner != nil {
		a.closers = append(a.closers, a.runner.Close)
	}
	a.models, err = openModels(ctx, cfg.Models, cfg.Limits.Evaluations)
	errs = append(errs, err)
	a.judging = prompthooks.Options{Model: a.models.find, Fallback: a.models.inPlaceOf, Price: a.models.price, MaxRounds: cfg.Limits.JudgeRounds,
		MaxTokens: cfg.Limits.JudgeTokens, DailyTokens: cfg.Limits.AgentDailyTokens, Now: time.Now}
	a.judge, err = prompthooks.New(a.judging)
	errs = append(errs, err)
	caller, err := newCaller(cfg, getenv)
	errs = append(errs, err)
	if a.caller = caller; caller != nil {
		a.closers = append(a.closers, caller.Close)
	}
	if a.transcripts != nil {
		a.closers = append(a.closers, a.transcripts.Close)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, a.close())
	}
	a.gate = &gate.Gate{Policies: a.policies, Transcripts: a.transcripts, FindAnswer: a.findAnswer, OnGateError: cfg.OnGateError,
		Parallel: cfg.Limits.ParallelHooks, Now: time.Now, NewID: newID, Untried: contracts.Remarks(),
		Evaluators: map[gate.HookType]gate.Evaluator{gate.PromptHook: a.judge, gate.CommandHook: a.runner, gate.HTTPHook: caller,
			gate.RuleHook: gate.EvaluatorFunc(rulehooks.Evaluate)}}
	return a, nil
}

// newID is an evaluation id, ordered by time.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// commandOptions are how command hooks run. Interpreters that the system's own
// directories lack are looked for in PATH.
func commandOptions(cfg config.Server, getenv func(string) string) commandhooks.Options {
	s := cfg.Sandbox
	self, _ := os.Executable() // without it hosts without jq stay without jq, and Status says so
	return commandhooks.Options{
		Mode: commandhooks.Mode(s.Mode), Network: s.Network, Parallel: cfg.Limits.CommandHooks, Self: self, Path: getenv("PATH"),
		HostEnv:   hostEnvironment(cfg, getenv, os.Environ()),
		Workspace: commandhooks.Workspace{Access: commandhooks.Access(s.Workspace), Roots: s.WorkspaceRoots, Hidden: []string{cfg.Data}},
		Limits: commandhooks.Limits{Memory: s.Limits.Memory, Processes: s.Limits.Processes, FileSize: s.Limits.FileSize,
			OpenFiles: s.Limits.OpenFiles, CPU: int(s.Limits.CPU.Seconds()), TempSize: s.Limits.FileSize},
	}
}

// ready is the state of what evaluations need, for /readyz and the start-up
// lines.
func (a *app) ready(context.Context) map[string]server.Check {
	status := a.runner.Status()
	checks := map[string]server.Check{
		"sandbox": {OK: status.Working, Reason: status.Reason},
		"models":  a.models.check(),
	}
	if status.Working {
		checks["sandbox"] = server.Check{OK: true, Reason: "mode " + string(status.Mode)}
	}
	if status.Ahead != "" { // hooks run all the same, and later
		checks["sandbox.pool"] = server.Check{Reason: status.Ahead}
	}
	return checks
}

// redactorOf is what takes secrets out of what is stored and shown.
func redactorOf(cfg config.Server) (*redact.Redactor, error) {
	own := make([]redact.Pattern, len(cfg.Redaction.Patterns))
	for i, p := range cfg.Redaction.Patterns {
		own[i] = redact.Pattern(p)
	}
	r, err := redact.New(cfg.Redaction.BuiltIn, own, knownSecrets(cfg))
	if err != nil {
		return nil, exit{exitInput, err}
	}
	return r, nil
}

// knownSecrets are those of the server file and of the files that it names. One that
// cannot be read is no secret yet: who needs it says so.
func knownSecrets(cfg config.Server) []string {
	all := cfg.Secrets()
	for _, file := range cfg.SecretFiles() {
		if text, err := readBounded(file); err == nil {
			all = append(all, config.Credentials(strings.TrimSpace(string(text))))
		}
	}
	return all
}

// masksOf hide secrets in conversations; nil where the original is kept.
func masksOf(cfg config.Server) (transcripts.Masks, error) {
	if !cfg.Redaction.Conversations {
		return nil, nil
	}
	redactor, err := redactorOf(cfg)
	if err != nil {
		return nil, err
	}
	return redactor.Masks(), nil
}

// uploads shows transcripts to the server in its own words, and redacted.
type uploads struct {
	*transcripts.Store
	redactor *redact.Redactor
}

func (u uploads) Replace(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader) (bytes, lines int64, err error) {
	size, err := u.Store.Replace(ctx, session, seen, contentType, r)
	return size.Bytes, size.Lines, err
}

func (u uploads) Append(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader) (bytes, lines int64, err error) {
	size, err := u.Store.Append(ctx, session, seen, contentType, r)
	return size.Bytes, size.Lines, err
}

func (u uploads) AppendFile(ctx context.Context, session string, seen gate.Erasure, p server.FilePart, r io.Reader) (bytes, lines int64, err error) {
	size, err := u.Store.AppendFile(ctx, session, seen, transcripts.Part(p), r)
	return size.Bytes, size.Lines, err
}

func (u uploads) Read(ctx context.Context, session string) (text io.ReadCloser, bytes, lines int64, err error) {
	text, size, err := u.Store.Read(ctx, session)
	if err != nil {
		return nil, 0, 0, err
	}
	return redacted{u.redactor.Reader(text), text}, size.Bytes, size.Lines, nil
}

// redacted is a text on its way out.
type redacted struct {
	io.Reader
	io.Closer
}

// ReadFor opens what a record's hooks could read; see [server.Transcripts]. Only
// what was uploaded is read: a record's payload may name any file.
func (u uploads) ReadFor(ctx context.Context, r gate.Record, original bool) (io.ReadCloser, bool, error) {
	ev, err := recordedEvent(r)
	if err != nil {
		return nil, false, gate.Errorf(gate.CodeNotFound, "the conversation of this evaluation is not known: %w", err)
	}
	if ev.TranscriptSession == "" && ev.TranscriptPath != "" {
		ev.TranscriptMark = nil // of that file
	}
	text, asText, err := u.ReadMarked(ctx, &ev)
	if err != nil || original {
		return text, asText, err
	}
	return redacted{u.redactor.Reader(text), text}, asText, nil
}

// WriteMessages is [transcripts.WriteMessages].
func (uploads) WriteMessages(w io.Writer, text io.Reader) error {
	return transcripts.WriteMessages(w, text)
}

// absolute is the path from the root, as a hook's context names it.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
