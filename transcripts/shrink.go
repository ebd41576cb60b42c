package transcripts

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"stopgate/gate"
)

// shrinkEvery is how often it is looked whether there is too much.
const shrinkEvery = time.Minute

func (s *Store) shrinking() {
	s.every(shrinkEvery, func(ctx context.Context) { _ = s.shrink(ctx, time.Now()) }) // what stays is found again
}

// every does something at intervals until the store is closed.
func (s *Store) every(interval time.Duration, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-s.ending.Done():
			return
		case <-tick.C:
			do(s.ending)
		}
	}
}

// dated is a session's transcript, and when it was last added to.
type dated struct {
	key   key
	bytes int64
	added time.Time
}

// shrink removes the transcripts that were not added to for longest until all
// together are no larger than they may be, but for those of sessions in use.
func (s *Store) shrink(ctx context.Context, now time.Time) error {
	var all []dated
	var total int64
	err := s.eachKey(func(k key) error {
		if d, err := s.dated(k); err == nil { // else it is being replaced, or is damaged
			all, total = append(all, d), total+d.bytes
		}
		return ctx.Err()
	})
	if err != nil || total <= s.maxTotal {
		return err
	}
	slices.SortFunc(all, func(a, b dated) int { return a.added.Compare(b.added) })
	for _, d := range all {
		if total <= s.maxTotal || now.Sub(d.added) < gate.SessionInUse {
			return nil
		}
		if err := s.removeUnlessAdded(ctx, d); err != nil {
			return err
		}
		total -= d.bytes
	}
	return nil
}

func (s *Store) dated(k key) (dated, error) {
	dir := s.sessionDir(k)
	about, err := os.Lstat(filepath.Join(dir, metaName)) // each commit writes it anew
	if err != nil {
		return dated{}, err
	}
	m, err := readMeta(dir)
	return dated{k, m.Bytes, about.ModTime()}, err
}

// removeUnlessAdded removes a transcript, if it is still what it was.
func (s *Store) removeUnlessAdded(ctx context.Context, d dated) error {
	unlock, err := s.writer(ctx, d.key)
	if err != nil {
		return err
	}
	defer unlock()
	if now, err := s.dated(d.key); err != nil || !now.added.Equal(d.added) {
		return nil
	}
	return s.remove(d.key)
}
