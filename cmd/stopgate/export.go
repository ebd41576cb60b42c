package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"stopgate/config"
	"stopgate/export"
	"stopgate/gate"
	"stopgate/internal/terminal"
)

type exportCommand struct {
	Server    string `placeholder:"URL" help:"Ask a running server, with a key in STOPGATE_API_KEY that may read (STOPGATE_SERVER)."`
	Config    string `placeholder:"FILE" help:"Without a server: the server file that names the data directory or the database."`
	Data      string `placeholder:"DIR" help:"Without a server: the data directory ($$XDG_STATE_HOME/stopgate); a server may be using it."`
	Agent     string `help:"Of this agent."`
	Session   string `help:"Of this session."`
	Event     string `help:"Of this event, as Stop."`
	Decision  string `help:"With this decision: allow, block or ask."`
	Hook      string `help:"In which this hook took part."`
	Aside     string `placeholder:"SINK" help:"Set aside for this sink, which refuses it."`
	Since     string `placeholder:"TIME" help:"From then on: 2027-01-31T00:00:00Z, or 24h or 7d for so long ago."`
	Until     string `placeholder:"TIME" help:"Before then."`
	DryRun    string `placeholder:"BOOL" enum:",true,false" default:"" help:"true: dry runs alone; false: without them."`
	Cursor    string `help:"Go on where another export said that it ended; with --output into the same file."`
	SendAgain bool   `help:"Write nothing: have what is set aside for --aside sent again. Needs the data directory or the database."`
	Output    string `short:"o" placeholder:"FILE" help:"Write here; it is FILE.part until it is complete."`
}

// Help is the detail of `stopgate export --help`.
func (exportCommand) Help() string {
	return "One record is one line of JSON, as GET /v1/evaluations/{id} has it, newest first. The exit code is 0 if all of them were written; else standard error says with which --cursor to go on.\n\n" +
		"Example: stopgate export --since 24h --decision block -o blocks.ndjson"
}

// Run writes the records, page by page.
func (c exportCommand) Run(p process) error {
	filter, err := c.filter(time.Now())
	if err != nil {
		return exit{exitUsage, err}
	}
	client, store, err := keyPlace{Server: c.Server, Config: c.Config, Data: c.Data}.choose(p, false)
	if err != nil {
		return err
	}
	if store != nil {
		defer store.Close()
	}
	if c.SendAgain {
		return c.sendAgain(p, store)
	}
	page := localPage(store)
	if store == nil {
		page = remotePage(client)
	}
	out, err := openExport(c.Output, c.Cursor != "", p.stdout)
	if err != nil {
		return exit{exitInput, err}
	}
	told := visible{p.stderr}
	err = c.pages(p.ctx, page, filter, out, terminal.Is(p.stderr), told)
	return errors.Join(err, out.close(err == nil))
}

// sendAgain has a server send what it has set aside; without one it waits for that.
func (c exportCommand) sendAgain(p process, store namedStore) error {
	filters := c
	filters.Aside, filters.SendAgain, filters.Server, filters.Config, filters.Data = "", false, "", "", ""
	switch {
	case c.Aside == "" || filters != (exportCommand{}):
		return exit{exitUsage, errors.New("--send-again goes with --aside SINK, and with nothing else but --config or --data: all that is set aside for the sink is sent again")}
	case store == nil:
		return exit{exitUsage, errors.New("--send-again works on the data directory or the database: name it by --data or --config")}
	}
	states, err := store.SinkStates(p.ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(states, func(s gate.SinkState) bool { return s.Name == c.Aside }) {
		return exit{exitInput, fmt.Errorf("sink %q is not known to %s", c.Aside, store)}
	}
	n, err := store.SendAgain(p.ctx, c.Aside)
	if err == nil {
		fmt.Fprintf(visible{p.stderr}, "%d records are sent again to %s\n", n, c.Aside)
	}
	return err
}

// pages writes page after page. After a failure it says where to go on.
func (c exportCommand) pages(ctx context.Context, page pageOf, filter gate.RecordFilter, out *exportFile, terminal bool, told io.Writer) error {
	records := 0
	for more := true; more; more = filter.Cursor != "" {
		n, next, err := page(ctx, filter, out.lines)
		if err == nil {
			err = out.keep()
		}
		if err != nil {
			if terminal {
				fmt.Fprintln(told)
			}
			return fmt.Errorf("export is not complete: %w (%s)", err, c.howToGoOn(filter.Cursor, n))
		}
		filter.Cursor = next
		if records += n; terminal {
			fmt.Fprintf(told, "\r%d records", records)
		}
	}
	if terminal {
		fmt.Fprintln(told)
	}
	fmt.Fprintf(told, "%d records, complete\n", records)
	return nil
}

// howToGoOn is what to do after a failure, with so many lines of an unfinished
// page on their way.
func (c exportCommand) howToGoOn(cursor string, n int) string {
	twice := ""
	if c.Output == "" && n > 0 {
		twice = fmt.Sprintf("; the last %d lines then come again", n)
	}
	if cursor == "" {
		return "begin again" + twice
	}
	return "go on with --cursor " + cursor + twice
}

// filter reads the flags.
func (c exportCommand) filter(now time.Time) (f gate.RecordFilter, err error) {
	f = gate.RecordFilter{Agent: c.Agent, Session: c.Session, Event: gate.EventName(c.Event), Decision: gate.Outcome(c.Decision), Hook: c.Hook, Aside: c.Aside,
		Cursor: c.Cursor, Limit: recordsAtOnce}
	if c.Event != "" && !f.Event.Known() {
		return f, fmt.Errorf("--event is %q; there are %q", c.Event, gate.EventNames)
	}
	if c.Decision != "" && f.Decision != gate.Allow && f.Decision != gate.Block && f.Decision != gate.Ask {
		return f, fmt.Errorf("--decision is %q, want allow, block or ask", c.Decision)
	}
	if c.DryRun != "" {
		f.DryRun = new(c.DryRun == "true")
	}
	if f.Since, err = readMoment("--since", c.Since, now); err != nil {
		return f, err
	}
	f.Until, err = readMoment("--until", c.Until, now)
	return f, err
}

// recordsAtOnce is how many records one page has: what is asked for again when a
// connection breaks.
const recordsAtOnce = 200

// readMoment reads a time, or how long ago it was.
func readMoment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, ok := config.ParseDuration(text); ok {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%s is %q: want a time as 2027-01-31T00:00:00Z, or 24h or 7d for so long ago", flag, text)
	}
	return t, nil
}

