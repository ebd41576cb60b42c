// Package hookclient is what an agent host runs as its command hook: the host's
// payload in, its answer out and nothing else. It is `stopgate hook`, and all of
// stopgate-hook, which has nothing else and answers in a third of the time:
//
//	err := hookclient.Answer(ctx, flags, process, nil)
//
// Nothing that it links may have work to do before main: a process is started
// for every tool call (docs/benchmarks.md).
package hookclient

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"stopgate/gate"
	"stopgate/internal/nearest"
	"stopgate/internal/terminal"
	"stopgate/wire"
)

// ExitBadFlag is how a hook ends on a bad flag, the only one that is not 0: hosts
// take 1 for a hook that failed, and go on (DESIGN §6).
const ExitBadFlag = 1

// DefaultServer is asked where nothing names another.
const DefaultServer = "http://127.0.0.1:8790"

// Flags are what a call is told: those of `stopgate hook --help`, whose defaults
// they do not have by themselves.
type Flags struct {
	Protocol      string
	Agent         string
	Event         string
	Server        string
	Deadline      float64 // seconds
	OnUnreachable string  // allow or block
	Unattended    bool
	Transcript    string // auto, send or path
	Data          string // directory; empty: the user's state directory
}

// Process is what a call has of the world outside.
type Process struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
}

// Decide decides an event without a server, within the call's deadline. What it
// had to do without is handed to lost, and stands in hook.log.
type Decide func(ctx context.Context, ev gate.Event, lost func(error)) (gate.Decision, error)

// call is one payload on its way.
type call struct {
	Flags
	Process
	decide   Decide // nil: a server does
	protocol wire.Protocol
	options  wire.Options
	began    time.Time
	part     int64 // sentPart, in bytes
	byHand   bool  // somebody looks on: standard error is a terminal
	payload  []byte
	event    gate.Event
}

// MaxPayload bounds a payload, in bytes: it is what a server takes.
const MaxPayload = 32 << 20

const (
	// stdinWait is how long a host may take to hand its payload over.
	stdinWait = 5 * time.Second
	// frozenWait is how long after the deadline a server is waited for.
	frozenWait = 2 * time.Second
)

// Answer answers one payload, by a server where decide is nil. Its errors are
// flags that are wrong, before anything is read; whatever goes wrong then is
// answered by OnUnreachable and stands in hook.log. Within a hook that a gate runs
// ([gate.FromHookVariable]) nobody is asked, and there is no objection. Standard error, where it is
// no terminal, is closed to all that this process may still say.
func Answer(ctx context.Context, f Flags, p Process, decide Decide) error {
	protocol, err := f.check()
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // a host that has gone away is no reason to die by a signal
	c := call{Flags: f, Process: p, decide: decide, protocol: protocol, began: time.Now(), part: sentPart,
		options: wire.Options{Agent: f.Agent, Event: f.Event, Unattended: f.Unattended}}
	if p.Getenv(gate.FromHookVariable) != "" {
		return c.objectNot()
	}
	if c.byHand = terminal.Is(p.Stderr); !c.byHand {
		if stderr, ok := p.Stderr.(*os.File); ok {
			mute(stderr)
		}
	}
	if f.Protocol == "ax-code" {
		cwd, _ := os.Getwd() // unknown: hooks get none
		c.options = wire.AXCodeOptions(f.Agent, cwd, p.Getenv)
		c.options.Event, c.options.Unattended = cmp.Or(f.Event, c.options.Event), f.Unattended
	}
	c.options.Project = projectOf(f.Protocol, p.Getenv)
	err = c.read()
	var answer []byte
	if err == nil {
		answer, err = c.inTime(ctx)
	}
	if err != nil {
		answer = c.unreachable(err)
	}
	_, _ = p.Stdout.Write(answer) // a host that has gone away needs no answer
	if err != nil {
		c.failed(err, c.OnUnreachable)
	}
	return nil
}

// objectNot is the answer of a call that a gate's own hook makes: nobody is asked, since
// the gate that waits for the hook would be asked again, and again. Why stands on
// standard error, which is the hook's: no host reads it. Its error is always nil.
func (c *call) objectNot() error {
	fmt.Fprintf(c.Stderr, "stopgate: no gate is asked from within a gate's own hook (%s is set), which goes on without objection\n", gate.FromHookVariable)
	_ = c.read() // for the event, whose form the answer has
	if c.event.Protocol == "" {
		c.event, _ = c.protocol.Decode([]byte("{}"), c.options)
	}
	_, _ = c.Stdout.Write(c.protocol.Encode(c.event, gate.Decision{Outcome: gate.Allow}).Body)
	return nil
}

