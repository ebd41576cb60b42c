package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"stopgate/internal/terminal"
)

// progress tells a person how far a long command is: on a terminal in one line
// that changes, elsewhere in a line for each tenth.
type progress struct {
	w        io.Writer
	terminal bool
	total    int
	began    time.Time

	mu    sync.Mutex
	done  int
	shown time.Time // on a terminal, when last
}

// showEvery is how often a terminal's line changes: as often as an eye can follow.
const showEvery = 200 * time.Millisecond

func newProgress(w io.Writer, total int) *progress {
	return &progress{w: w, terminal: terminal.Is(w), total: total, began: time.Now()}
}

// step is one more done.
func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	now := time.Now()
	switch {
	case p.terminal && (now.Sub(p.shown) >= showEvery || p.done == p.total):
		p.shown = now
		fmt.Fprintf(p.w, "\r%s\x1b[K", p.line(now))
	case !p.terminal && p.done*10/p.total > (p.done-1)*10/p.total: // a tenth is full
		fmt.Fprintln(p.w, p.line(now))
	}
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
