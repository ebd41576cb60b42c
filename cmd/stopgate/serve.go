package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"stopgate/access"
	"stopgate/calibrate"
	"stopgate/commandhooks"
	"stopgate/config"
	"stopgate/gate"
	"stopgate/internal/terminal"
	"stopgate/server"
	"stopgate/wire"
)

type serveCommand struct {
	Config  string `placeholder:"FILE" help:"Server file (docs/server-file.md); without one, all defaults."`
	Listen  string `placeholder:"ADDR" help:"Address to listen on (127.0.0.1:8790)."`
	Data    string `placeholder:"DIR" help:"Data directory ($XDG_STATE_HOME/stopgate)."`
	Agents  string `placeholder:"DIR" help:"Directory of specs, loaded and watched."`
	Sandbox string `placeholder:"MODE" help:"auto, bubblewrap, process, container or off."`
	Check   bool   `help:"Only check the server file and the flags, and end: no port and no store is opened."`
}

// Help is the detail of `stopgate serve --help`.
func (serveCommand) Help() string {
	return "Models come from the server file, or from GEMINI_API_KEY, ANTHROPIC_API_KEY, OPENAI_API_KEY or an Ollama on this machine. Ctrl-C finishes running evaluations; a second one does not wait.\n\n" +
		"--check prints what the server file has wrong as file:line:column: error: text, and ends with 1; with 0 it has nothing wrong, or no more than warnings. ${VARIABLES} must be set as for the server. What only a start can tell, as a port that is taken, a certificate or a model that is not there, is not looked at.\n\n" +
		"Example: stopgate serve --config stopgate.yaml --check && stopgate serve --config stopgate.yaml"
}

// Run serves until the process is told to stop.
func (c serveCommand) Run(p process) error {
	cfg, err := loadConfig(p, c.Config, overrides{listen: c.Listen, data: c.Data, agents: c.Agents, sandbox: c.Sandbox})
	if c.Check {
		return c.checked(p, cfg, err)
	}
	if err != nil {
		return err
	}
	redactor, err := redactorOf(cfg)
	if err != nil {
		return err
	}
	log := slog.New(redactor.Handler(newLog(p.stderr).Handler()))
	for _, w := range cfg.Warnings {
		log.Warn("server file has a warning", "file", c.Config, "finding", w.String())
	}
	// The port first: nothing is touched yet.
	listener, err := listenOn(p.ctx, cfg.Listen)
	if err != nil {
		return exit{exitUnreachable, listenError(cfg.Listen, err)}
	}
	defer listener.Close()
	if cfg.Telemetry.Pprof != "" {
		profiles, err := serveProfiles(cfg.Telemetry.Pprof)
		if err != nil {
			return exit{exitUnreachable, err}
		}
		defer profiles.Close()
	}
	s, app, err := newServer(p, cfg, log, listener.Addr().String())
	if err != nil {
		return err
	}
	if err := s.Load(p.ctx); err != nil {
		return errors.Join(err, app.close())
	}
	if cfg.Agents != "" {
		if err := watch(p.ctx, cfg.Agents, app.policies, log); err != nil {
			return errors.Join(exit{exitInput, err}, app.close())
		}
	}
	announce(log, app, cfg, listener.Addr().String())
	context.AfterFunc(p.ctx, func() { log.Info("stopping: running evaluations are finished first; once more stops at once") })
	err = errors.Join(s.Serve(p.ctx, listener), app.close())
	log.Info("stopped")
	return err
}

// checked prints what is wrong with the server file, where it can be read.
func (c serveCommand) checked(p process, cfg config.Server, err error) error {
	subject := cmp.Or(c.Config, "configuration")
	faults, ok := errors.AsType[*gate.Error](err)
	switch {
	case err == nil && len(cfg.Warnings) > 0:
		printFindings(visible{p.stdout}, []specFile{{path: subject, findings: cfg.Warnings}})
		return nil
	case err == nil:
		_, err := fmt.Fprintf(visible{p.stderr}, "%s: nothing is wrong\n", subject)
		return err
	case !ok || len(faults.Details) == 0:
		return err
	}
	printFindings(visible{p.stdout}, []specFile{{path: subject, findings: faults.Details}})
	return exit{code: exitFindings}
}

