package hookclient

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"stopgate/internal/terminal"
	"stopgate/wire"
)

// Name is what the small client is called: init looks for it beside stopgate,
// which it looks for beside itself.
const Name = "stopgate-hook"

// Command is stopgate-hook: `stopgate hook` as a program of its own, without what
// it takes to decide.
type Command struct {
	Version string
	// Local has stopgate itself take over, for -f. It comes back with an error
	// only; what it is given are the flags.
	Local func(flags []string) error
}

// Run is main with everything handed in; it gives the exit code. The flags, and
// what is said of wrong ones, are those of `stopgate hook`.
func (c Command) Run(ctx context.Context, p Process, args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			code = ExitBadFlag
			if terminal.Is(p.Stderr) { // a host would read it (DESIGN §6, EFFECTS §3.9)
				fmt.Fprintf(p.Stderr, "%s: internal error: %v\n%s", Name, r, debug.Stack())
			}
		}
	}()
	line, set := flags(p.Getenv)
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage(p.Stdout, set)
		return 0
	case err != nil:
	case line.version:
		fmt.Fprintln(p.Stdout, Name, c.Version)
		return 0
	case set.NArg() > 0:
		err = fmt.Errorf("unexpected argument %s", set.Arg(0))
	case line.local:
		err = c.Local(args)
	case line.Protocol == "":
		err = errors.New("missing flags: --protocol=P")
	default:
		err = Answer(ctx, line.Flags, p, nil)
	}
	if err != nil {
		fmt.Fprintf(p.Stderr, "%s: %s\nFor usage: %s --help\n", Name, terminal.Visible(err.Error()), Name)
		return ExitBadFlag
	}
	return 0
}

// line is what a command line says.
type line struct {
	Flags
	local   bool // -f is among the flags
	version bool
}

// flags are those of `stopgate hook`, with their defaults; parsing fills in the line.
func flags(getenv func(string) string) (*line, *flag.FlagSet) {
	f := &line{}
	set := flag.NewFlagSet(Name, flag.ContinueOnError)
	set.SetOutput(io.Discard) // it is said once, by Run
	set.Usage = func() {}
	set.StringVar(&f.Protocol, "protocol", "", "how the agent speaks, as `P`: "+strings.Join(wire.Names(), ", "))
	set.StringVar(&f.Agent, "agent", "", "`NAME` of the agent spec to ask (default)")
	set.StringVar(&f.Event, "event", "", "the host's name of the `EVENT`, where its payload names none")
	set.StringVar(&f.Server, "server", cmp.Or(getenv("STOPGATE_SERVER"), DefaultServer), "`URL` of the server (STOPGATE_SERVER)")
	set.Float64Var(&f.Deadline, "deadline", 25, "how many `SECONDS` hooks may take together; set the host's own timeout some 10 s higher")
	set.StringVar(&f.OnUnreachable, "on-unreachable", "allow", "the answer when nobody can be asked: `allow|block`")
	set.BoolVar(&f.Unattended, "unattended", false, "nobody is there to be asked: what a hook would ask a person is denied")
	set.StringVar(&f.Transcript, "transcript", "auto", "send the conversation's new part to the server, or only its path: `auto|send|path`")
	set.StringVar(&f.Data, "data", "", "`DIR` for hook.log and what is known of conversations that were sent ($XDG_STATE_HOME/stopgate)")
	handOver := func(string) error { f.local = true; return nil }
	for _, name := range []string{"f", "file"} {
		set.Func(name, "a `SPEC` to decide by here: stopgate takes over", handOver)
	}
	set.String("config", "", "with -f: server `FILE`, for models and sandbox")
	set.BoolVar(&f.version, "version", false, "print the version")
	return f, set
}

func usage(w io.Writer, set *flag.FlagSet) {
	fmt.Fprintf(w, `Usage: %s --protocol P [flags]

What an agent host runs as its command hook: the host's payload on standard input, its answer on standard output and nothing else. It is stopgate hook, and starts sooner. stopgate init writes the entry.

Always exits 0 (a bad flag: 1), since hosts read other codes as denials. The key, if the server wants one, is taken from STOPGATE_API_KEY.

`, Name)
	set.VisitAll(func(f *flag.Flag) {
		value, help := flag.UnquoteUsage(f)
		dashes := "--"
		if len(f.Name) == 1 {
			dashes = "-"
		}
		if f.DefValue != "" && f.DefValue != "false" {
			help += " (" + f.DefValue + ")"
		}
		fmt.Fprintf(w, "  %-24s %s\n", strings.TrimSpace(dashes+f.Name+" "+value), help)
	})
}
