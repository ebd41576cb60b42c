package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stopgate/cmd/internal/hookclient"
	"stopgate/config"
	"stopgate/gate"
	"stopgate/internal/regular"
	"stopgate/transcripts"
)

// source is where recorded evaluations are.
type source interface {
	// list finds those that a filter picks, at most limit; an error ends the list.
	list(ctx context.Context, f gate.RecordFilter, limit int) iter.Seq2[found, error]
	// size is about how many those are; 0: nobody knows.
	size(limit int) int
	// conversation is what of an uploaded conversation could be read for a record.
	conversation(ctx context.Context, r gate.Record, ev *gate.Event) (gate.Transcript, error)
	// answer is what the agent had said where its payload does not.
	answer(ctx context.Context, ev *gate.Event, since time.Time) (string, error)
	close() error
}

// found is one evaluation of a list.
type found struct {
	summary gate.RecordSummary // what is known before it is read
	// read reads it whole. An error is an [*obstacle], or one that ends the run.
	read func(context.Context) (gate.Record, error)
}

// source opens the one that the flags name.
func (c replayCommand) source(p process, cfg config.Server, app *app) (source, error) {
	switch {
	case c.From != "":
		return openExported(c.From, app)
	case c.Data != "":
		return openStored(p.ctx, cfg)
	}
	server := cmp.Or(c.Server, serverURL(p.getenv))
	if err := hookclient.CheckServer(server); err != nil {
		return nil, exit{exitUsage, err}
	}
	return remote{apiClient{base: strings.TrimRight(server, "/"), key: p.getenv("STOPGATE_API_KEY")}, app}, nil
}

// stored are the evaluations of a data directory, or of a database.
type stored struct {
	store namedStore
	talks *transcripts.Store
}

func openStored(ctx context.Context, cfg config.Server) (source, error) {
	if about, err := os.Stat(cfg.Data); err != nil || !about.IsDir() { // it would be made
		return nil, exit{exitInput, errors.Join(err, fmt.Errorf("--data %s is no directory", cfg.Data))}
	}
	store, err := openStore(ctx, cfg, shared, nil)
	if err != nil {
		return nil, err
	}
	texts, _ := store.(gate.SharedTexts) // nil: the data directory has them
	talks, err := transcripts.Open(transcripts.Options{Dir: filepath.Join(cfg.Data, "transcripts"), Shared: texts,
		Roots: cfg.Transcripts.Roots, MaxBytes: cfg.Transcripts.MaxSize, MaxMessageBytes: int(cfg.Transcripts.MaxLine)})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return stored{store, talks}, nil
}

func (s stored) close() error { return errors.Join(s.talks.Close(), s.store.Close()) }

func (s stored) size(limit int) int { return 0 }

func (s stored) list(ctx context.Context, f gate.RecordFilter, limit int) iter.Seq2[found, error] {
	return pages(f, limit, func(f gate.RecordFilter) ([]gate.RecordSummary, string, error) { return s.store.Records(ctx, f) },
		func(ctx context.Context, id string) (gate.Record, error) {
			r, err := s.store.Record(ctx, id)
			if gate.CodeOf(err) == gate.CodeNotFound {
				err = &obstacle{gone, "it was erased meanwhile"}
			}
			return r, err
		})
}

func (s stored) conversation(ctx context.Context, _ gate.Record, ev *gate.Event) (gate.Transcript, error) {
	return s.talks.Attach(ctx, ev)
}

func (s stored) answer(ctx context.Context, ev *gate.Event, since time.Time) (string, error) {
	return s.talks.AnswerMarked(ctx, ev, since)
}

// pages goes through a list page by page, newest first.
func pages(f gate.RecordFilter, limit int, page func(gate.RecordFilter) ([]gate.RecordSummary, string, error),
	read func(ctx context.Context, id string) (gate.Record, error)) iter.Seq2[found, error] {
	const most = 1000 // what a page may have
	return func(yield func(found, error) bool) {
		for left := limit; left > 0; {
			f.Limit = min(left, most)
			items, next, err := page(f)
			if err != nil {
				yield(found{}, err)
				return
			}
			for _, item := range items {
				if !yield(found{item, func(ctx context.Context) (gate.Record, error) { return read(ctx, item.EvaluationID) }}, nil) {
					return
				}
			}
			if left -= len(items); next == "" || len(items) == 0 {
				return
			}
			f.Cursor = next
		}
	}
}

