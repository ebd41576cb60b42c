package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pressly/goose/v3"

	"stopgate/gate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the file to this program's schema. It is the only step that
// creates anything; the claim keeps two processes from doing so at once.
func migrate(ctx context.Context, dir, file string) error {
	c, err := claimMigration(ctx, dir)
	if err != nil {
		return err
	}
	defer c.release()

	// Created here so that it has mode 0600 from the first moment; SQLite gives
	// the same mode to its other files. An existing file is not opened:
	// closing it would drop the locks that this process holds on it.
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("database %q cannot be made: %w", file, err)
	}
	db, err := sql.Open("sqlite", dsn(file, "busy_timeout(5000)"))
	if err != nil {
		return explain(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	return migrateSchema(ctx, db, file)
}

func migrateSchema(ctx context.Context, db *sql.DB, file string) error {
	var tables, owner int64
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE type = 'table'`).Scan(&tables); err != nil {
		return fmt.Errorf("database %q cannot be read: %w", file, explain(err))
	}
	if err := db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&owner); err != nil {
		return fmt.Errorf("database %q cannot be read: %w", file, explain(err))
	}
	if tables > 0 && owner != applicationID {
		return fmt.Errorf("database %q is not a stopgate database", file)
	}
	if tables == 0 { // before the first table, so that ours is never without it
		if _, err := db.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d`, applicationID)); err != nil {
			return fmt.Errorf("database %q cannot be written: %w", file, explain(err))
		}
	}
	if _, err := db.ExecContext(ctx, `PRAGMA journal_mode = WAL`); err != nil {
		return fmt.Errorf("database %q cannot be opened for writing: %w", file, explain(err))
	}
	scripts, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, scripts, goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(goose.NewGoMigration(6, &goose.GoFunc{RunTx: markReasons}, nil)))
	if err != nil {
		return fmt.Errorf("database %q: %w", file, explain(err))
	}
	have, want, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("database %q cannot be read: %w", file, explain(err))
	}
	if have > want {
		return fmt.Errorf("database %q was written by a newer stopgate (schema %d; this one knows %d): use that version, or another data directory", file, have, want)
	}
	if have == want {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("database %q cannot be migrated: %w", file, explain(err))
	}
	return nil
}

// markReasons is migration 5: ledgers that have the last rejection's reason get
// its mark. SQLite has no SHA-256 of its own.
func markReasons(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, `SELECT DISTINCT reason FROM counts WHERE reason <> ''`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var reasons []string
	for rows.Next() {
		var reason string
		if err := rows.Scan(&reason); err != nil {
			return err
		}
		reasons = append(reasons, reason)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, reason := range reasons {
		if _, err := tx.ExecContext(ctx, `UPDATE counts SET reason = ? WHERE reason = ?`, gate.MarkHead(reason), reason); err != nil {
			return err
		}
	}
	return nil
}

// applicationID is what a stopgate database calls itself ("stpg"), so that
// another program's file is never taken for one.
const applicationID = 0x73747067
