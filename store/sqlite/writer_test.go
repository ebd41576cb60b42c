package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/storetest"
)

func openForTest(t *testing.T, opt Options) *Store {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	s, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func plainCommit(n int) gate.Commit {
	return gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, storetest.Record(n) }}
}

// doing is a write made of a function.
type doing func(c *conn) error

func (f doing) apply(c *conn) error { return f(c) }

// hold keeps the writer inside a transaction until let is called, so that
// what comes meanwhile forms one batch.
func hold(t *testing.T, s *Store) (let func()) {
	t.Helper()
	inside, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() {
		ended <- s.writer.do(context.Background(), doing(func(c *conn) error {
			once.Do(func() { close(inside) })
			<-release
			return nil
		}))
	}()
	<-inside
	return func() {
		close(release)
		if err := <-ended; err != nil {
			t.Errorf("holding write: %v", err)
		}
	}
}

// queued waits until n writes are in the queue.
func queued(s *Store, n int) {
	for len(s.writer.queue) < n {
		time.Sleep(100 * time.Microsecond)
	}
}

// TestBatch: in one transaction with others, each write has its own result.
func TestBatch(t *testing.T) {
	s := openForTest(t, Options{Lock: true})
	if err := s.Commit(t.Context(), plainCommit(1)); err != nil {
		t.Fatal(err)
	}
	var commits int
	let := hold(t, s)
	results := make([]error, 6)
	var running sync.WaitGroup
	start := func(i int, f func() error) {
		running.Go(func() { results[i] = f() })
		queued(s, i+1)
	}
	start(0, func() error { return s.Commit(context.Background(), plainCommit(2)) })
	start(1, func() error { return s.DeleteSpec(context.Background(), gate.AgentSpec, "none", gate.Actor{}, "") }) // refused
	start(2, func() error {
		return s.writer.do(context.Background(), doing(func(c *conn) error {
			commits++ // once in the batch, once alone
			return nil
		}))
	})
	start(3, func() error { return s.Commit(context.Background(), plainCommit(1)) }) // the id is taken
	start(4, func() error { return s.writer.do(context.Background(), doing(func(*conn) error { panic("no") })) })
	start(5, func() error { return s.Commit(context.Background(), plainCommit(3)) })
	let()
	running.Wait()
	for i, wantError := range []bool{false, true, false, true, true, false} {
		if (results[i] != nil) != wantError {
			t.Errorf("write %d: %v, want an error: %v", i, results[i], wantError)
		}
	}
	if gate.CodeOf(results[1]) != gate.CodeNotFound {
		t.Errorf("refused write: %v", results[1])
	}
	if commits != 2 {
		t.Errorf("a member of the failed batch was applied %d times, want once in it and once alone", commits)
	}
	for n := 1; n <= 3; n++ {
		if _, err := s.Record(t.Context(), storetest.ID(n)); err != nil {
			t.Errorf("record %d: %v", n, err)
		}
	}
}

// TestCancelled: a caller that leaves before its turn has written nothing; one
// whose write is under way hears how it ended.
func TestCancelled(t *testing.T) {
	s := openForTest(t, Options{Lock: true})
	let := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- s.Commit(ctx, plainCommit(1)) }()
	queued(s, 1)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("commit of a caller who left: %v", err)
	}
	let()
	if err := s.Commit(t.Context(), plainCommit(2)); err != nil {
		t.Errorf("the next commit: %v", err)
	}
	if _, err := s.Record(t.Context(), storetest.ID(1)); gate.CodeOf(err) != gate.CodeNotFound {
		t.Errorf("the withdrawn record is stored: %v", err)
	}

	ctx, cancel = context.WithCancel(t.Context())
	err := s.writer.do(ctx, doing(func(c *conn) error { cancel(); return nil }))
	if err != nil {
		t.Errorf("write under way when its caller left: %v, want its own result", err)
	}
}

