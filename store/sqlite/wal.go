package sqlite

import (
	"context"
	"database/sql"
	"os"
	"sync"
	"sync/atomic"
)

const (
	// checkpointBytes is about how much is written between two checkpoints:
	// enough that the pages at the tables' ends, which every commit changes,
	// are moved once for thousands of commits.
	checkpointBytes = 8 << 20
	// checkpointPages is how long the WAL may be, in pages of 4 KiB, before the
	// writer itself finishes a checkpoint so that the WAL starts anew.
	checkpointPages = 4096
	// pageBytes is SQLite's page size, left at its default.
	pageBytes = 4096
	// walBytes is how long the WAL may become: from there on the writer waits
	// for it to be moved before it writes on. One transaction may go beyond it.
	walBytes = 4 * checkpointPages * pageBytes
)

// wal keeps the write-ahead log of a store that has its directory for itself short.
// The bulk is moved into the database beside the commits; only what they add meanwhile
// is left to the writer, since a WAL starts anew only when all of it was moved.
type wal struct {
	file    string
	unmoved int           // the writer's own: about how many bytes it has written since grown was told
	grown   chan struct{} // holds one token when the WAL has grown
	finish  atomic.Bool   // it is long: the writer is to move its rest
	moving  sync.Mutex    // held by who moves it: SQLite refuses the second at once, who would have waited
}

func newWAL(database string) *wal {
	return &wal{file: database + "-wal", grown: make(chan struct{}, 1)}
}

// wrote adds up what was written, and says when it is worth a checkpoint.
func (l *wal) wrote(bytes int) {
	if l.unmoved += bytes; l.unmoved < checkpointBytes {
		return
	}
	l.unmoved = 0
	select {
	case l.grown <- struct{}{}:
	default:
	}
}

// moveBeside moves the WAL whenever it has grown, until ctx ends. An error is no harm:
// the WAL stays longer, and it is tried again.
func (l *wal) moveBeside(ctx context.Context, db *sql.DB) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.grown:
		}
		if l.finish.Load() {
			continue // the writer is about to finish: it must not be in its way
		}
		l.moving.Lock()
		var busy, pages, moved int64
		err := db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &pages, &moved)
		l.moving.Unlock()
		if err == nil && pages > checkpointPages {
			l.finish.Store(true)
		}
	}
}

// moveRest moves what is left of a long WAL, between two transactions of the writer.
// Nothing else of ours writes or moves then, so it reaches the WAL's end, and the next
// write starts it from the beginning. If it fails, or a reader stands on the WAL, it
// stays long and is asked for again.
func (l *wal) moveRest(c *conn) {
	if !l.finish.Load() && !l.tooLong() {
		return
	}
	l.moving.Lock()
	defer l.moving.Unlock()
	_ = c.exec(`PRAGMA wal_checkpoint(PASSIVE)`)
	l.finish.Store(false)
}

// tooLong reports whether the file is beyond its bound. SQLite cuts it back to that
// when it starts anew (journal_size_limit), so a longer one is one not yet moved.
func (l *wal) tooLong() bool {
	info, err := os.Stat(l.file)
	return err == nil && info.Size() > walBytes
}
