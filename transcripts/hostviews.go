package transcripts

import (
	"slices"
	"sync"
	"time"

	"stopgate/gate"
)

// Bounds of what is kept of session files between two events.
const (
	maxHostViews      = 64
	maxHostViewMemory = 64 << 20 // bytes, of all together; of one, a quarter
	maxHostViewBytes  = 1 << 30  // on disk, of all together; of one, a quarter
)

// hostViews keeps the views that no event has at the moment.
type hostViews struct {
	mu       sync.Mutex
	idle     []*hostView // the latest last
	erasures int         // of sessions so far
	closed   bool
}

// take is the view of a key, which belongs to the caller from now on; nil if
// there is none. With it come the erasures so far.
func (c *hostViews) take(of hostViewKey) (*hostView, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.without(of), c.erasures
}

func (c *hostViews) without(of hostViewKey) *hostView {
	for i, v := range c.idle {
		if v.of == of {
			c.idle = slices.Delete(c.idle, i, i+1)
			v.expiry.Stop()
			return v
		}
	}
	return nil
}

// give takes a view back. It stays unless it is too large, or a session was
// erased since it was taken, which may have been its own. What is too much goes,
// the oldest first, and what no event asks for while its session is in use.
func (c *hostViews) give(v *hostView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || v.erasures != c.erasures || v.memory() > maxHostViewMemory/4 || v.spool.index.bytes > maxHostViewBytes/4 {
		v.discard()
		return
	}
	if twin := c.without(v.of); twin != nil { // two events ran at the same time
		twin.discard()
	}
	c.idle = append(c.idle, v)
	v.expiry = time.AfterFunc(gate.SessionInUse, func() { c.expire(v) })
	memory, bytes := int64(0), int64(0)
	for i := len(c.idle) - 1; i >= 0; i-- {
		memory, bytes = memory+c.idle[i].memory(), bytes+c.idle[i].spool.index.bytes
		if memory > maxHostViewMemory || bytes > maxHostViewBytes || len(c.idle)-i > maxHostViews {
			discardAll(c.idle[:i+1])
			c.idle = slices.Delete(c.idle, 0, i+1)
			return
		}
	}
}

// expire discards a view, if no event has it.
func (c *hostViews) expire(v *hostView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.idle, v); i >= 0 {
		c.idle = slices.Delete(c.idle, i, i+1)
		v.discard()
	}
}

// forget discards what is kept of a session.
func (c *hostViews) forget(session key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erasures++
	c.idle = slices.DeleteFunc(c.idle, func(v *hostView) bool {
		if v.of.session != session {
			return false
		}
		v.discard()
		return true
	})
}

// close discards all, and those that are given back later.
func (c *hostViews) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	discardAll(c.idle)
	c.idle, c.closed = nil, true
}

func discardAll(views []*hostView) {
	for _, v := range views {
		v.discard()
	}
}
