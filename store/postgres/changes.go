package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// specsChannel is where a change of a spec is announced. Its content says
// nothing: who hears of one looks.
const specsChannel = `stopgate_specs`

// pollEvery is how often the newest version is looked for where no announcement
// was heard: one look into an index.
const pollEvery = time.Second

// SpecsChanged gives a token at first, and then whenever a spec was put or
// deleted, by whatever replica; the channel is closed when ctx or the store ends.
//
// Changes are announced on a connection of its own. While that is broken, or
// goes through a proxy that does not pass announcements on, they are found within
// a second.
func (s *Store) SpecsChanged(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{}, 1)
	s.running.Go(func() {
		defer close(changed)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ending, cancel)()
		s.watch(ctx, changed)
	})
	return changed
}

func (s *Store) watch(ctx context.Context, changed chan<- struct{}) {
	ear := &ear{cfg: s.listener}
	defer ear.close()
	last := int64(-1) // more than none, so that the first look is a change
	for ctx.Err() == nil {
		// Listening comes before looking: what is committed between the two is
		// announced.
		ear.open(ctx)
		if newest, err := s.newestSpec(ctx); err == nil && newest != last {
			last = newest
			select {
			case changed <- struct{}{}:
			default: // one that was not taken yet is as good
			}
		}
		ear.wait(ctx, s.pollEvery)
	}
}

// newestSpec is the highest seq, 0 where there are no specs.
func (s *Store) newestSpec(ctx context.Context) (seq int64, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM stopgate.specs`).Scan(&seq)
	})
	return seq, err
}

// ear is a connection that listens, as far as it can be had. Its errors are no
// harm: it is opened anew, and meanwhile there is polling.
type ear struct {
	cfg  *pgx.ConnConfig
	conn *pgx.Conn // nil: none
}

func (e *ear) open(ctx context.Context) {
	if e.conn != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, e.cfg)
	if err != nil {
		return
	}
	e.conn = conn
	if _, err := conn.Exec(ctx, `LISTEN `+specsChannel); err != nil {
		e.close()
	}
}

// wait returns when something was announced, or after that long.
func (e *ear) wait(ctx context.Context, long time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	if e.conn != nil {
		_, err := e.conn.WaitForNotification(ctx)
		if err == nil {
			return
		}
		if e.conn.IsClosed() {
			e.conn = nil
		}
	}
	<-ctx.Done()
}

func (e *ear) close() {
	if e.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = e.conn.Close(ctx)
	e.conn = nil
}
