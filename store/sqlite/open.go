// Package sqlite keeps everything that must survive a restart in one SQLite
// file: it is the embedded [gate.Store].
//
// The file is stopgate.db inside the data directory, in WAL mode. Several
// processes may share it: every write transaction takes the lock at its start,
// reads again what it builds on, and waits for others for a bounded time. Only
// a server takes the directory for itself ([Options.Lock]).
//
// Inside one process all writes go through one goroutine, which takes whatever
// is waiting into one transaction ([writer]): under load a commit to disk is
// shared by many decisions, and each waiter still gets its own result.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"

	"stopgate/gate"
	"stopgate/internal/durable"
)

// Durability says what a commit survives.
type Durability string

const (
	Power   Durability = "power"   // loss of power: every commit is synced
	Process Durability = "process" // kill -9, not loss of power
)

// Options of [Open]. Dir and Now are required.
type Options struct {
	Dir        string     // the data directory; made with mode 0700 if missing
	Durability Durability // empty: Power
	// Lock takes the directory for this store until Close, or until the
	// process ends. Stores without Lock may share it, also with one that has it.
	Lock bool
	// Retention is how long records are kept; 0 keeps them for ever. Less than
	// a day counts as a day, since an answer must be there to be given again
	// for as long as its Idempotency-Key.
	Retention time.Duration
	// MaxBytes is how large the database may become, in bytes of pages that are in
	// use; beyond it the oldest records go. 0: as large as the disk.
	MaxBytes int64
	// Conversation says whether a session's conversation is kept, which is not here:
	// then whose the session is stays known, however old its records are. nil: none
	// is.
	Conversation func(ctx context.Context, session string) (bool, error)
	Now          func() time.Time
}

// Store is a [gate.Store]; see the package comment.
type Store struct {
	opt      Options
	file     string
	identity os.FileInfo // of file, as it was opened
	claim    *claim      // nil without Lock
	reads    *sql.DB
	lookups  *lookups
	activeOf *sql.Stmt
	writer   *writer
	upkeep   *upkeep
	closing  sync.Once
	closed   error
}

var _ gate.Store = (*Store)(nil)

// Open opens the store, creating or migrating it as needed. A directory that
// another store has locked is an [*gate.Error] with CodeConflict. A file that is
// not ours, is damaged, or comes from a newer stopgate is an error, and is left
// as it is.
func Open(ctx context.Context, opt Options) (*Store, error) {
	if opt.Durability == "" {
		opt.Durability = Power
	}
	if opt.Durability != Power && opt.Durability != Process {
		return nil, gate.Errorf(gate.CodeValidation, "durability %q is unknown: want %q or %q", opt.Durability, Power, Process)
	}
	if opt.Dir == "" || opt.Now == nil {
		return nil, errors.New("store needs a directory and a clock")
	}
	if opt.Conversation == nil {
		opt.Conversation = func(context.Context, string) (bool, error) { return false, nil }
	}
	dir, err := filepath.Abs(opt.Dir)
	if err != nil {
		return nil, fmt.Errorf("data directory %q: %w", opt.Dir, err)
	}
	opt.Dir = dir
	if err := durable.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("data directory %q cannot be made: %w", dir, err)
	}
	// fdatasync writes all that is needed to read the data back and saves the
	// journal write of a timestamp. The switch is the driver's and holds for
	// the process; where the system has none, fsync stays.
	_, _ = sqlite.Fdatasync(true)

	s := &Store{opt: opt, file: filepath.Join(dir, "stopgate.db")}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	if s.opt.Lock {
		if s.claim, err = claimDir(s.opt.Dir); err != nil {
			return err
		}
	}
	if err := migrate(ctx, s.opt.Dir, s.file); err != nil {
		return err
	}
	if s.identity, err = os.Stat(s.file); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if s.reads, err = openReads(s.file); err != nil {
		return explain(err)
	}
	if s.activeOf, err = s.reads.PrepareContext(ctx, selectActive); err != nil {
		return explain(err)
	}
	s.lookups = newLookups(func() (*conn, error) { return openLookup(s.file) })
	s.writer = startWriter(func() (*conn, error) { return openConn(s.file, s.opt) }, s.present, newWAL(s.file))
	if s.opt.Lock {
		if err := s.writer.do(ctx, freeReservations{}); err != nil {
			return err
		}
	}
	s.upkeep = startUpkeep(s)
	return nil
}

// present reports whether the database is still where it was opened: what is
// written into a file that was removed or replaced is gone with the process,
// and must not be acknowledged.
func (s *Store) present() error {
	now, err := os.Stat(s.file)
	if err == nil && os.SameFile(now, s.identity) {
		return nil
	}
	return fmt.Errorf("store %q was removed or replaced while it was in use: start the service again", s.file)
}

// String names the store for people: without its directory, which is nobody's
// business who asks whether the server is ready.
func (s *Store) String() string { return "sqlite" }

// Close writes what is queued and lets the directory go. Calls after it fail;
// closing twice is no error.
func (s *Store) Close() error {
	s.closing.Do(func() {
		var errs []error
		if s.upkeep != nil {
			s.upkeep.stop()
		}
		if s.writer != nil {
			errs = append(errs, s.writer.close())
		}
		if s.lookups != nil {
			s.lookups.close()
		}
		if s.reads != nil {
			errs = append(errs, s.reads.Close())
		}
		if s.claim != nil {
			errs = append(errs, s.claim.release())
		}
		s.closed = errors.Join(errs...)
	})
	return s.closed
}

// Ping writes one row, so it fails where a commit would.
func (s *Store) Ping(ctx context.Context) error {
	return s.writer.do(ctx, probe{at: s.opt.Now().UnixMilli()})
}

type probe struct{ at int64 }

func (p probe) apply(c *conn) error {
	return c.exec(`UPDATE probe SET at = ? WHERE id = 1`, p.at)
}