// check says what is wrong with the flags.
func (f Flags) check() (wire.Protocol, error) {
	protocol, ok := wire.Find(f.Protocol)
	switch {
	case !ok:
		return protocol, fmt.Errorf("--protocol is %q: want one of %s%s", f.Protocol, strings.Join(wire.Names(), ", "), nearest.DidYouMean(f.Protocol, wire.Names()))
	case !(f.Deadline > 0 && f.Deadline <= 3600):
		return protocol, fmt.Errorf("--deadline is %v: want seconds, more than 0 and at most 3600", f.Deadline)
	case f.OnUnreachable != "allow" && f.OnUnreachable != "block":
		return protocol, fmt.Errorf("--on-unreachable is %q: want allow or block", f.OnUnreachable)
	case f.Transcript != "auto" && f.Transcript != "send" && f.Transcript != "path":
		return protocol, fmt.Errorf("--transcript is %q: want auto, send or path", f.Transcript)
	}
	return protocol, nil
}

// read takes the payload in.
func (c *call) read() (err error) {
	defer recovered(&err)
	if c.payload, err = readPayload(c.Stdin); err != nil {
		return err
	}
	c.event, err = c.protocol.Decode(c.payload, c.options)
	if err != nil && len(bytes.TrimSpace(c.payload)) == 0 {
		err = fmt.Errorf("standard input is empty, want the payload that %s hands to its hooks, as JSON", c.protocol.Name)
	}
	return err
}

// inTime is answer, given up when the host can wait no longer, whatever it is
// that hangs: a server, a disk, a file that is none.
func (c *call) inTime(ctx context.Context) ([]byte, error) {
	type result struct {
		answer []byte
		err    error
	}
	answered := make(chan result, 1)
	asking := *c // what it fills in is its own
	go func() {
		var r result
		defer func() { answered <- r }()
		defer recovered(&r.err)
		r.answer, r.err = asking.answer(ctx)
	}()
	wait := seconds(c.Deadline) + frozenWait
	select {
	case r := <-answered:
		return r.answer, r.err
	case <-time.After(time.Until(c.began.Add(wait + frozenWait/4))):
		return nil, fmt.Errorf("no answer within %s", wait)
	}
}

// recovered makes an error of a panic: none comes further than this.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("internal error: %v\n%s", r, debug.Stack())
	}
}

// answer asks and gives what the host is to read.
func (c *call) answer(ctx context.Context) ([]byte, error) {
	if c.event.Name == "" { // no hook is about it, here or elsewhere
		return c.protocol.Encode(c.event, gate.Decision{Outcome: gate.Allow}).Body, nil
	}
	if c.decide == nil {
		return c.askServer(ctx)
	}
	ctx, cancel := context.WithDeadline(ctx, c.began.Add(seconds(c.Deadline)))
	defer cancel()
	d, err := c.decide(ctx, c.event, func(lost error) { c.failed(lost, "") })
	return c.protocol.Encode(c.event, d).Body, err
}

// unreachable is the answer when nobody could be asked.
func (c *call) unreachable(cause error) []byte {
	d := gate.Decision{Outcome: gate.Allow}
	if gate.FailMode(c.OnUnreachable) == gate.FailBlock {
		line, _, _ := strings.Cut(cause.Error(), "\n")
		d = gate.Decision{Outcome: gate.Block, Reason: fmt.Sprintf("The gate could not be asked (%s), and it is set to block then.", line)}
	}
	if c.event.Protocol == "" { // not even the payload came
		c.event, _ = c.protocol.Decode([]byte("{}"), c.options)
	}
	return c.protocol.Encode(c.event, d).Body
}

// readPayload reads what the host sends, as bytes. A host that does not close
// the pipe has sent all that it will after stdinWait.
func readPayload(r io.Reader) ([]byte, error) {
	chunks, ended := make(chan []byte), make(chan error, 1)
	go func() {
		for {
			chunk := make([]byte, 64<<10)
			n, err := r.Read(chunk)
			if n > 0 {
				chunks <- chunk[:n]
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	var payload []byte
	late := time.After(stdinWait)
	for {
		select {
		case chunk := <-chunks:
			if payload = append(payload, chunk...); len(payload) > MaxPayload {
				return nil, fmt.Errorf("payload is larger than %d MiB", MaxPayload>>20)
			}
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return payload, err
		case <-late:
			return payload, nil
		}
	}
}

// seconds is a flag's number as a time.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// projectOf is the agent's project, as its host names it in the environment of its
// hooks; empty: it does not. A payload has the working directory alone, which the
// agent changes as it likes.
func projectOf(protocol string, getenv func(string) string) string {
	for _, variable := range wire.ProjectVariables(protocol) {
		if dir := getenv(variable); filepath.IsAbs(dir) {
			return filepath.Clean(dir)
		}
	}
	return ""
}
