package commandhooks

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// made is a pool of sandboxes that are none.
type made struct {
	*pool
	started, ended atomic.Int64
	busy           atomic.Bool
	each           int64
	err            error
}

func newMade(budget int64, most int) *made {
	m := &made{each: 1 << 20}
	m.pool = newPool(budget, most, m.busy.Load, func(context.Context, shapeID, job) (waiting, error) {
		if m.err != nil {
			return waiting{}, m.err
		}
		m.started.Add(1)
		time.Sleep(20 * time.Millisecond)
		return waiting{ahead: &ahead{}, bytes: m.each, end: func() { m.ended.Add(1) }}, nil
	})
	return m
}

// come has jobs of a shape come, one every so often, and answers how many found
// a sandbox.
func (m *made) come(shape byte, jobs int, every time.Duration) (warm int) {
	for range jobs {
		if m.take(shapeID{shape}, job{}) != nil {
			warm++
		}
		m.answered()
		time.Sleep(every)
	}
	return warm
}

func TestPool(t *testing.T) {
	for _, tt := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"nothing is started for a job that comes once", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			m.come(1, 1, time.Second)
			if n := m.started.Load(); n != 0 {
				t.Errorf("%d were started", n)
			}
		}},
		{"one waits for what comes now and then", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			if warm := m.come(1, 5, 5*time.Second); warm != 3 {
				t.Errorf("%d of 5 were warm", warm)
			}
			if n, bytes := m.waits(); n != 1 || bytes != 1<<20 {
				t.Errorf("%d wait, with %d bytes", n, bytes)
			}
		}},
		{"more wait for what comes often", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			if warm := m.come(1, 100, 40*time.Millisecond); warm < 90 {
				t.Errorf("%d of 100 were warm", warm)
			}
			if n, _ := m.waits(); n != 4 {
				t.Errorf("%d wait at 25 a second", n)
			}
		}},
		{"those that nobody wants any more are ended", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			m.come(1, 3, time.Second)
			time.Sleep(waitAtMost + 2*time.Second)
			if n, _ := m.waits(); n != 0 || m.remembers() {
				t.Errorf("%d wait", n)
			}
		}},
		{"none grows older than the rest of its shape may be", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			m.come(1, 2, time.Second)
			for range 30 { // another shape, so that this one is looked at
				m.take(shapeID{1}, job{})
				m.answered()
				time.Sleep(2 * time.Second)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, w := range m.shapes[shapeID{1}].waiting {
				if age := time.Since(w.since); age > waitAtMost+time.Second {
					t.Errorf("one is %s old", age)
				}
			}
		}},
		{"the budget holds over all shapes", func(t *testing.T) {
			m := newMade(40<<20, 8)
			m.each = 10 << 20
			defer m.close()
			for range 20 {
				for shape := range byte(6) {
					m.take(shapeID{shape}, job{})
					m.answered()
				}
				time.Sleep(500 * time.Millisecond)
				if _, bytes := m.waits(); bytes > 40<<20 {
					t.Fatalf("%d bytes wait", bytes)
				}
			}
			if n, _ := m.waits(); n < 2 {
				t.Errorf("%d wait", n)
			}
		}},
		{"no more than may run wait", func(t *testing.T) {
			m := newMade(64<<20, 2)
			defer m.close()
			m.come(1, 100, 20*time.Millisecond)
			time.Sleep(100 * time.Millisecond)
			if n, _ := m.waits(); n != 2 {
				t.Errorf("%d wait", n)
			}
		}},
		{"a busy machine starts none ahead", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			m.busy.Store(true)
			m.come(1, 10, 100*time.Millisecond)
			if n := m.started.Load(); n != 0 {
				t.Errorf("%d were started", n)
			}
			m.busy.Store(false)
			time.Sleep(2 * time.Second) // without another job
			if n, _ := m.waits(); n == 0 {
				t.Error("none waits when it is idle again")
			}
		}},
		{"what cannot be started is left alone for a while", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			tried := 0
			m.start = func(context.Context, shapeID, job) (waiting, error) {
				tried++
				return waiting{}, errors.New("no")
			}
			m.come(1, 20, time.Second)
			if tried != 1 {
				t.Errorf("tried %d times", tried)
			}
		}},
		{"why nothing waits is known until something does", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			m.err = errors.New("no namespaces")
			m.come(1, 3, time.Second)
			if err := m.trouble(); err == nil || err.Error() != "sandboxes are not started ahead: no namespaces" {
				t.Errorf("trouble is %v", err)
			}
			m.err = nil
			time.Sleep(waitAtMost)
			m.come(1, 3, time.Second)
			if err := m.trouble(); err != nil {
				t.Errorf("trouble is %v", err)
			}
		}},
		{"nor is it said of what nobody wants any more", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			m.err = errors.New("no namespaces")
			m.come(1, 3, time.Second)
			time.Sleep(waitAtMost + time.Second)
			if err := m.trouble(); err != nil {
				t.Errorf("trouble is %v", err)
			}
		}},
		{"why nothing forks is known", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			m.err = errors.New("no namespaces")
			for range 3 {
				m.take(shapeID{1}, job{forks: true})
				m.answered()
				time.Sleep(time.Second)
			}
			if err := m.trouble(); err == nil || err.Error() != "scripts are not forked: no namespaces" {
				t.Errorf("trouble is %v", err)
			}
		}},
		{"shapes are bounded", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			for i := range 1000 {
				m.take(shapeID{byte(i), byte(i >> 8)}, job{})
			}
			if n := len(m.shapes); n != maxShapes {
				t.Errorf("%d are known", n)
			}
			if warm := m.come(200, 5, time.Second); warm != 3 {
				t.Errorf("%d of 5 of a new one were warm", warm)
			}
			for i := range 1000 {
				m.take(shapeID{byte(i), byte(i >> 8), 1}, job{})
			}
			if n, _ := m.waits(); n != 1 {
				t.Errorf("%d wait", n)
			}
		}},
		{"what is started for a shape that is forgotten meanwhile is ended", func(t *testing.T) {
			m := newMade(64<<20, 8)
			m.come(1, 2, settleTime+10*time.Millisecond) // one is being started
			for i := range 1000 {
				m.take(shapeID{byte(i), byte(i >> 8), 1}, job{})
			}
			time.Sleep(time.Second)
			m.close()
			if m.started.Load() != 1 || m.ended.Load() != 1 {
				t.Errorf("%d were started, %d ended", m.started.Load(), m.ended.Load())
			}
		}},
		{"one that forks stays, for all jobs, until it is too old", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			m.busy.Store(true) // it takes work off a busy machine
			warm := 0
			for range 1000 {
				if m.take(shapeID{1}, job{forks: true, script: "print()"}) != nil {
					warm++
				}
				m.answered()
				time.Sleep(50 * time.Millisecond)
			}
			if n, _ := m.waits(); n != 1 || m.started.Load() != 2 || m.ended.Load() != 1 || warm < 990 {
				t.Errorf("%d wait, %d were started, %d ended, %d of 1000 jobs forked", n, m.started.Load(), m.ended.Load(), warm)
			}
			if kept := m.shapes[shapeID{1}].job.script; kept != "print()" {
				t.Errorf("the script kept is %q", kept)
			}
		}},
		{"one that forks no more is taken away once", func(t *testing.T) {
			m := newMade(64<<20, 8)
			defer m.close()
			var w *ahead
			for w == nil {
				w = m.take(shapeID{1}, job{forks: true})
				m.answered()
				time.Sleep(50 * time.Millisecond)
			}
			m.giveUp(shapeID{1}, w)
			m.giveUp(shapeID{1}, w)
			if again := m.take(shapeID{1}, job{forks: true}); again == w {
				t.Error("it is still there")
			}
			time.Sleep(time.Second)
			if again := m.take(shapeID{1}, job{forks: true}); again == nil || m.started.Load() != 2 || m.ended.Load() != 1 {
				t.Errorf("%d were started, %d ended", m.started.Load(), m.ended.Load())
			}
		}},
		{"closing ends all, and starts no more", func(t *testing.T) {
			m := newMade(64<<20, 8)
			m.come(1, 50, 40*time.Millisecond)
			taken := m.started.Load()
			n, _ := m.waits()
			ended := m.ended.Load()
			m.close()
			if n == 0 || m.ended.Load()-ended < int64(n) {
				t.Errorf("%d waited, %d were ended", n, m.ended.Load()-ended)
			}
			cleared := false
			m.discard(func() { cleared = true })
			if m.take(shapeID{1}, job{}) != nil || !cleared {
				t.Error("it goes on")
			}
			time.Sleep(time.Minute)
			if more := m.started.Load() - taken; more > 1 { // one was under way
				t.Errorf("%d more were started", more)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { synctest.Test(t, tt.test) })
	}
}
