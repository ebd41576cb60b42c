package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stopgate/cmd/internal/hookclient"
	"stopgate/config"
	"stopgate/gate"
	"stopgate/transcripts"
)

// source is where recorded evaluations are.
type source interface {
	// list finds those that a filter picks, at most limit; an error ends the list.
	list(ctx context.Context, f gate.RecordFilter, limit int) iter.Seq2[found, error]
	// size is about how many those are; 0: nobody knows.
	size(limit int) int
	// repeated are those of the list that stood there twice and were listed once,
	// for when it has ended.
	repeated() repeats
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

func (s stored) size(int) int { return 0 }

func (s stored) repeated() (none repeats) { return none }

func (s stored) list(ctx context.Context, f gate.RecordFilter, limit int) iter.Seq2[found, error] {
	return pages(f, limit, func(f gate.RecordFilter) ([]gate.RecordSummary, string, error) { return s.store.Records(ctx, f) },
		func(ctx context.Context, id string) (gate.Record, error) {
			r, err := s.store.Record(ctx, id)
			if gate.CodeOf(err) == gate.CodeNotFound {
				err = &obstacle{Code: gone, Message: "it was erased meanwhile"}
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
