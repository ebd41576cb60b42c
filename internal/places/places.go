// Package places bounds how many do something at once. Who comes when all places
// are taken waits in line, as long as its turn can be expected to come within its
// time; whose cannot hears so at once, since an answer that is late anyway only
// makes everybody's later.
package places

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrFull says that all places are taken and that those who wait already will take
// longer than there is time.
var ErrFull = errors.New("no place will be free in time")

// Places are a number of places. Make them with [New].
type Places struct {
	free chan struct{} // has room for as many as there are free places

	mu      sync.Mutex
	waiting int
	held    time.Duration // how long a place is held, on a moving average; 0: nobody has left yet
	moved   time.Time     // when somebody last took a place or left one
}

// New makes n places, at least one.
func New(n int) *Places { return &Places{free: make(chan struct{}, max(n, 1))} }

// Taken is how many places are taken now.
func (p *Places) Taken() int { return len(p.free) }

// Limit is how many places there are.
func (p *Places) Limit() int { return cap(p.free) }

// Take waits for a place in the order of coming; leave gives it back and is called
// once. One that is free is taken even if ctx has ended. The error is [ErrFull],
// which comes without a wait, or ctx's own.
func (p *Places) Take(ctx context.Context) (leave func(), err error) {
	select {
	case p.free <- struct{}{}:
		return p.taken(), nil
	default:
	}
	if !p.join(ctx) {
		return nil, ErrFull
	}
	defer p.unjoin()
	select {
	case p.free <- struct{}{}:
		return p.taken(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join adds one to those who wait, unless its turn would come too late. Without a
// deadline nothing is too late.
func (p *Places) join(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if end, limited := ctx.Deadline(); limited && p.wait(p.waiting+1) >= time.Until(end) {
		return false
	}
	p.waiting++
	return true
}

func (p *Places) unjoin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
}

// wait is how long the n-th in line can expect to wait. While nobody moves, what
// holds the places takes at least that long. Under mu.
func (p *Places) wait(n int) time.Duration {
	held := max(p.held, time.Since(p.moved))
	return time.Duration(float64(held) * float64(n) / float64(cap(p.free)))
}

func (p *Places) taken() (leave func()) {
	began := time.Now()
	p.mu.Lock()
	p.moved = began
	p.mu.Unlock()
	return func() {
		now := time.Now()
		p.mu.Lock()
		p.moved = now
		if p.held == 0 {
			p.held = now.Sub(began)
		} else {
			p.held += (now.Sub(began) - p.held) / weight
		}
		p.mu.Unlock()
		<-p.free
	}
}

// weight of what was, against the newest: an hour's habit is forgotten within some
// dozen turns, and one that hangs does not close the line.
const weight = 8
