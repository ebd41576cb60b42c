package places

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// come takes a place within so much time, holds it for a while, and says how long
// it waited.
func come(t *testing.T, p *Places, within, hold time.Duration) (waited time.Duration, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	began := time.Now()
	leave, err := p.Take(ctx)
	waited = time.Since(began)
	if err == nil {
		time.Sleep(hold)
		leave()
	}
	return waited, err
}

// A hundred come at once for two places that are held for a second each, and have
// ten and a half: those who wait get a place in time, all others hear so at once.
func TestNobodyWaitsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2)
		if _, err := come(t, p, time.Second, time.Second); err != nil { // so that it is known how long that takes
			t.Fatal(err)
		}
		var mu sync.Mutex
		var served, refused int
		var running sync.WaitGroup
		for range 100 {
			running.Go(func() {
				waited, err := come(t, p, 10500*time.Millisecond, time.Second)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					served++
				case !errors.Is(err, ErrFull) || waited != 0:
					t.Errorf("%v after %s", err, waited)
				default:
					refused++
				}
			})
		}
		running.Wait()
		if served != 22 || refused != 78 { // two at once, and ten seconds of two a second
			t.Errorf("%d served, %d refused", served, refused)
		}
		if p.Taken() != 0 || p.Limit() != 2 || p.waiting != 0 {
			t.Errorf("%d of %d taken, %d waiting", p.Taken(), p.Limit(), p.waiting)
		}
	})
}

// Places whose holders hang are known for it before the first of them has left.
func TestHangingHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(4)
		for range 4 {
			go func() { _, _ = come(t, p, time.Minute, time.Minute) }()
		}
		synctest.Wait()
		early := make(chan error, 1)
		go func() { _, err := come(t, p, 20*time.Second, 0); early <- err }()
		time.Sleep(19 * time.Second)
		if waited, err := come(t, p, 9*time.Second, 0); !errors.Is(err, ErrFull) || waited != 0 { // two in line, 19 s each at least
			t.Errorf("%v after %s", err, waited)
		}
		if err := <-early; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who came when nothing was known: %v", err)
		}
		if _, err := come(t, p, time.Minute, 0); err != nil { // there is time
			t.Error(err)
		}
	})
}

// One that hung is forgotten: quick ones are waited for again.
func TestHangsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		_, _ = come(t, p, time.Second, time.Hour)
		for range 50 {
			if _, err := come(t, p, time.Second, 10*time.Millisecond); err != nil {
				t.Fatal(err) // the place is free
			}
		}
		go func() { _, _ = come(t, p, time.Second, 10*time.Millisecond) }()
		synctest.Wait()
		if waited, err := come(t, p, 20*time.Second, 0); err != nil || waited != 10*time.Millisecond {
			t.Errorf("%v after %s", err, waited)
		}
	})
}

// A place that is free is taken without time, and without a deadline everybody waits.
func TestTimeIsNoMatterWhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		leave, err := p.Take(ended)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Take(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("none is free: %v", err)
		}
		time.AfterFunc(time.Hour, leave)
		time.Sleep(time.Minute)
		leave, err = p.Take(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		leave()
	})
}