// TestStandingWriter: nobody waits behind a disk that stands still for longer than
// a write may, whatever the caller's patience, and what was given up is not written
// later.
func TestStandingWriter(t *testing.T) {
	t.Parallel()
	s := openForTest(t, Options{Lock: true})
	let := hold(t, s)
	began := time.Now()
	if err := s.Commit(context.Background(), plainCommit(1)); !errors.Is(err, errSlow) {
		t.Errorf("commit behind a standing one: %v", err)
	}
	if took := time.Since(began); took < writeWait {
		t.Errorf("it was given up after %v", took)
	}
	let()
	if err := s.Commit(t.Context(), plainCommit(2)); err != nil {
		t.Errorf("the next: %v", err)
	}
	if _, err := s.Record(t.Context(), storetest.ID(1)); gate.CodeOf(err) != gate.CodeNotFound {
		t.Errorf("what was given up is stored: %v", err)
	}
}

// TestCloseWritesTheQueue: what was asked before Close is written.
func TestCloseWritesTheQueue(t *testing.T) {
	opt := Options{Dir: t.TempDir(), Now: time.Now}
	s := openForTest(t, opt)
	let := hold(t, s)
	results := make(chan error, 5)
	for n := range 5 {
		go func() { results <- s.Commit(context.Background(), plainCommit(n)) }()
	}
	queued(s, 5)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	let()
	for range 5 {
		if err := <-results; err != nil {
			t.Errorf("queued commit: %v", err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	s = openForTest(t, opt)
	for n := range 5 {
		if _, err := s.Record(t.Context(), storetest.ID(n)); err != nil {
			t.Error(err)
		}
	}
}

// TestFullDatabase: while there is no space every waiter is told, and when it
// is back the store works again.
func TestFullDatabase(t *testing.T) {
	s := openForTest(t, Options{Lock: true})
	var pages []driver.Value
	err := s.writer.do(t.Context(), doing(func(c *conn) error {
		pages = make([]driver.Value, 1)
		_, err := c.row(pages, `PRAGMA page_count`)
		if err == nil {
			err = c.exec(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages[0]))
		}
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	// A connection that failed is replaced: the new one is as limited.
	open := s.writer.open
	full := func() (*conn, error) {
		c, err := open()
		if err == nil {
			err = c.exec(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages[0]))
		}
		return c, err
	}
	let := hold(t, s)
	s.writer.open = full // the writer is held, and reads it only after let
	results := make(chan error, 20)
	for n := range 20 {
		go func() {
			c := plainCommit(n)
			c.Settle = func(now gate.Counts) (gate.Counts, gate.Record) {
				r := storetest.Record(n)
				r.Reason = strings.Repeat("long ", 4000)
				return now, r
			}
			results <- s.Commit(context.Background(), c)
		}()
	}
	queued(s, 20)
	let()
	for range 20 {
		if err := <-results; err == nil || !strings.Contains(err.Error(), "no space") {
			t.Errorf("commit to a full store: %v", err)
		}
	}
	if err := s.writer.do(t.Context(), doing(func(*conn) error { s.writer.open = open; return nil })); err != nil {
		t.Errorf("a write that needs no space: %v", err)
	}
	if err := s.writer.do(t.Context(), doing(func(c *conn) error { return c.exec(`PRAGMA max_page_count = 1000000`) })); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), plainCommit(50)); err != nil {
		t.Errorf("commit after space came back: %v", err)
	}
	if items, _, err := s.Records(t.Context(), gate.RecordFilter{}); err != nil || len(items) != 1 {
		t.Errorf("%d records (%v), want the one that was acknowledged", len(items), err)
	}
}

// TestFullDisk is the same on a real file system, where root may make one.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "none", dir).Run(); err != nil {
		t.Skipf("no file system of its own: %v", err)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	s := openForTest(t, Options{Dir: dir, Lock: true})
	t.Cleanup(func() { s.Close() })
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 500<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for n := 1; ; n++ {
		c := plainCommit(n)
		c.Settle = func(now gate.Counts) (gate.Counts, gate.Record) {
			r := storetest.Full(n)
			r.Reason = strings.Repeat("long ", 2000)
			return now, r
		}
		if err := s.Commit(t.Context(), c); err != nil {
			if !strings.HasPrefix(err.Error(), "store ") {
				t.Errorf("error is %v", err)
			}
			break
		}
		acknowledged++
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), plainCommit(9999)); err != nil {
		t.Errorf("commit after space came back: %v", err)
	}
	items, _, err := s.Records(t.Context(), gate.RecordFilter{Limit: 1000})
	if err != nil || len(items) != acknowledged+1 {
		t.Errorf("%d records (%v), want %d", len(items), err, acknowledged+1)
	}
}

