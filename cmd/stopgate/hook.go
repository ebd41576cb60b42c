package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/internal/loopback"
	"stopgate/internal/scratch"
	"stopgate/transcripts"
	"stopgate/wire"
	"stopgate/wire/install"
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

// exitBadHook is how `stopgate hook` ends on a bad flag: hosts take 1 for a
// hook that failed, and go on.
const exitBadHook = 1

const (
	maxPayload = 32 << 20 // what a server takes
	// stdinWait is how long a host may take to hand its payload over.
	stdinWait = 5 * time.Second
	// frozenWait is how long after the deadline a server is waited for.
	frozenWait = 2 * time.Second
)

// hookCall is one payload on its way.
type hookCall struct {
	hookCommand
	process
	protocol wire.Protocol
	options  wire.Options
	began    time.Time
	part     int64 // sentPart, in bytes
	byHand   bool  // somebody looks on: standard error is a terminal
	payload  []byte
	event    gate.Event
}

// Run answers one payload. It has no error for a host to see: what goes wrong
// is answered by --on-unreachable.
func (c hookCommand) Run(p process) error {
	protocol, ok := wire.Find(c.Protocol)
	if !ok {
		return exit{exitBadHook, fmt.Errorf("--protocol is %q: want one of %s%s", c.Protocol, strings.Join(wire.Names(), ", "), config.DidYouMean(c.Protocol, wire.Names()))}
	}
	if !(c.Deadline > 0 && c.Deadline <= 3600) {
		return exit{exitBadHook, fmt.Errorf("--deadline is %v: want seconds, more than 0 and at most 3600", c.Deadline)}
	}
	signal.Ignore(syscall.SIGPIPE) // a host that has gone away is no reason to die by a signal
	call := hookCall{hookCommand: c, process: p, protocol: protocol, began: time.Now(), part: sentPart, options: wire.Options{Agent: c.Agent, Event: c.Event, Unattended: c.Unattended}}
	if call.byHand = isTerminal(p.stderr); !call.byHand {
		if f, ok := p.stderr.(*os.File); ok {
			mute(f)
		}
	}
	if c.Protocol == "ax-code" {
		cwd, _ := os.Getwd() // unknown: hooks get none
		call.options = wire.AXCodeOptions(c.Agent, cwd, p.getenv)
		call.options.Event, call.options.Unattended = cmp.Or(c.Event, call.options.Event), c.Unattended
	}
	call.options.Project = projectOf(c.Protocol, p.getenv)
	err := call.read()
	var answer []byte
	if err == nil {
		answer, err = call.inTime()
	}
	if err != nil {
		answer = call.unreachable(err)
	}
	_, _ = p.stdout.Write(answer) // a host that has gone away needs no answer
	if err != nil {
		call.failed(err, call.OnUnreachable)
	}
	return nil
}

// projectOf is the agent's project, as its host names it in the environment of its
// hooks; empty: it does not. A payload has the working directory alone, which the
// agent changes as it likes.
func projectOf(protocol string, getenv func(string) string) string {
	host, _ := install.Find(protocol)
	for _, variable := range host.ProjectVariables {
		if dir := getenv(variable); filepath.IsAbs(dir) {
			return filepath.Clean(dir)
		}
	}
	return ""
}

// read takes the payload in.
func (h *hookCall) read() (err error) {
	defer recovered(&err)
	if h.payload, err = readPayload(h.stdin); err != nil {
		return err
	}
	h.event, err = h.protocol.Decode(h.payload, h.options)
	return err
}

