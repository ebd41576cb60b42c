package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"stopgate/gate"
	"stopgate/store/postgres"
	"stopgate/store/sqlite"
	"stopgate/transcripts"
)

type migrateCommand struct {
	From string `required:"" placeholder:"DIR" help:"Data directory with SQLite in it; no server may run on it."`
	To   string `required:"" placeholder:"URL" help:"PostgreSQL, as postgres://user@host/name; the password also from PGPASSWORD. It must be empty."`
}

// Help is the detail of `stopgate migrate --help`.
func (migrateCommand) Help() string {
	return "Moves counts, records, specs with their history, activations, API keys, overrides, the audit, idempotency keys and transcripts, all of it or nothing. The data directory stays as it is.\n\n" +
		"Example: PGPASSWORD=… stopgate migrate --from ./data --to postgres://stopgate@db.example/gate"
}

// Run moves a data directory into a database.
func (c migrateCommand) Run(p process) error {
	if _, err := os.Stat(filepath.Join(c.From, "stopgate.db")); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // opening it would make one
			err = fmt.Errorf("data directory %q has no stopgate.db", c.From)
		}
		return exit{exitInput, err}
	}
	source, err := sqlite.Open(p.ctx, sqlite.Options{Dir: c.From, Lock: true, Now: time.Now})
	if err != nil {
		return err
	}
	defer source.Close()
	texts, err := transcripts.Open(transcripts.Options{Dir: filepath.Join(c.From, "transcripts")})
	if err != nil {
		return exit{exitInput, err}
	}
	defer texts.Close()
	target, err := postgres.Open(p.ctx, postgres.Options{URL: c.To})
	if err != nil {
		return databaseError(err)
	}
	defer target.Close()
	moved, err := move(p.ctx, source, texts, target, p.stderr)
	if err != nil {
		return databaseError(err)
	}
	_, err = fmt.Fprintf(p.stdout, "moved to %s:\n%s\nNow start stopgate serve with this database in its server file. %s stays as it is.\n", target, moved, c.From)
	return err
}

// databaseError is the exit of what a database says.
func databaseError(err error) error {
	if _, says := errors.AsType[*gate.Error](err); err != nil && !says {
		return exit{exitUnreachable, err}
	}
	return err
}

// move answers, for people, what it moved.
func move(ctx context.Context, source *sqlite.Store, texts *transcripts.Store, target *postgres.Store, told io.Writer) (string, error) {
	dump, done, err := source.Dump(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = done() }() // it only read
	conversations, err := texts.Count()
	if err != nil {
		return "", err
	}
	progress := newProgress(told, int(dump.Rows.All())+conversations)
	err = target.Import(ctx, dump, texts.Each, progress.step)
	progress.end()
	if err != nil {
		return "", err
	}
	n := dump.Rows
	return fmt.Sprintf("  %d records, %d ledgers, %d versions of specs, %d activations, %d API keys, %d overrides, %d changes in the audit, %d idempotency keys, %d transcripts",
		n.Evaluations, n.Counts, n.Specs, n.Activations, n.APIKeys, n.Overrides, n.Changes, n.Keys, conversations), nil
}
