package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// conn is the writer's connection. It speaks to the driver itself: what
// database/sql adds per statement (locks, copies, a context watcher) is more
// than a prepared insert costs. It belongs to one goroutine.
type conn struct {
	raw   driver.Conn
	stmts map[string]driver.Stmt // by their text; the texts are constants of this package
	args  []driver.NamedValue    // reused
	idle  idle
}

// openConn opens a connection that writes.
func openConn(file string, opt Options) (*conn, error) {
	pragmas := []string{
		// A slice of the time that a write may wait; the writer asks again.
		fmt.Sprintf("busy_timeout(%d)", busySlice.Milliseconds()),
		"synchronous(FULL)",
		// What is erased is overwritten, not only forgotten.
		"secure_delete(ON)",
		"trusted_schema(OFF)",
		"cell_size_check(ON)",
	}
	if opt.Durability == Process {
		pragmas[1] = "synchronous(NORMAL)"
	}
	if opt.Lock {
		// The store moves the WAL into the database itself ([wal]). A short-lived
		// process has no upkeep and keeps SQLite's default.
		pragmas = append(pragmas, "wal_autocheckpoint(0)", fmt.Sprintf("journal_size_limit(%d)", walBytes))
	}
	return connect(file, pragmas)
}

// readPragmas are those of connections that only read. In WAL mode they never wait
// for the writer, nor the writer for them.
var readPragmas = []string{"busy_timeout(5000)", "query_only(ON)", "trusted_schema(OFF)"}

// openLookup opens a connection that only reads.
func openLookup(file string) (*conn, error) { return connect(file, readPragmas) }

func connect(file string, pragmas []string) (*conn, error) {
	connector, err := sqlite.NewConnector(dsn(file, pragmas...))
	if err != nil {
		return nil, err
	}
	raw, err := connector.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, stmts: map[string]driver.Stmt{}}, nil
}

// openReads opens the pool of what reads more than a row.
func openReads(file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(file, readPragmas...))
	if err != nil {
		return nil, err
	}
	// Reads are short; more connections than this only cost memory.
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	return db, nil
}

func dsn(file string, pragmas ...string) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: file, RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	return u.String()
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		s.Close()
	}
	return c.raw.Close()
}

func (c *conn) prepare(text string, args []any) (driver.Stmt, error) {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	if s, ok := c.stmts[text]; ok {
		return s, nil
	}
	s, err := c.raw.Prepare(text)
	if err != nil {
		return nil, err
	}
	c.stmts[text] = s
	return s, nil
}

// exec runs one statement. Arguments are int64, string, []byte or nil.
func (c *conn) exec(text string, args ...any) error {
	_, err := c.execCount(text, args...)
	return err
}

// execCount is exec, and says how many rows it changed.
func (c *conn) execCount(text string, args ...any) (int64, error) {
	s, err := c.prepare(text, args)
	if err != nil {
		return 0, err
	}
	result, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row reads the first row into dest, and reports whether there was one.
func (c *conn) row(dest []driver.Value, text string, args ...any) (bool, error) {
	s, err := c.prepare(text, args)
	if err != nil {
		return false, err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), c.args)
	if err != nil {
		return false, err
	}
	err = rows.Next(dest)
	if closing := rows.Close(); err == nil {
		err = closing
	}
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// each hands every row, of so many columns, to see. The values are its own only
// until it returns.
func (c *conn) each(see func(row []driver.Value), columns int, text string, args ...any) error {
	s, err := c.prepare(text, args)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), c.args)
	if err != nil {
		return err
	}
	v := make([]driver.Value, columns)
	for err == nil {
		if err = rows.Next(v); err == nil {
			see(v)
		}
	}
	closing := rows.Close()
	if errors.Is(err, io.EOF) {
		return closing
	}
	return err
}

// resultCode is SQLite's primary result code, 0 if the error is not SQLite's.
func resultCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// fromOutside reports whether the cause is the machine, not the statement: the
// same work would fail again, and the connection is not to be trusted.
func fromOutside(err error) bool {
	switch resultCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT,
		sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// explain puts what a person needs to know before SQLite's own words.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var says string
	switch resultCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		says = "store is busy: another process holds its lock"
	case sqlite3.SQLITE_FULL:
		says = "store has no space left on its disk"
	case sqlite3.SQLITE_IOERR:
		says = "store cannot read or write its disk"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		says = "store is damaged, or not a database; nothing was removed: restore a backup, or use another data directory"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		says = "store cannot be opened for writing"
	default:
		if strings.HasPrefix(err.Error(), "store ") {
			return err
		}
		says = "store failed"
	}
	return fmt.Errorf("%s: %w", says, err)
}

func isBusy(err error) bool {
	code := resultCode(err)
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// column is the one column of a query's rows.
func column[T any](ctx context.Context, db *sql.DB, query string, args ...any) (values []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, explain(err)
		}
		values = append(values, v)
	}
	return values, explain(rows.Err())
}