// inTime is answer, given up when the host can wait no longer, whatever it is
// that hangs: a server, a disk, a file that is none.
func (h *hookCall) inTime() ([]byte, error) {
	type result struct {
		answer []byte
		err    error
	}
	answered := make(chan result, 1)
	asking := *h // what it fills in is its own
	go func() {
		var r result
		defer func() { answered <- r }()
		defer recovered(&r.err)
		r.answer, r.err = asking.answer()
	}()
	wait := seconds(h.Deadline) + frozenWait
	select {
	case r := <-answered:
		return r.answer, r.err
	case <-time.After(time.Until(h.began.Add(wait + frozenWait/4))):
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
func (h *hookCall) answer() (answer []byte, err error) {
	if h.event.Name == "" { // no hook is about it, here or elsewhere
		return h.protocol.Encode(h.event, gate.Decision{Outcome: gate.Allow}).Body, nil
	}
	if len(h.Files) > 0 {
		return h.decideHere()
	}
	return h.askServer()
}

// unreachable is the answer when nobody could be asked.
func (h *hookCall) unreachable(cause error) []byte {
	d := gate.Decision{Outcome: gate.Allow}
	if gate.FailMode(h.OnUnreachable) == gate.FailBlock {
		line, _, _ := strings.Cut(cause.Error(), "\n")
		d = gate.Decision{Outcome: gate.Block, Reason: fmt.Sprintf("The gate could not be asked (%s), and it is set to block then.", line)}
	}
	if h.event.Protocol == "" { // not even the payload came
		h.event, _ = h.protocol.Decode([]byte("{}"), h.options)
	}
	return h.protocol.Encode(h.event, d).Body
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
			if payload = append(payload, chunk...); len(payload) > maxPayload {
				return nil, fmt.Errorf("payload is larger than %d MiB", maxPayload>>20)
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

// askServer has a server decide.
func (h *hookCall) askServer() ([]byte, error) {
	if err := checkServer(h.Server); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithDeadline(h.ctx, h.began.Add(seconds(h.Deadline)+frozenWait))
	defer cancel()
	query := url.Values{"agent": {h.event.Agent}}
	for name, value := range map[string]string{"event": h.options.Event, "session": h.options.Session, "tool": h.options.Tool, "cwd": h.options.Cwd,
		"project": h.options.Project} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if h.Unattended {
		query.Set("unattended", "true")
	}
	client := newHookClient(h.Server, h.getenv("STOPGATE_API_KEY"))
	if h.event.TranscriptFormat != "" && h.event.Session != "" && h.sends(client.key != "") {
		query.Set("transcript", uploadName(&h.event))
		if err := h.sendInTime(ctx, client); err != nil {
			h.failed(err, "")
			query.Set("stale", "true")
		}
	}
	left := seconds(h.Deadline) - time.Since(h.began)
	query.Set("deadline", strconv.FormatFloat(max(left.Seconds(), 0.1), 'f', 3, 64))
	return client.decide(ctx, "/v1/hooks/"+h.Protocol+"?"+query.Encode(), h.payload)
}

// sends reports whether the conversation is to be sent: a server on this machine
// reads it where it lies, unless it keeps its callers apart.
func (h *hookCall) sends(keyed bool) bool {
	if h.Transcript != "auto" {
		return h.Transcript == "send"
	}
	if keyed { // a key that is limited to some agents reads no file there
		return true
	}
	u, err := url.Parse(h.Server)
	if err != nil {
		return false // the request will say what is wrong
	}
	return !loopback.Host(u.Hostname())
}

// sendInTime sends the conversation's new part. It may take half of the time
// there is: what is not sent by then is, at the next event.
func (h *hookCall) sendInTime(ctx context.Context, client *hookClient) error {
	ctx, cancel := context.WithDeadline(ctx, h.began.Add(seconds(h.Deadline)/2))
	defer cancel()
	if err := h.awaitAnswer(ctx); err != nil {
		return err
	}
	return h.sendTranscript(ctx, client)
}

// awaitAnswer waits until the conversation holds the answer that the payload
// lacks: a host that does not say it writes it late (spec/claude-code.md 10).
func (h *hookCall) awaitAnswer(ctx context.Context) error {
	sought, missing := wire.AnswerSought(h.event)
	if !missing || sought.Within == 0 {
		return nil
	}
	dir, err := scratch.Make("")
	if err != nil {
		return err
	}
	defer dir.Remove()
	store, err := transcripts.Open(transcripts.Options{Dir: dir.Path(), Roots: []string{filepath.Dir(sought.Path)}})
	if err != nil {
		return err
	}
	defer store.Close()
	_, err = store.Answer(ctx, sought.Path, h.event.TranscriptFormat, sought.Since, sought.Within)
	return err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// decideHere is the server's own path without a server: counts and records are
// the data directory's, which a server may use at the same time (DESIGN §6).
func (h *hookCall) decideHere() ([]byte, error) {
	files, err := readSpecFiles(h.Files)
	if err != nil {
		return nil, err
	}
	var specs []*gate.Spec
	for _, f := range files {
		if gate.HasErrors(f.findings) {
			return nil, fmt.Errorf("%s has errors: see stopgate validate", f.path)
		}
		specs = append(specs, f.usable()...)
	}
	if h.Agent == "" {
		h.event.Agent = onlyAgent(specs, h.event.Agent)
	}
	cfg, err := loadConfig(h.process, h.Config, overrides{data: h.Data})
	if err != nil {
		return nil, err
	}
	app, err := buildOn(h.ctx, cfg, shared, h.getenv)
	if err != nil { // a store that cannot be had opens no gate whose hooks can be asked (DESIGN §2)
		lost := err
		if app, err = buildOffline(h.ctx, cfg, commandOptions(cfg, h.getenv), h.getenv); err != nil {
			return nil, errors.Join(lost, err)
		}
		h.failed(lost, "")
		app.gate.Store = lostStore{lost}
	}
	defer app.close()
	app.policies.SetFiles(specs)
	ctx, cancel := context.WithDeadline(h.ctx, h.began.Add(seconds(h.Deadline)))
	defer cancel()
	d, err := app.gate.DecideForHost(ctx, h.event, gate.Options{})
	return h.protocol.Encode(h.event, d).Body, err
}

// lostStore is a store that did not open: what it is asked fails as that did.
type lostStore struct{ err error }

func (s lostStore) Counts(context.Context, gate.LedgerKey) (gate.Counts, error) {
	return gate.Counts{}, s.err
}

func (s lostStore) Erasure(context.Context, string) (gate.Erasure, error) { return 0, s.err }

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

// hookClient asks a server on a host's behalf.
type hookClient struct {
	base, key string
	http      http.Client
}

// maxAnswer bounds an answer: its texts have 9,000 bytes each.
const maxAnswer = 1 << 20

func newHookClient(server, key string) *hookClient {
	c := &hookClient{base: strings.TrimRight(server, "/"), key: key}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// decide posts a payload and gives the answer, which is the host's to read: one
// JSON object, or nothing.
func (c *hookClient) decide(ctx context.Context, path string, payload []byte) ([]byte, error) {
	status, body, err := c.send(ctx, http.MethodPost, path, "application/json", bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("server at %s answered %w", c.base, refusal(strconv.Itoa(status), body))
	}
	body = bytes.TrimSpace(body)
	var object map[string]json.RawMessage
	if len(body) > 0 && (json.Unmarshal(body, &object) != nil || object == nil) {
		return nil, fmt.Errorf("%s does not answer like a stopgate server", c.base)
	}
	return body, nil
}

func (c *hookClient) send(ctx context.Context, method, path, contentType string, content io.Reader) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", contentType)
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the URL, which c.base names
		}
		return 0, nil, fmt.Errorf("no server at %s: %w", c.base, err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("answer of %s is larger than %d bytes", c.base, maxAnswer)
	}
	return resp.StatusCode, body, err
}
