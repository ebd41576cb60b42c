package sqlite

import (
	"database/sql/driver"
	"errors"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"stopgate/store/record"
)

const insertEvaluation = `INSERT INTO evaluations (seq, id, agent, session, event, decision, head, idempotency, evidence, payload)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// insert writes a row, at the next free place if its moment is taken.
func insert(c *conn, w *record.Row, reservation []byte) error {
	seq, head := w.Seq, w.Head
	err := insertAt(c, w, seq, head, reservation)
	if taken(err) {
		if seq, err = nextFree(c, w.Seq); err != nil {
			return err
		}
		if head, err = record.WithTime(w.Head, w.Seq); err != nil {
			return err
		}
		err = insertAt(c, w, seq, head, reservation)
	}
	if err != nil {
		return err
	}
	for _, name := range w.Hooks {
		if err := c.exec(`INSERT INTO evaluation_hooks (seq, hook) VALUES (?, ?)`, seq, name); err != nil {
			return err
		}
	}
	return nil
}

func insertAt(c *conn, w *record.Row, seq int64, head, reservation []byte) error {
	return c.exec(insertEvaluation, seq, w.ID, w.Agent, w.Session, w.Event, w.Decision,
		head, blob(reservation), blob(w.Evidence), blob(w.Payload))
}

// taken reports whether another record has the row's very nanosecond.
func taken(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || e.Code() == sqlite3.SQLITE_CONSTRAINT_ROWID)
}

// nextFree is a free place after seq, in one look however many are taken (a
// clock may stand still): behind the last one within a millisecond, and so on
// while that lands on a full one.
func nextFree(c *conn, seq int64) (int64, error) {
	const span = int64(time.Millisecond)
	for {
		var v [1]driver.Value
		if _, err := c.row(v[:], `SELECT max(seq) FROM evaluations WHERE seq BETWEEN ? AND ?`, seq, seq+span); err != nil {
			return 0, err
		}
		last, ok := v[0].(int64)
		if !ok {
			return seq, nil
		}
		seq = last + 1
	}
}

// blob is NULL for what is not there.
func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
