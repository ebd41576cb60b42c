package sqlite

import (
	"context"
	"sync"
	"time"
)

const (
	// sweepEvery is how often what has outlived its time is looked for.
	sweepEvery = time.Minute
	// checkpointBytes is about how much is written between two checkpoints:
	// enough that the pages at the tables' ends, which every commit changes,
	// are moved once for thousands of commits.
	checkpointBytes = 8 << 20
	// checkpointPages is how long the WAL may be, in pages of 4 KiB, before the
	// writer itself finishes a checkpoint so that the WAL starts anew.
	checkpointPages = 4096
	// pageBytes is SQLite's page size, left at its default.
	pageBytes = 4096
)

// upkeep is the store's work in the background: moving the WAL into the
// database outside the way of commits, and deleting what is too old.
type upkeep struct {
	store *Store
	end   context.CancelFunc
	done  sync.WaitGroup
}

func startUpkeep(s *Store) *upkeep {
	ctx, end := context.WithCancel(context.Background())
	u := &upkeep{store: s, end: end}
	u.done.Go(func() { u.sweeping(ctx) })
	if s.opt.Lock {
		u.done.Go(func() { u.checkpointing(ctx) })
	}
	return u
}

func (u *upkeep) stop() {
	u.end()
	u.done.Wait()
}

// checkpointing moves the WAL whenever the writer says that it has grown. The
// bulk is moved here, beside the commits; only what they add meanwhile is left
// to the writer, since a WAL starts anew only when all of it was moved. An
// error is no harm: the WAL stays longer, and it is tried again.
func (u *upkeep) checkpointing(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.store.writer.grown:
		}
		if u.store.writer.checkpoint.Load() {
			continue // the writer is about to finish: it must not be in its way
		}
		var busy, pages, moved int64
		err := u.store.reads.QueryRowContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &pages, &moved)
		if err == nil && pages > checkpointPages {
			u.store.writer.checkpoint.Store(true)
		}
	}
}

// emptyWAL moves all of the WAL and cuts it to nothing, unless readers stand on
// it for longer than a second.
func (u *upkeep) emptyWAL() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = u.store.reads.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
}

func (u *upkeep) sweeping(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		_ = u.store.sweep(ctx) // what stays is found again at the next tick
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
