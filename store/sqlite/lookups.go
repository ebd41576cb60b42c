package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
)

// lookups are the connections on which single rows are read that an evaluation waits
// for. Each is used by one at a time, without what database/sql adds to a statement,
// which is more than such a row costs; and none of them is busy with a list.
type lookups struct {
	open   func() (*conn, error)
	free   chan *conn // nil: to be opened
	closed chan struct{}
	once   sync.Once
}

// lookupsAtOnce: more than a machine runs at a time only wait for each other.
const lookupsAtOnce = 8

func newLookups(open func() (*conn, error)) *lookups {
	l := &lookups{open: open, free: make(chan *conn, lookupsAtOnce), closed: make(chan struct{})}
	for range lookupsAtOnce {
		l.free <- nil
	}
	return l
}

// row reads the first row into dest, and reports whether there was one.
func (l *lookups) row(ctx context.Context, dest []driver.Value, text string, args ...any) (found bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("store was not asked in time: %w", err)
	}
	select {
	case <-l.closed:
		return false, errClosed
	default:
	}
	var c *conn
	select {
	case c = <-l.free:
	case <-l.closed:
		return false, errClosed
	case <-ctx.Done():
		return false, fmt.Errorf("store was not asked in time: %w", ctx.Err())
	}
	defer func() { l.free <- c }()
	if c == nil {
		if c, err = l.open(); err != nil {
			return false, explain(err)
		}
	}
	if found, err = c.row(dest, text, args...); err != nil {
		_ = c.close() // the next one opens another
		c = nil
	}
	return found, explain(err)
}

// close waits for those that are under way. What comes after them fails.
func (l *lookups) close() {
	l.once.Do(func() {
		close(l.closed)
		for range lookupsAtOnce {
			if c := <-l.free; c != nil {
				_ = c.close()
			}
		}
	})
}