// TestLockedByAnother: a foreign lock delays a commit for as long as it may
// wait, then the commit fails and says why; after it, the store works.
func TestLockedByAnother(t *testing.T) {
	s := openForTest(t, Options{Lock: true})
	other, err := openConn(s.file, s.opt)
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()

	if err := other.exec(`BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	late := make(chan error, 3)
	began := time.Now()
	for n := range 3 {
		go func() { late <- s.Commit(context.Background(), plainCommit(n)) }()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Commit(ctx, plainCommit(5)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("commit of a caller with less patience: %v", err)
	}
	if _, _, err := s.Counts(t.Context(), gate.LedgerKey{Session: "s"}); err != nil {
		t.Errorf("a read waits for a foreign write: %v", err)
	}
	for range 3 {
		if err := <-late; err == nil || !strings.Contains(err.Error(), "store is busy") {
			t.Errorf("commit to a locked store: %v", err)
		}
	}
	if took := time.Since(began); took < writeWait || took > writeWait+3*time.Second {
		t.Errorf("a locked store took %v to say so, want about %v", took, writeWait)
	}

	soon := make(chan error, 1)
	go func() { soon <- s.Commit(context.Background(), plainCommit(6)) }()
	time.Sleep(2 * busySlice) // so that the commit meets the lock
	if err := other.exec(`COMMIT`); err != nil {
		t.Fatal(err)
	}
	if err := <-soon; err != nil {
		t.Errorf("commit that met a lock for a moment: %v", err)
	}
	items, _, err := s.Records(t.Context(), gate.RecordFilter{})
	if err != nil || len(items) != 1 || items[0].EvaluationID != storetest.ID(6) {
		t.Errorf("stored are %v (%v)", items, err)
	}
}

// TestRolledBackCounts: a commit that was settled inside a batch which failed
// is settled anew with what the ledger then holds.
func TestRolledBackCounts(t *testing.T) {
	s := openForTest(t, Options{Lock: true})
	key := gate.LedgerKey{Agent: "builder", Session: "s1"}
	let := hold(t, s)
	var running sync.WaitGroup
	tries := 0
	running.Go(func() {
		_ = s.writer.do(context.Background(), doing(func(c *conn) error {
			if tries++; tries > 1 {
				return errors.New("not alone")
			}
			return writeCounts(c, key, gate.Counts{StopRejections: 5})
		}))
	})
	queued(s, 1)
	var stored error
	running.Go(func() {
		stored = s.Commit(context.Background(), gate.Commit{Key: key, Settle: func(now gate.Counts) (gate.Counts, gate.Record) {
			now.StopRejections++
			r := storetest.Record(1)
			r.StopRejectionCount = now.StopRejections
			return now, r
		}})
	})
	queued(s, 2)
	running.Go(func() {
		_ = s.writer.do(context.Background(), doing(func(*conn) error { return errors.New("the batch fails") }))
	})
	queued(s, 3)
	let()
	running.Wait()
	if stored != nil {
		t.Fatal(stored)
	}
	counts, _, err := s.Counts(t.Context(), key)
	if err != nil || counts.StopRejections != 1 {
		t.Errorf("%d rejections counted (%v), want 1", counts.StopRejections, err)
	}
	if r, err := s.Record(t.Context(), storetest.ID(1)); err != nil || r.StopRejectionCount != 1 {
		t.Errorf("record has count %d (%v), want 1", r.StopRejectionCount, err)
	}
}
