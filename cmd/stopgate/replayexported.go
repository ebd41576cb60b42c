package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"stopgate/gate"
	"stopgate/internal/regular"
)

// exported is a file of records, one a line.
type exported struct {
	file  *os.File
	app   *app
	lines int
	seen  map[string]seenLine // by evaluation id, of those that were picked
	twice repeats
}

// seenLine is where an evaluation stood first.
type seenLine struct {
	line int
	sum  [sha256.Size]byte // of its text
}

// repeats are lines that hold again what another has: exports that were put
// together, or went on where one had broken off, have them.
type repeats struct {
	n     int
	first string // a sentence about the first
}

// maxRecord bounds one record, whose payload has at most 32 MiB and which holds
// its evidence beside it.
const maxRecord = 64 << 20

func openExported(path string, app *app) (source, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, exit{exitInput, err}
	}
	e := &exported{file: f, app: app, seen: map[string]seenLine{}}
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

func (e *exported) repeated() repeats { return e.twice }

// list reads the lines in their order. A line that is no record is one that cannot
// be replayed, and so is the last one of an export that was cut. What stands there
// twice is listed once.
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
			if bad == nil {
				if skip, bad = e.again(r.EvaluationID, line, text); skip {
					continue
				}
			}
			if bad != nil {
				bad.Line, bad.Message = line, fmt.Sprintf("line %d: %s", line, bad.Message)
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

// again notes a line's evaluation. same: another line has it, word for word. One
// that says something else of it was edited, and nobody knows which of the two.
func (e *exported) again(id string, line int, text []byte) (same bool, bad *obstacle) {
	sum := sha256.Sum256(bytes.TrimSpace(text))
	first, known := e.seen[id]
	switch {
	case !known:
		e.seen[id] = seenLine{line, sum}
		return false, nil
	case first.sum != sum:
		return false, &obstacle{Code: badLine, Message: fmt.Sprintf("evaluation %.60q stands in line %d too, and they differ", id, first.line)}
	}
	if e.twice.n++; e.twice.n == 1 {
		e.twice.first = fmt.Sprintf("line %d is line %d again", line, first.line)
	}
	return true, nil
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
		return r, false, &obstacle{Code: badLine, Message: err.Error()}
	}
	text = bytes.TrimSpace(text)
	fields := members(text)
	if len(text) == 0 || fields["complete"] != nil && fields["evaluation_id"] == nil { // the export's own last line
		return r, true, nil
	}
	err = json.Unmarshal(text, &r)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && int(syntax.Offset) >= len(text) {
		return r, false, &obstacle{Code: badLine, Message: "the record is cut off"}
	}
	if err == nil && (r.EvaluationID == "" || r.Event == "") {
		err = errors.New("it has no evaluation_id, or no event")
	}
	if err == nil && !slices.Contains([]gate.Outcome{gate.Allow, gate.Block, gate.Ask}, r.Outcome) {
		err = fmt.Errorf("its decision is %.60q", r.Outcome)
	}
	if err != nil {
		return r, false, &obstacle{Code: badLine, Message: "no recorded evaluation: " + err.Error()}
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
