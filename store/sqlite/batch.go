package sqlite

import (
	"errors"
	"fmt"
	"time"

	"stopgate/gate"
)

const (
	// batchLimit bounds one transaction, and so the time that its first
	// member waits for its last.
	batchLimit = 256
	// batchBytes bounds what one transaction adds to the WAL.
	batchBytes = 4 << 20
)

// run is the writer's goroutine: batch after batch until the queue is closed.
func (w *writer) run() {
	defer close(w.ended)
	for w.collect() {
		w.writeBatch()
		if w.conn != nil {
			w.wal.moveRest(w.conn)
		}
	}
	if w.conn != nil {
		w.closeError = w.conn.close()
	}
}

// collect waits for a write and takes what else is there. It reports false
// when the queue is closed and empty.
func (w *writer) collect() bool {
	first := w.spare
	w.spare = nil
	if first == nil {
		var open bool
		if first, open = <-w.queue; !open {
			return false
		}
	}
	clear(w.batch)
	w.batch, w.bytes = append(w.batch[:0], first), first.size()
	w.join()
	w.gather()
	return true
}

// gather waits a moment for those whom the last transaction has just answered,
// since they are the ones who come again: otherwise the first to return is
// written alone and the rest wait for it, two commits for what fits in one. It
// waits for at most an eighth of what the last commit took, and not for more
// than were there then.
func (w *writer) gather() {
	const notWorthIt = 20 * time.Microsecond
	patience := w.took / 8
	if len(w.batch) >= w.expected || patience < notWorthIt {
		return
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for len(w.batch) < min(w.expected, batchLimit) && w.spare == nil {
		select {
		case <-late.C:
			return
		case j, open := <-w.queue:
			if !open {
				return
			}
			w.add(j)
		}
	}
}

// join adds what waits in the queue to the batch, within its limits.
func (w *writer) join() {
	for len(w.batch) < batchLimit && w.spare == nil {
		select {
		case j, open := <-w.queue:
			if !open {
				return
			}
			w.add(j)
		default:
			return
		}
	}
}

// add puts one more into the batch, or aside for the next if it is too large
// for this one.
func (w *writer) add(j *job) {
	if size := j.size(); w.bytes+size > batchBytes {
		w.spare = j
	} else {
		w.batch, w.bytes = append(w.batch, j), w.bytes+size
	}
}

// writeBatch writes the batch in one transaction, or, when one of it fails,
// each in its own. Every member gets its result.
func (w *writer) writeBatch() {
	if !w.begin() {
		return
	}
	w.batch = takeWaiting(w.batch)
	err := w.applyAll(w.batch)
	if err == nil {
		w.finish(w.batch, nil)
		return
	}
	w.rollback(err)
	if fromOutside(err) || len(w.batch) == 1 {
		w.finish(w.batch, explain(err))
		return
	}
	for _, j := range w.batch {
		w.writeAlone(j)
	}
}

func (w *writer) writeAlone(j *job) {
	err := w.tryBegin()
	for isBusy(err) && time.Now().Before(j.deadline) {
		err = w.tryBegin()
	}
	if err == nil {
		err = w.applyAll([]*job{j})
	}
	if err != nil {
		w.rollback(err)
	}
	w.finish([]*job{j}, explain(err))
}

// begin opens the batch's transaction. While another process holds the lock it
// sends those away who have waited too long; it reports false when nobody is
// left.
func (w *writer) begin() bool {
	for {
		err := w.tryBegin()
		if err == nil {
			return true
		}
		if !isBusy(err) {
			w.rollback(err)
			w.finish(w.batch, explain(err))
			return false
		}
		now := time.Now()
		kept := w.batch[:0]
		for _, j := range w.batch {
			if now.After(j.deadline) {
				w.finish([]*job{j}, errBusy)
			} else if j.state.Load() != jobWithdrawn {
				kept = append(kept, j)
			}
		}
		w.batch = kept // their bytes stay counted: the batch is the smaller for it
		w.join()
		if len(w.batch) == 0 {
			return false
		}
	}
}

// tryBegin waits for SQLite's lock for a slice of time.
func (w *writer) tryBegin() (err error) {
	if err := w.present(); err != nil {
		return err
	}
	if w.conn == nil {
		if w.conn, err = w.open(); err != nil {
			return err
		}
	}
	if err := w.conn.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	return w.conn.begun()
}

// applyAll applies the jobs and commits. Refusals are results, not failures.
func (w *writer) applyAll(jobs []*job) error {
	for _, j := range jobs {
		j.result = nil
		if _, counts := j.write.(*commit); !counts {
			w.conn.idle.forget() // it may erase, or join
		}
		err := apply(w.conn, j.write)
		if refused, ok := errors.AsType[*gate.Error](err); ok {
			j.result = refused
		} else if err != nil {
			return err
		}
	}
	began := time.Now()
	if err := w.conn.exec(`COMMIT`); err != nil {
		return err
	}
	w.took, w.expected = time.Since(began), len(jobs)+len(w.queue)
	w.wal.wrote(added(jobs))
	return nil
}

// apply keeps a panic of one write (a Settle is foreign code) from the others.
func apply(c *conn, what write) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("store write panicked: %v", p)
		}
	}()
	return what.apply(c)
}

// rollback gives the transaction up. A connection that met a failure of the
// machine, or cannot roll back, is replaced.
func (w *writer) rollback(cause error) {
	if w.conn == nil {
		return
	}
	w.conn.idle.forget()
	// SQLite has rolled back by itself after some failures; then this fails,
	// and a new connection is the cheap way to be sure.
	if err := w.conn.exec(`ROLLBACK`); err != nil || fromOutside(cause) {
		_ = w.conn.close()
		w.conn = nil
	}
}

// finish gives the jobs their result: err, or, if that is nil, their own.
func (w *writer) finish(jobs []*job, err error) {
	for _, j := range jobs {
		if err != nil {
			j.result = err
		}
		j.done <- struct{}{}
	}
}

// added is about how many bytes the jobs' transaction has added to the WAL.
func added(jobs []*job) int {
	// A row's place in table and indices beside its bytes, and the pages that
	// every transaction changes.
	bytes := len(jobs)*512 + 5*pageBytes
	for _, j := range jobs {
		bytes += j.size()
	}
	return bytes
}

// takeWaiting takes the jobs whose waiters are still there.
func takeWaiting(jobs []*job) []*job {
	kept := jobs[:0]
	for _, j := range jobs {
		if j.state.CompareAndSwap(jobWaiting, jobTaken) {
			kept = append(kept, j)
		}
	}
	return kept
}
