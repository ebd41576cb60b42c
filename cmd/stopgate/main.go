// Command stopgate is the gate that AI agents pass before they stop: a service
// and its command line. See README.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"stopgate/cmd/internal/hookclient"
	"stopgate/commandhooks/jq"
	"stopgate/gate"
	"stopgate/internal/terminal"
	"stopgate/wire"
)

// Exit codes (DESIGN §6). 2 and 3 are decisions of `eval` only: no failure of
// ours may look like one, since most hosts read 2 as "block".
const (
	exitDone        = 0
	exitFindings    = 1
	exitBlock       = 2
	exitAsk         = 3
	exitUsage       = 64
	exitInput       = 65
	exitUnreachable = 69
	exitInternal    = 70
)

// version is set by the linker.
var version = "dev"

func main() {
	// A fatal error that nothing can recover ends by SIGABRT, not by the exit
	// code 2 that Go would use.
	debug.SetTraceback("crash")
	if filepath.Base(os.Args[0]) == "jq" { // the sandbox has us under this name where the host has no jq
		os.Exit(jq.JQ(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(process{ctx: ctx, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}, os.Args[1:]))
}

// process is what a command has of the world outside.
type process struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
}

type commands struct {
	Serve     serveCommand     `cmd:"" help:"Run the gate as an HTTP service."`
	Demo      demoCommand      `cmd:"" help:"Show the main job, narrated: an answer refused, corrected and allowed."`
	Eval      evalCommand      `cmd:"" help:"Decide one event without a server."`
	Hook      hookCommand      `cmd:"" help:"Answer one payload of an agent host: what its command hook runs."`
	Init      initCommand      `cmd:"" help:"Write an agent host's hook configuration, or take it out again."`
	Doctor    doctorCommand    `cmd:"" help:"Find why a gate would not gate; send a must-block probe through the installed hook."`
	Apply     applyCommand     `cmd:"" help:"Upload agent specs and agent-level hooks to a server."`
	Validate  validateCommand  `cmd:"" help:"Check spec files and hooks files; print what is wrong and where."`
	Convert   convertCommand   `cmd:"" help:"Write one system's hooks in the form of another."`
	Test      testCommand      `cmd:"" help:"Run the tests of hooks: *.test.yaml beside their specs."`
	Replay    replayCommand    `cmd:"" help:"Ask a draft of hooks about recorded evaluations: which verdicts change."`
	RunHooks  runHooksCommand  `cmd:"" help:"Play another system's hook runtime: its payload in, its answer out."`
	Calibrate calibrateCommand `cmd:"" help:"Measure Stop prompt hooks on labelled runs."`
	Key       keyCommand       `cmd:"" help:"Make, list and revoke API keys."`
	Override  overrideCommand  `cmd:"" help:"Let one session stop for a while."`
	Export    exportCommand    `cmd:"" help:"Write records as lines of JSON."`
	Migrate   migrateCommand   `cmd:"" help:"Move a SQLite data directory into PostgreSQL."`
	Version   versionCommand   `cmd:"" help:"Print the version."`

	VersionFlag versionFlag `name:"version" help:"Print the version."`
}

// versionFlag is what people try first.
type versionFlag bool

// BeforeReset prints the version and ends, whatever else is on the line.
func (versionFlag) BeforeReset(app *kong.Kong, p process) error {
	err := versionCommand{}.Run(p)
	app.Exit(exitDone)
	return err
}

// exit is an error that knows its exit code.
type exit struct {
	code int
	err  error // nil: everything was said already
}

func (e exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

// run is main with everything handed in. It is the one place where an error
// becomes text and an exit code.
func run(p process, args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			code = exitInternal
			if len(args) > 0 && args[0] == "hook" { // its host reads both (DESIGN §6, EFFECTS §3.9)
				if code = hookclient.ExitBadFlag; !terminal.Is(p.stderr) {
					return
				}
			}
			fmt.Fprintf(p.stderr, "stopgate: internal error: %v\n%s", r, debug.Stack())
		}
	}()
	left := false // kong wants to exit after --help
	parser, err := kong.New(&commands{},
		kong.Name("stopgate"),
		kong.Description("The gate that AI agents pass before they stop.\n\nExample: stopgate demo"),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(int) { left = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Bind(p),
		kong.Vars{"server": serverURL(p.getenv), "protocols": strings.Join(wire.Names(), ", "), "hosts": hostNames(), "hookSystems": strings.Join(hookSystemNames(), ", "),
			"dialects": strings.Join(dialectNames(), ", ")},
	)
	if err != nil {
		panic(err)
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help": // as git and go have it
		args = append(slices.Clone(args[1:]), "--help")
	}
	command, err := parser.Parse(goSpelling(args))
	if left {
		return exitDone
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "stopgate: %s\n", err)
		help := "stopgate --help"
		if c := chosen(err); c != "" {
			help = "stopgate " + c + " --help"
		}
		fmt.Fprintf(p.stderr, "For usage: %s\n", help)
		if args[0] == "hook" {
			return hookclient.ExitBadFlag
		}
		return exitUsage
	}
	return report(p, command.Run())
}

// chosen is the subcommand that a usage error is about.
func chosen(err error) string {
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil {
		if s := parse.Context.Selected(); s != nil {
			return s.Name
		}
	}
	return ""
}

func report(p process, err error) int {
	if err == nil {
		return exitDone
	}
	code := exitInternal
	if e, ok := errors.AsType[exit](err); ok {
		code = e.code
		if e.err == nil {
			return code
		}
	} else if e, ok := errors.AsType[*gate.Error](err); ok {
		code = exitOf(e.Code)
	}
	stderr := visible{p.stderr}
	fmt.Fprintf(stderr, "stopgate: %s\n", err)
	if e, ok := errors.AsType[*gate.Error](err); ok {
		for _, f := range e.Details {
			if !strings.Contains(err.Error(), f.Message) {
				fmt.Fprintf(stderr, "  %s\n", f)
			}
		}
	}
	return code
}

func exitOf(c gate.Code) int {
	switch c {
	case gate.CodeInvalidJSON, gate.CodeValidation, gate.CodeInvalidObjectType, gate.CodeNotFound, gate.CodeBodyTooLarge, gate.CodeUnsupportedMediaType:
		return exitInput
	case gate.CodeConflict, gate.CodeOverloaded, gate.CodeRateLimited:
		return exitUnreachable
	}
	return exitInternal
}

// serverURL is the server where no flag names one. kong expands variables in it,
// however they are escaped; in a URL a dollar sign can be written otherwise.
func serverURL(getenv func(string) string) string {
	return strings.ReplaceAll(cmp.Or(getenv("STOPGATE_SERVER"), hookclient.DefaultServer), "$", "%24")
}

type versionCommand struct {
	JSON bool `help:"Print JSON."`
}

// Help is the detail of `stopgate version --help`.
func (versionCommand) Help() string { return "Example: stopgate version --json" }

// Run prints the version.
func (c versionCommand) Run(p process) error {
	if c.JSON {
		return printJSON(p.stdout, map[string]string{"version": version})
	}
	_, err := fmt.Fprintln(p.stdout, "stopgate", version)
	return err
}
