package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"stopgate/internal/terminal"
)

// progress tells a person how far a long command is: on a terminal in one line
// that changes, elsewhere, where lines are kept, in one every tellEvery.
type progress struct {
	w        io.Writer
	terminal bool
	total    int
	began    time.Time

	mu    sync.Mutex
	done  int
	shown time.Time // when last
}

const (
	// showEvery is how often a terminal's line changes: as often as an eye can follow.
	showEvery = 200 * time.Millisecond
	// tellEvery is how often a log learns that a command is still at it; one that is
	// done by then says nothing.
	tellEvery = 10 * time.Second
)

func newProgress(w io.Writer, total int) *progress {
	now := time.Now()
	p := &progress{w: w, terminal: terminal.Is(w), total: total, began: now}
	if !p.terminal {
		p.shown = now
	}
	return p
}

// step is one more done.
func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	now := time.Now()
	switch {
	case p.terminal && (now.Sub(p.shown) >= showEvery || p.done == p.total):
		fmt.Fprintf(p.w, "\r%s\x1b[K", p.line(now))
	case !p.terminal && now.Sub(p.shown) >= tellEvery:
		fmt.Fprintln(p.w, p.line(now))
	default:
		return
	}
	p.shown = now
}

// end leaves the line.
func (p *progress) end() {
	if p.terminal {
		fmt.Fprintln(p.w)
	}
}

func (p *progress) line(now time.Time) string {
	took := now.Sub(p.began)
	left := time.Duration(float64(took) / float64(p.done) * float64(p.total-p.done))
	return fmt.Sprintf("%d of %d (%d %%), %.1f a second, %s left", p.done, p.total, p.done*100/p.total,
		float64(p.done)/max(took.Seconds(), 0.001), left.Round(time.Second))
}
