package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// writeWait is how long a write waits for its turn and for other
	// processes; a host's own deadline for a hook is seldom shorter than 10 s.
	writeWait = 5 * time.Second
	// busySlice is how long one try for SQLite's lock waits. Between two tries
	// those who have waited long enough are sent away, and new ones join.
	busySlice = 100 * time.Millisecond
)

var (
	errClosed = errors.New("store is closed")
	errSlow   = fmt.Errorf("store is busy: what came before has been written for %v", writeWait)
	errBusy   = fmt.Errorf("store is busy: another process has held its lock for %v", writeWait)
)

// write is one thing to be written, in one transaction with others.
//
// apply runs in the writer's goroutine. An [*gate.Error] means that it refused
// and has written nothing; after any other error the transaction is given up,
// and apply may be called again in one of its own.
type write interface{ apply(c *conn) error }

// sized writes say how many bytes they add.
type sized interface{ size() int }

// writer is the one goroutine that writes. It takes all writes that wait into
// one transaction; when that fails for one of them, each is tried alone.
type writer struct {
	open    func() (*conn, error)
	present func() error // the database is still the one that was opened
	wal     *wal
	queue   chan *job
	ended   chan struct{}

	mu     sync.RWMutex // held for reading while sending to queue
	closed bool

	// Owned by the goroutine.
	conn       *conn // nil: to be opened at the next write
	batch      []*job
	bytes      int  // what the batch adds
	spare      *job // taken from the queue, for the next batch
	closeError error
	took       time.Duration // by the last COMMIT
	expected   int           // how many writes were there at its end, queued ones included
}

// job is a write on its way. Its state says who may still end it: the waiter
// may withdraw it until the writer has taken it.
type job struct {
	write    write
	state    atomic.Int32
	deadline time.Time
	result   error
	done     chan struct{} // gets one token when result is set
}

const (
	jobWaiting = iota
	jobTaken
	jobWithdrawn
)

func startWriter(open func() (*conn, error), present func() error, log *wal) *writer {
	w := &writer{open: open, present: present, wal: log, queue: make(chan *job, 4*batchLimit), ended: make(chan struct{})}
	go w.run()
	return w
}

// do has one write written and returns its own result. When ctx ends, or
// writeWait is over, before the writer has taken it, nothing is written; after that
// the result is waited for, so that nobody is told of a failure that did not happen.
func (w *writer) do(ctx context.Context, what write) error {
	j := &job{write: what, deadline: time.Now().Add(writeWait), done: make(chan struct{}, 1)}
	if err := w.send(ctx, j); err != nil {
		return err
	}
	late := time.NewTimer(time.Until(j.deadline))
	defer late.Stop()
	var why error
	select {
	case <-j.done:
		return j.result
	case <-ctx.Done():
		why = fmt.Errorf("store was not asked in time: %w", ctx.Err())
	case <-late.C:
		why = errSlow
	}
	if j.state.CompareAndSwap(jobWaiting, jobWithdrawn) {
		return why
	}
	<-j.done
	return j.result
}

func (w *writer) send(ctx context.Context, j *job) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return errClosed
	}
	select {
	case w.queue <- j:
		return nil
	default:
	}
	late := time.NewTimer(writeWait)
	defer late.Stop()
	select {
	case w.queue <- j:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("store was not asked in time: %w", ctx.Err())
	case <-late.C:
		return fmt.Errorf("store is busy: its queue has been full for %v", writeWait)
	}
}

// close writes what is queued and ends the goroutine.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	close(w.queue)
	w.mu.Unlock()
	<-w.ended
	return w.closeError
}

func (j *job) size() int {
	if s, ok := j.write.(sized); ok {
		return s.size()
	}
	return 0
}
