// Package places bounds how many do something at once. Who comes when all places
// are taken waits in line, as long as its turn can be expected to come within its
// time; whose cannot hears so at once, since an answer that is late anyway only
// makes everybody's later.
//
// Everybody has a line of its own, and the lines take turns: one that has a hundred
// waiting keeps another's one waiting no longer than one of its own.
package places

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// ErrFull says that all places are taken and that those who wait already will take
// longer than there is time.
var ErrFull = errors.New("no place will be free in time")

// Places are a number of places. Make them with [New]. They are safe for concurrent
// use.
type Places struct {
	limit int

	mu    sync.Mutex
	taken int
	lines map[string]*line // who waits
	turns list.List        // of the *line, the next first
	held  time.Duration    // how long a place is held, on a moving average; 0: nobody has left yet
	moved time.Time        // when somebody last took a place or left one
}

// line is who waits of one name.
type line struct {
	who     string
	waiting list.List // of *turn, in the order of coming
	next    *list.Element
}

// turn is one who waits.
type turn struct {
	line *line
	at   *list.Element
	came chan struct{} // closed once it has its place
	// began is when it got it; to be read after came.
	began time.Time
}

// New makes n places, at least one.
func New(n int) *Places { return &Places{limit: max(n, 1), lines: map[string]*line{}} }

// Taken is how many places are taken now.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Waiting is how many wait for one.
func (p *Places) Waiting() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		n += l.waiting.Len()
	}
	return n
}

// Limit is how many places there are.
func (p *Places) Limit() int { return p.limit }

// Take waits for a place in the line of that name, in the order of coming; leave
// gives it back and is called once. One that is free is taken even if ctx has ended.
// The error is [ErrFull], which comes without a wait, or ctx's own.
func (p *Places) Take(ctx context.Context, who string) (leave func(), err error) {
	t, err := p.join(ctx, who)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.came:
	case <-ctx.Done():
		if p.withdraw(t) {
			return nil, ctx.Err()
		}
	}
	return func() { p.leave(t.began) }, nil
}

// join takes a free place, or one in line, unless its turn would come too late.
// Without a deadline nothing is too late.
func (p *Places) join(ctx context.Context, who string) (*turn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &turn{came: make(chan struct{})}
	if p.taken < p.limit {
		p.taken++
		p.give(t)
		return t, nil
	}
	if end, limited := ctx.Deadline(); limited && p.wait(p.before(who)+1) >= time.Until(end) {
		return nil, ErrFull
	}
	l := p.lines[who]
	if l == nil {
		l = &line{who: who}
		l.next = p.turns.PushBack(l)
		p.lines[who] = l
	}
	t.line, t.at = l, l.waiting.PushBack(t)
	return t, nil
}

// give has a place taken. Under mu.
func (p *Places) give(t *turn) {
	t.began = time.Now()
	p.moved = t.began
	close(t.came)
}

// before is how many have their turn before one who comes now: those of its own
// line, and of each other one as many as there are turns until then. Under mu.
func (p *Places) before(who string) int {
	own, turns := 0, 1 // how often a line that is before its own has its turn
	if l := p.lines[who]; l != nil {
		own = l.waiting.Len()
		turns += own
	}
	n := own
	for e := p.turns.Front(); e != nil; e = e.Next() {
		l := e.Value.(*line)
		if l.who == who {
			turns-- // those behind it have one less
			continue
		}
		n += min(l.waiting.Len(), turns)
	}
	return n
}

// wait is how long the n-th to have its turn can expect to wait. While nobody moves, what
// holds the places takes at least that long. Under mu.
func (p *Places) wait(n int) time.Duration {
	held := max(p.held, time.Since(p.moved))
	return time.Duration(float64(held) * float64(n) / float64(p.limit))
}

// withdraw takes one who waits out of its line; false: it has its place.
func (p *Places) withdraw(t *turn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-t.came:
		return false
	default:
		p.remove(t)
		return true
	}
}

// remove takes one out of its line, and ends the line if nobody waits in it. Under mu.
func (p *Places) remove(t *turn) {
	l := t.line
	l.waiting.Remove(t.at)
	if l.waiting.Len() == 0 {
		p.turns.Remove(l.next)
		delete(p.lines, l.who)
	}
}

// leave hands a place, taken at began, to the first of the line whose turn it is.
func (p *Places) leave(began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved = time.Now()
	if took := p.moved.Sub(began); p.held == 0 {
		p.held = took
	} else {
		p.held += (took - p.held) / weight
	}
	front := p.turns.Front()
	if front == nil {
		p.taken--
		return
	}
	l := front.Value.(*line)
	t := l.waiting.Front().Value.(*turn)
	p.turns.MoveToBack(front)
	p.remove(t)
	p.give(t)
}

// weight of what was, against the newest: an hour's habit is forgotten within some
// dozen turns, and one that hangs does not close the line.
const weight = 8