// newServer wires an app and the HTTP side of it.
func newServer(p process, cfg config.Server, log *slog.Logger, address string) (*server.Server, *app, error) {
	app, err := buildOn(p.ctx, cfg, alone, p.getenv)
	if err != nil {
		return nil, nil, err
	}
	loopback, err := config.IsLoopback(address)
	if err != nil {
		return nil, nil, errors.Join(err, app.close())
	}
	metrics := server.NewMetrics(app.policies)
	app.gate.Observe, app.gate.Store = metrics.Observe, metrics.Timed(app.store)
	metrics.Scripts(func() server.ScriptUse { return server.ScriptUse(app.runner.Use()) })
	login, issuer, err := openLogin(cfg.Auth, app.store)
	if err != nil {
		return nil, nil, errors.Join(exit{exitInput, err}, app.close())
	}
	secure, err := openTLS(cfg.Auth, log)
	if err != nil {
		return nil, nil, errors.Join(exit{exitInput, err}, app.close())
	}
	traces, err := app.trace(p.ctx, cfg.Telemetry, metrics)
	if err != nil {
		return nil, nil, errors.Join(exit{exitInput, err}, app.close())
	}
	s, err := server.New(server.Options{
		Gate: app.gate, Store: app.store, StoreName: app.store.String(), Transcripts: uploads{app.transcripts, app.redactor}, Metrics: metrics,
		Decode: wire.DecodeNative, ReadSpec: config.ReadSpecAs, ReadAny: config.ReadSpec, DialectOf: config.DialectOf, Ready: app.ready,
		ReadAttached: readAttached, ReadNetwork: config.ReadNetwork, HideSecrets: config.HideSecrets, Schemas: schemas(), Unserved: app.unservedIn,
		CheckName: config.CheckName, EventName: config.EventName, Unasked: app.unasked,
		Protocol: findProtocol, ProtocolNames: wire.Names(),
		Forget: app.judge.Forget, Login: login, MintKey: access.Mint, TLS: secure, Trace: traces,
		Log: log, Version: version, Loopback: loopback,
		Hosts: cfg.HTTP.Hosts, Origins: cfg.HTTP.Origins, ShutdownGrace: cfg.HTTP.ShutdownGrace,
		Limits: server.Limits{BodyBytes: cfg.Limits.EvaluateBody, SpecBytes: cfg.Limits.SpecBody,
			TranscriptBytes: cfg.Transcripts.MaxSize, InFlight: int64(cfg.Limits.Evaluations)},
	})
	if err != nil {
		return nil, nil, errors.Join(err, app.close())
	}
	if err := app.send(p.ctx, cfg.Export, metrics, log); err != nil {
		return nil, nil, errors.Join(err, app.close())
	}
	if issuer != nil {
		go reach(p.ctx, issuer, log)
	}
	return s, app, nil
}

// listenTime is how long an address may be taken still: the connections of a server
// that was killed go a moment after it.
const listenTime = 2 * time.Second

func listenOn(ctx context.Context, address string) (net.Listener, error) {
	for end := time.Now().Add(listenTime); ; {
		listener, err := net.Listen("tcp", address)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return listener, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(listenTime / 20):
		}
	}
}

// schemas are the JSON Schemas of the files that people write, by name.
func schemas() map[string][]byte {
	all := config.Schemas()
	all["run"] = calibrate.Schema()
	return all
}

func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken: another stopgate may be running; choose another address with --listen", address)
	}
	return err
}

// watch loads a directory of specs and keeps it loaded until ctx ends. It
// returns when they are in force for the first time.
func watch(ctx context.Context, dir string, policies *gate.Policies, log *slog.Logger) error {
	loaded, failed := make(chan struct{}), make(chan error, 1)
	first := sync.OnceFunc(func() { close(loaded) })
	told := map[string][]gate.Finding{}
	go func() {
		failed <- config.WatchSpecs(ctx, dir, func(specs []*gate.Spec, findings map[string][]gate.Finding) {
			policies.SetFiles(specs)
			if len(specs) == 0 {
				log.Warn("no spec in the agents directory", "directory", dir)
			} else {
				log.Info("specs loaded", "directory", dir, "resources", len(specs))
			}
			logFindings(log, findings, told)
			told = findings
			first()
		})
	}()
	select {
	case <-loaded:
		return nil
	case err := <-failed:
		return err
	}
}

// logFindings logs what is to be said of each file, but what was told before: a
// directory is read anew whenever one of its files changes.
func logFindings(log *slog.Logger, findings, told map[string][]gate.Finding) {
	for file, list := range findings {
		if slices.Equal(list, told[file]) {
			continue
		}
		for _, f := range list {
			if f.Severity == gate.SeverityError {
				log.Error("spec file has errors: its last good version stays in force", "file", file, "finding", f.String())
			} else {
				log.Warn("spec file has a warning", "file", file, "finding", f.String())
			}
		}
	}
}

// announce says plainly what works and what does not.
func announce(log *slog.Logger, app *app, cfg config.Server, address string) {
	scheme := "http://"
	if cfg.Auth.TLS != nil {
		scheme = "https://"
	}
	log.Info("listening", "url", scheme+address, "data", cfg.Data, "store", app.store.String(), "version", version)
	announceAccess(log, app, cfg, address)
	for name, check := range app.ready(context.Background()) {
		if check.OK {
			log.Info(name+" ready", "detail", check.Reason)
		} else {
			log.Warn(name+" not available", "reason", check.Reason)
		}
	}
	if commandhooks.FullEnvironment(os.Environ()) { // spec/ax-code.md 22
		log.Warn("hooks of ax-code get the whole environment, secrets too", "variable", "AX_CODE_HOOKS_FULL_ENV")
	}
}

// newLog writes text for a person at a terminal, JSON for a collector.
func newLog(w io.Writer) *slog.Logger {
	if terminal.Is(w) {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(slog.NewJSONHandler(visibleJSON{w}, nil))
}
