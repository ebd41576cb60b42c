package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
)

const (
	// tries is how often a transaction is begun that did not come about for a
	// reason that passes. With the pauses between them they take a second.
	tries = 6
	// nowMillis is the database's time in Unix milliseconds, as it is, not as it
	// was when the transaction began.
	nowMillis = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`
)

// step is a part of a transaction. It may be run several times, each time from a
// clean slate.
type step func(ctx context.Context, tx pgx.Tx) error

// write runs one transaction. When ctx ends, or something fails, before its
// commit, nothing is written; what failed for a reason that passes is tried
// again. An [unknownError] is a commit of which it could not be learnt whether
// it came about; any other error means that nothing was written.
func (s *Store) write(ctx context.Context, do step) error {
	return s.writeWithin(ctx, s.patience, do)
}

// writeWithin is write for a transaction that may take longer.
func (s *Store) writeWithin(ctx context.Context, most time.Duration, do step) error {
	return s.persist(ctx, most, func(ctx context.Context) error {
		tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
		if err != nil {
			return err
		}
		if err := run(ctx, tx, do); err != nil {
			abandon(ctx, tx)
			return err
		}
		return s.commitTx(ctx, tx)
	})
}

// read asks with one of the pool's connections, or again with another if that
// one was broken.
func (s *Store) read(ctx context.Context, do func(ctx context.Context, conn *pgxpool.Conn) error) error {
	return s.persist(ctx, s.patience, func(ctx context.Context) error {
		return s.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return do(ctx, conn) })
	})
}

// persist tries until it succeeds, fails for good, or has taken its time.
func (s *Store) persist(ctx context.Context, most time.Duration, do func(context.Context) error) error {
	if s.ending.Err() != nil {
		return errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	pause := 10 * time.Millisecond
	for n := 1; ; n++ {
		err := do(ctx)
		if err == nil || n == tries || !passes(err) {
			return explain(err)
		}
		select {
		case <-ctx.Done():
			return explain(err)
		case <-time.After(pause + rand.N(pause)): // so that those who collided do not again
		}
		pause *= 2
	}
}

// run keeps a panic of a step (a Settle is foreign code) from the process, and
// its connection from being lost.
func run(ctx context.Context, tx pgx.Tx, do step) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("store write panicked: %v", p)
		}
	}()
	return do(ctx, tx)
}

// abandon rolls back, also for a caller who has gone. A connection on which that
// fails is closed by the pool, and the server rolls back by itself.
func abandon(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// commitTx commits, and waits for the answer though the caller may have gone: so
// that nobody is told of a failure that did not happen.
func (s *Store) commitTx(ctx context.Context, tx pgx.Tx) error {
	if err := ctx.Err(); err != nil {
		abandon(ctx, tx)
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience)
	defer cancel()
	err := tx.Commit(ctx)
	if err == nil || errors.Is(err, pgx.ErrTxCommitRollback) {
		return err
	}
	// The server's own refusal is an answer, unless it was being shut down: it
	// may have been about to say yes.
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && !strings.HasPrefix(refused.Code, "57") {
		return err
	}
	return &unknownError{err}
}

// unknownError is a commit whose answer was lost.
type unknownError struct{ cause error }

func (e *unknownError) Error() string {
	return "the answer to a commit was lost, and it may have come about: " + e.cause.Error()
}

func (e *unknownError) Unwrap() error { return e.cause }

// passes reports whether the same work may succeed if it is begun again: it
// collided with another transaction, or its connection broke.
func passes(err error) bool {
	if _, ok := errors.AsType[*unknownError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*gate.Error](err); ok {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "40001", "40P01": // serialization_failure, deadlock_detected
			return true
		case "53300", "57P01", "57P02", "57P03": // too_many_connections; the server is going down, has crashed, is starting
			return true
		case "25P03": // idle_in_transaction_session_timeout: this process stood still
			return true
		}
		return strings.HasPrefix(e.Code, "08") // connection_exception
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return broken(err)
}

// broken reports whether the cause is the connection, or that there is none.
func broken(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// explain puts what a person needs to know before the driver's own words, which
// hold no password.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*gate.Error](err); ok {
		return e
	}
	var says string
	e, fromServer := errors.AsType[*pgconn.PgError](err)
	switch {
	case fromServer && e.Code == "55P03", fromServer && strings.HasPrefix(e.Code, "40"):
		says = "store is busy: another replica holds its lock"
	case fromServer && e.Code == "53100":
		says = "store has no space left on its disk"
	case fromServer && e.Code == "25006":
		says = "store cannot be written: its server is read-only"
	case !fromServer && broken(err), errors.Is(err, context.DeadlineExceeded):
		says = "store cannot be reached, or does not answer"
	default:
		if strings.HasPrefix(err.Error(), "store ") {
			return err
		}
		says = "store failed"
	}
	return fmt.Errorf("%s: %w", says, err)
}

// lockOf is the number of the advisory lock of something. Two things with one
// number, one pair in 2^64, would wait for each other and no more.
func lockOf(parts ...string) int64 {
	h := sha256.New()
	for _, p := range append([]string{"stopgate"}, parts...) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

// lock takes advisory locks until the transaction ends, one statement each: what
// is read after it sees what the lock's last holder has written. Everybody who
// takes several does so in one order: a key's, that of a session's erasure, a
// session's.
func lock(batch *pgx.Batch, number int64) {
	batch.Queue(`SELECT pg_advisory_xact_lock($1)`, number)
}
