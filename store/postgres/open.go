// Package postgres keeps everything that must survive a restart in PostgreSQL:
// it is the [gate.Store] for several replicas, which share one database.
//
// What two replicas may want to change at once is guarded by the database: each
// write is one transaction that first takes advisory locks on what it builds
// on (a session's counts, a caller's key), then reads it, then writes. So a
// replica that is killed at any moment leaves nothing half done and nothing
// locked, and none can pass a cap that another has reached. Times that replicas
// must agree on are the database's.
//
// Every call ends soon: a server that cannot be reached, or does not answer, is
// an error after [Patience].
package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
)

const (
	// Patience is how long one call may take, tries and locks included. It is
	// what a write to SQLite waits, and well within the deadline that hosts set.
	Patience = 5 * time.Second
	// idleTimeout is how long a transaction may stand still before the server
	// gives it up. Ours send what they have to say at once; others wait for
	// their locks no longer than Patience.
	idleTimeout = 2 * time.Second
	// connectTimeout bounds one attempt to connect, where the URL does not say.
	connectTimeout = 3 * time.Second
	// maxConns is how many connections a replica uses, where the URL does not
	// say. A commit holds one for about a millisecond, so they are enough for
	// thousands a second, and six replicas fit into a server's usual 100.
	maxConns = 16
)

// Options of [Open]. URL is required.
type Options struct {
	// URL as postgres://user:password@host:5432/name?sslmode=verify-full. What
	// it does not say comes from where libpq takes it: PGPASSWORD, PGSSLROOTCERT,
	// ~/.pgpass, …
	URL string
	// Retention is how long records are kept; 0 keeps them for ever. Less than
	// a day counts as a day, since an answer must be there to be given again
	// for as long as its Idempotency-Key.
	Retention time.Duration
	// Conversation says whether a session's conversation is kept, which is not here:
	// then whose the session is stays known, however old its records are. nil: none
	// is.
	Conversation func(ctx context.Context, session string) (bool, error)
	// MaxBytes is how much records may come to, as they are stored and without
	// their places in indices; beyond it the oldest go. MaxTextBytes is the same for
	// texts, as they were given. 0: as much as the disk holds.
	MaxBytes, MaxTextBytes int64
}

// Store is a [gate.Store]; see the package comment.
type Store struct {
	where     string
	retention time.Duration
	kept      func(ctx context.Context, session string) (bool, error) // Options.Conversation
	maxBytes  int64
	maxTexts  int64
	measured  measure // by the sweeper
	pool      *pgxpool.Pool
	listener  *pgx.ConnConfig // of the connection that hears of changes
	pollEvery time.Duration   // how often it is looked for changes that were not heard of
	patience  time.Duration   // [Patience]
	long      chan struct{}   // one slot for each text on its way

	ending  context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup
}

var (
	_ gate.Store       = (*Store)(nil)
	_ gate.SpecWatcher = (*Store)(nil)
	_ gate.SharedTexts = (*Store)(nil)
)

// Open connects, and brings the database to this program's schema. A URL that
// cannot be used is an [*gate.Error] with CodeValidation. A database that cannot
// be reached, or comes from a newer stopgate, is an error. No error holds a
// password.
func Open(ctx context.Context, opt Options) (*Store, error) {
	cfg, err := parse(opt.URL)
	if err != nil {
		return nil, err
	}
	cfg.AfterConnect = setUp
	if err := migrate(ctx, cfg.ConnConfig); err != nil {
		return nil, fmt.Errorf("database %s: %w", Where(opt.URL), err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", Where(opt.URL), err)
	}
	listener := cfg.ConnConfig.Copy()
	listener.RuntimeParams["application_name"] += " listener"
	s := &Store{where: Where(opt.URL), retention: opt.Retention, maxBytes: opt.MaxBytes, maxTexts: opt.MaxTextBytes, kept: opt.Conversation,
		pool: pool, listener: listener, pollEvery: pollEvery, patience: Patience,
		long: make(chan struct{}, max(1, cfg.MaxConns/2))}
	if s.kept == nil {
		s.kept = func(context.Context, string) (bool, error) { return false, nil }
	}
	s.ending, s.end = context.WithCancel(context.Background())
	s.running.Go(s.sweeping)
	return s, nil
}

// setUp makes the server give up what a replica left in the middle when it
// vanished without closing its connection, as a machine does that loses its
// network: its locks would hold up everybody else. And it gives up a lock
// shortly before its client does, so that nobody stands in line who has gone.
func setUp(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, fmt.Sprintf(`SET idle_in_transaction_session_timeout = %d; SET lock_timeout = %d`,
		idleTimeout.Milliseconds(), (Patience-500*time.Millisecond).Milliseconds()))
	return err
}

// String names the store for people, without a secret.
func (s *Store) String() string { return s.where }

// Close ends the store's work in the background and its connections. Calls after
// it fail; closing twice is no error.
func (s *Store) Close() error {
	s.end()
	s.running.Wait()
	s.pool.Close()
	return nil
}

// Ping writes one row, so it fails where a commit would: on a server that is
// read-only, or full.
func (s *Store) Ping(ctx context.Context) error {
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE stopgate.probe SET at = `+nowMillis+` WHERE id = 1`)
		return err
	})
}

var errClosed = errors.New("store is closed")
