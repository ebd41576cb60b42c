package commandhooks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// shapeID names what sandboxes have in common that can do each other's jobs.
type shapeID [32]byte

// pool keeps sandboxes that were started ahead, for the shapes that jobs had
// lately. It hides how long a start takes and takes work off nobody: what it
// starts, it starts one after another, when answers have left, and not while the
// machine has hooks enough to run. Nobody ever waits for it. One that forks stays
// when it has a job, until it is too old.
type pool struct {
	budget int64 // bytes
	most   int   // sandboxes
	busy   func() bool
	start  func(ctx context.Context, id shapeID, j job) (waiting, error)

	mu     sync.Mutex
	shapes map[shapeID]*shape
	failed map[bool]error // the last start's failure, by whether it was to fork; none: it succeeded
	trash  []func()       // what the keeper has to clear away
	closed bool

	wake chan struct{}
	stop context.CancelFunc
	done chan struct{}
}

// shape is what is known of one.
type shape struct {
	job      job
	arrivals []time.Time // the last of them, oldest first
	waiting  []waiting   // oldest first
	each     int64       // bytes that one takes
	failed   time.Time   // when none could be started
}

// waiting is a sandbox with what it costs and how it is taken away.
type waiting struct {
	ahead *ahead
	bytes int64
	end   func()
	since time.Time
}

const (
	// waitAtMost is how long a shape is remembered after its last job, and how
	// old a waiting sandbox grows: an agent calls its tools more often than that
	// while it works.
	waitAtMost = 30 * time.Second
	// settleTime is what an answer has to leave after its hook has ended.
	settleTime = 5 * time.Millisecond
	// maxShapes bounds what callers can make the gate remember by ever new
	// directories and conversations.
	maxShapes = 64
	// arrivalsKept are enough to tell the busiest shape: see wants.
	arrivalsKept = 64
	// firstGuess is what a sandbox takes of which none was started yet: more
	// than one with Python does.
	firstGuess = 12 << 20
)

func newPool(budget int64, most int, busy func() bool, start func(context.Context, shapeID, job) (waiting, error)) *pool {
	ctx, stop := context.WithCancel(context.Background())
	p := &pool{budget: budget, most: most, busy: busy, start: start, shapes: map[shapeID]*shape{}, failed: map[bool]error{},
		wake: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	go p.keep(ctx)
	return p
}

// take counts a job of a shape, and answers the sandbox that has waited for one
// longest; nil if none has.
func (p *pool) take(id shapeID, j job) *ahead {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	s := p.shapes[id]
	if s == nil {
		if len(p.shapes) >= maxShapes && !p.forget() {
			return nil
		}
		j.stdin = nil
		if !j.forks {
			j.script = kept(j.script)
		}
		s = &shape{job: j, each: firstGuess}
		p.shapes[id] = s
	}
	if len(s.arrivals) == arrivalsKept {
		s.arrivals = slices.Delete(s.arrivals, 0, 1)
	}
	s.arrivals = append(s.arrivals, time.Now())
	if len(s.waiting) == 0 {
		return nil
	}
	w := s.waiting[0]
	if !s.job.forks { // which has any number of jobs
		s.waiting = slices.Delete(s.waiting, 0, 1)
	}
	return w.ahead
}

// giveUp takes one away that forks, and does so no more.
func (p *pool) giveUp(id shapeID, w *ahead) {
	var ends []func()
	p.mu.Lock()
	if s := p.shapes[id]; s != nil {
		s.waiting = slices.DeleteFunc(s.waiting, func(have waiting) bool {
			if have.ahead == w {
				ends = append(ends, have.end)
			}
			return have.ahead == w
		})
	}
	p.mu.Unlock()
	for _, end := range ends {
		p.discard(end)
	}
}

// forget makes room for a shape: the one whose last job is longest ago, and that
// has nothing waiting. The caller has the lock.
func (p *pool) forget() bool {
	var oldest shapeID
	var last time.Time
	for id, s := range p.shapes {
		if at := s.arrivals[len(s.arrivals)-1]; len(s.waiting) == 0 && (last.IsZero() || at.Before(last)) {
			oldest, last = id, at
		}
	}
	delete(p.shapes, oldest)
	return !last.IsZero()
}

// kept is all of a script that a shape keeps: that there is one.
func kept(script string) string { return script[:min(1, len(script))] }

// answered tells that a hook has ended.
func (p *pool) answered() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// discard has something cleared away in its own time.
func (p *pool) discard(f func()) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.trash = append(p.trash, f)
	}
	p.mu.Unlock()
	if closed {
		f()
		return
	}
	p.answered()
}

