package postgres

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationWait is how long a replica waits for another that migrates. Many
// rows may have to be moved; a rollout would rather wait than fail.
const migrationWait = 2 * time.Minute

// migrate brings the database to this program's schema. It is the only step that
// creates anything. Replicas that start at once take turns, by a lock that ends
// with its transaction, whatever becomes of its holder.
func migrate(ctx context.Context, cfg *pgx.ConnConfig) error {
	db := stdlib.OpenDB(*cfg)
	defer db.Close()
	turn, err := db.BeginTx(ctx, nil)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = turn.Rollback() }()
	if err := takeTurn(ctx, turn); err != nil {
		return explain(err)
	}
	if err := createSchema(ctx, db); err != nil {
		return explain(err)
	}
	scripts, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, scripts, goose.WithDisableGlobalRegistry(true), goose.WithTableName("stopgate.migrations"))
	if err != nil {
		return explain(err)
	}
	have, want, err := provider.GetVersions(ctx)
	if err != nil {
		return explain(err)
	}
	if have > want {
		return fmt.Errorf("it was written by a newer stopgate (schema %d; this one knows %d): use that version, or another database", have, want)
	}
	if have == want {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("it cannot be migrated: %w", explain(err))
	}
	return nil
}

// takeTurn waits for the other replicas' migrations. The transaction then stands
// idle for as long as ours takes.
func takeTurn(ctx context.Context, turn *sql.Tx) error {
	if _, err := turn.ExecContext(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, migrationWait)
	defer cancel()
	_, err := turn.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, lockOf("migrations"))
	return err
}

// createSchema makes the schema where there is none: one that the database's
// owner has made for a role without the right to make any is used as it is. A
// schema of that name with other things in it is left alone.
func createSchema(ctx context.Context, db *sql.DB) error {
	var there, foreign bool
	err := db.QueryRowContext(ctx, `SELECT to_regnamespace('stopgate') IS NOT NULL,
		to_regclass('stopgate.migrations') IS NULL AND EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace('stopgate'))`).
		Scan(&there, &foreign)
	if err != nil {
		return err
	}
	if foreign {
		return fmt.Errorf("its schema \"stopgate\" is not stopgate's: use another database")
	}
	if !there {
		_, err = db.ExecContext(ctx, `CREATE SCHEMA stopgate`)
	}
	return err
}