// pageOf writes the lines of one page and answers how many, and the cursor of the
// next; empty: there is none. After an error some lines may have been written.
type pageOf func(ctx context.Context, f gate.RecordFilter, w io.Writer) (n int, next string, err error)

// localPage reads a store itself.
func localPage(store gate.Records) pageOf {
	return func(ctx context.Context, f gate.RecordFilter, w io.Writer) (n int, next string, err error) {
		next, err = gate.WholeRecords(ctx, store, f, func(r gate.Record) error {
			line, err := export.Line(r)
			if err == nil {
				_, err = w.Write(line)
				n++
			}
			return err
		})
		return n, next, err
	}
}

// remotePage asks a server.
func remotePage(client *apiClient) pageOf {
	return func(ctx context.Context, f gate.RecordFilter, w io.Writer) (n int, next string, err error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		// It may be long, but not stand still.
		stalled := time.AfterFunc(applyTimeout, func() { cancel(fmt.Errorf("server at %s has sent nothing for %v", client.base, applyTimeout)) })
		defer stalled.Stop()
		resp, err := client.open(ctx, "/v1/evaluations/export?"+exportQuery(f).Encode())
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		lines := bufio.NewReaderSize(resp.Body, 64<<10)
		for {
			piece, err := lines.ReadSlice('\n')
			stalled.Reset(applyTimeout)
			if len(piece) > 0 {
				if _, err := w.Write(piece); err != nil {
					return n, "", err
				}
				if piece[len(piece)-1] == '\n' {
					n++
				}
			}
			switch {
			case err == nil || errors.Is(err, bufio.ErrBufferFull): // a line is long
			case errors.Is(err, io.EOF):
				return n, resp.Trailer.Get("Stopgate-Next"), endOf(resp.Trailer.Get("Stopgate-Export"), client.base)
			default:
				return n, "", exit{exitUnreachable, fmt.Errorf("server at %s broke off: %w", client.base, cmp.Or(context.Cause(ctx), err))}
			}
		}
	}
}

// endOf is an error unless the server has said that its answer is whole.
func endOf(state, base string) error {
	if state == "complete" || state == "more" {
		return nil
	}
	return exit{exitUnreachable, fmt.Errorf("server at %s has not said that its answer is whole: it broke off, or a proxy keeps its trailers back", base)}
}

func exportQuery(f gate.RecordFilter) url.Values {
	q := url.Values{"limit": {strconv.Itoa(f.Limit)}}
	for name, value := range map[string]string{"agent": f.Agent, "session": f.Session, "event": string(f.Event), "decision": string(f.Decision), "hook": f.Hook, "aside": f.Aside, "cursor": f.Cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if f.DryRun != nil {
		q.Set("dry_run", strconv.FormatBool(*f.DryRun))
	}
	return q
}

// open asks for something long. What the server refuses is an error.
func (c apiClient) open(ctx context.Context, path string) (*http.Response, error) {
	resp, err := c.send(ctx, http.MethodGet, path, "", nil)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	return nil, refusedBy(resp, maxSpecFile)
}

// exportFile is where the lines go: standard output, or a file that has its name
// only when it is complete.
type exportFile struct {
	lines *bufio.Writer
	file  *os.File // nil: standard output
	name  string
	kept  int64 // bytes of whole pages
}

func openExport(name string, goOn bool, stdout io.Writer) (*exportFile, error) {
	if name == "" {
		return &exportFile{lines: bufio.NewWriter(stdout)}, nil
	}
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is there already: name another file, or remove it", name)
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if goOn {
		flags = os.O_WRONLY
	}
	file, err := os.OpenFile(name+".part", flags, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("%s.part is there already: go on with the --cursor that its export ended with, or remove it", name)
	case errors.Is(err, fs.ErrNotExist) && goOn:
		return nil, fmt.Errorf("%s.part is not there: --cursor goes on with it", name)
	case err != nil:
		return nil, err
	}
	at, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &exportFile{bufio.NewWriter(file), file, name, at}, nil
}

// keep makes what was written so far a part of the result.
func (f *exportFile) keep() (err error) {
	if err := f.lines.Flush(); err != nil || f.file == nil {
		return err
	}
	f.kept, err = f.file.Seek(0, io.SeekCurrent)
	return err
}

// close gives the file its name, or leaves whole pages for another export to go
// on with.
func (f *exportFile) close(complete bool) error {
	if f.file == nil {
		return f.lines.Flush()
	}
	if !complete {
		return errors.Join(f.file.Truncate(f.kept), f.file.Close())
	}
	if err := errors.Join(f.file.Sync(), f.file.Close()); err != nil {
		return err
	}
	return os.Rename(f.name+".part", f.name)
}