// wants is how many sandboxes of the shape should wait: none for a job that came
// once, one for what comes now and then, and for what comes often as many as
// come in an eighth of a second, in which one has surely been started. One that
// forks is enough for all.
func (s *shape) wants(now time.Time) int {
	lately, often := 0, 0
	for _, at := range s.arrivals {
		if now.Sub(at) < waitAtMost {
			lately++
		}
		if now.Sub(at) < time.Second {
			often++
		}
	}
	if lately < 2 || now.Sub(s.failed) < waitAtMost {
		return 0
	}
	if s.job.forks {
		return 1
	}
	return 1 + often/8
}

// keep starts and clears away until ctx ends.
func (p *pool) keep(ctx context.Context) {
	defer close(p.done)
	for {
		var look <-chan time.Time
		if p.remembers() {
			look = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-look:
		case <-p.wake:
			select {
			case <-ctx.Done():
				return
			case <-time.After(settleTime):
			}
		}
		p.retire(time.Now())
		p.clear()
		for p.fill(ctx) {
		}
	}
}

func (p *pool) remembers() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.shapes) > 0
}

// retire gives up what is too old.
func (p *pool) retire(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.shapes {
		s.waiting = slices.DeleteFunc(s.waiting, func(w waiting) bool {
			old := now.Sub(w.since) >= waitAtMost
			if old {
				p.trash = append(p.trash, w.end)
			}
			return old
		})
		if len(s.waiting) == 0 && now.Sub(s.arrivals[len(s.arrivals)-1]) >= waitAtMost {
			delete(p.shapes, id)
		}
	}
	maps.DeleteFunc(p.failed, func(forks bool, _ error) bool { // nothing is to be started any more, and nothing will tell
		for _, s := range p.shapes {
			if s.job.forks == forks {
				return false
			}
		}
		return true
	})
}

func (p *pool) clear() {
	p.mu.Lock()
	trash := p.trash
	p.trash = nil
	p.mu.Unlock()
	for _, f := range trash {
		f()
	}
}

// fill starts one sandbox, if one is wanted and may be, and reports whether it
// did.
func (p *pool) fill(ctx context.Context) bool {
	id, s := p.lacking(time.Now(), p.busy())
	if s == nil || ctx.Err() != nil {
		return false
	}
	made, err := p.start(ctx, id, s.job)
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if s.failed = now; ctx.Err() == nil {
			p.failed[s.job.forks] = err
		}
		return true
	}
	delete(p.failed, s.job.forks)
	made.since = now
	if p.shapes[id] != s { // forgotten meanwhile
		p.trash = append(p.trash, made.end)
		return true
	}
	s.waiting, s.each = append(s.waiting, made), made.bytes
	return true
}

// lacking is the shape that lacks most of what it wants, within the bounds. While
// the machine is busy only what forks is started, since that takes work off it.
func (p *pool) lacking(now time.Time, busy bool) (id shapeID, most *shape) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, bytes := p.held()
	if n >= p.most {
		return id, nil
	}
	lack := 0
	for i, s := range p.shapes {
		if l := s.wants(now) - len(s.waiting); l > lack && bytes+s.each <= p.budget && (s.job.forks || !busy) {
			id, most, lack = i, s, l
		}
	}
	return id, most
}

// held is what waits: how many, and their bytes. The caller has the lock.
func (p *pool) held() (n int, bytes int64) {
	for _, s := range p.shapes {
		for _, w := range s.waiting {
			n, bytes = n+1, bytes+w.bytes
		}
	}
	return n, bytes
}

// waits is what waits now.
func (p *pool) waits() (n int, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held()
}

// trouble is why what the last starts were for does not wait; nil: it does, or
// nothing was to be started.
func (p *pool) trouble() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	if err := p.failed[false]; err != nil {
		errs = append(errs, fmt.Errorf("sandboxes are not started ahead: %w", err))
	}
	if err := p.failed[true]; err != nil {
		errs = append(errs, fmt.Errorf("scripts are not forked: %w", err))
	}
	return errors.Join(errs...)
}

// close ends all that waits. Jobs that have begun go on.
func (p *pool) close() {
	p.stop()
	<-p.done
	p.mu.Lock()
	p.closed = true
	for _, s := range p.shapes {
		for _, w := range s.waiting {
			p.trash = append(p.trash, w.end)
		}
	}
	clear(p.shapes)
	p.mu.Unlock()
	p.clear()
}
