package sqlite

import (
	"context"
	"sync"
	"time"
)

// sweepEvery is how often what has outlived its time is looked for.
const sweepEvery = time.Minute

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
		u.done.Go(func() { s.writer.wal.moveBeside(ctx, s.reads) })
	}
	return u
}

func (u *upkeep) stop() {
	u.end()
	u.done.Wait()
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