// exported is a file of records, one a line.
type exported struct {
	file  *os.File
	app   *app
	lines int
}

// maxRecord bounds one record, whose payload has at most 32 MiB and which holds
// its evidence beside it.
const maxRecord = 64 << 20

func openExported(path string, app *app) (source, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, exit{exitInput, err}
	}
	e := &exported{file: f, app: app}
	if e.lines, err = countLines(f); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close() // only read
		return nil, exit{exitInput, err}
	}
	return e, nil
}

func countLines(r io.Reader) (n int, err error) {
	block := make([]byte, 64<<10)
	for {
		read, err := r.Read(block)
		n += bytes.Count(block[:read], []byte("\n"))
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func (e *exported) close() error { return e.file.Close() }

func (e *exported) size(limit int) int { return min(e.lines, limit) }

// list reads the lines in their order. A line that is no record is one that cannot
// be replayed, and so is the last one of an export that was cut.
func (e *exported) list(ctx context.Context, f gate.RecordFilter, limit int) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		in := bufio.NewReaderSize(e.file, 64<<10)
		for line := 1; limit > 0 && ctx.Err() == nil; line++ {
			text, err := exportLine(in)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil && !errors.Is(err, errLongRecord) {
				yield(found{}, exit{exitInput, fmt.Errorf("%s:%d: %w", e.file.Name(), line, err)})
				return
			}
			r, skip, bad := recordOf(text, err)
			if skip || bad == nil && !picks(f, r) {
				continue
			}
			if bad != nil {
				bad.Message = fmt.Sprintf("line %d: %s", line, bad.Message)
			}
			limit--
			if !yield(found{r.Summary(), func(context.Context) (gate.Record, error) {
				if bad != nil {
					return r, bad
				}
				return r, nil
			}}, nil) {
				return
			}
		}
	}
}

var errLongRecord = fmt.Errorf("it is longer than %d MiB", maxRecord>>20)

// exportLine reads one line, of which one that is too long is read to its end.
func exportLine(in *bufio.Reader) (text []byte, err error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(text)+len(part) > maxRecord; !long {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (len(text) > 0 || long): // without its end
		case err != nil:
			return nil, err
		}
		if long {
			return nil, errLongRecord
		}
		return text, nil
	}
}

// recordOf reads a line of an export; skip: it is none of a record.
func recordOf(text []byte, err error) (r gate.Record, skip bool, bad *obstacle) {
	if err != nil {
		return r, false, &obstacle{badRecord, err.Error()}
	}
	text = bytes.TrimSpace(text)
	fields := members(text)
	if len(text) == 0 || fields["complete"] != nil && fields["evaluation_id"] == nil { // the export's own last line
		return r, true, nil
	}
	err = json.Unmarshal(text, &r)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && int(syntax.Offset) >= len(text) {
		return r, false, &obstacle{badRecord, "the record is cut off"}
	}
	if err == nil && (r.EvaluationID == "" || r.Event == "") {
		err = errors.New("it has no evaluation_id, or no event")
	}
	if err != nil {
		return r, false, &obstacle{badRecord, "no recorded evaluation: " + err.Error()}
	}
	return r, false, nil
}

// picks reports whether a filter picks a record, as a store's list does.
func picks(f gate.RecordFilter, r gate.Record) bool {
	return (f.Agent == "" || f.Agent == r.Agent) && (f.Session == "" || f.Session == r.Session) &&
		(f.Event == "" || f.Event == r.Event) && (f.Decision == "" || f.Decision == r.Outcome) &&
		(f.DryRun == nil || *f.DryRun == r.DryRun) &&
		(f.Since.IsZero() || !r.Time.Before(f.Since)) && (f.Until.IsZero() || r.Time.Before(f.Until)) &&
		(f.Hook == "" || slices.ContainsFunc(r.Hooks, func(v gate.Verdict) bool { return v.Name == f.Hook }))
}

func (e *exported) conversation(context.Context, gate.Record, *gate.Event) (gate.Transcript, error) {
	return nil, errors.New("the conversation was uploaded, and an export does not hold it: use --server or --data")
}

func (e *exported) answer(ctx context.Context, ev *gate.Event, since time.Time) (string, error) {
	return e.app.transcripts.AnswerMarked(ctx, ev, since)
}
