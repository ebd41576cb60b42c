package places

import (
	"context"
	"errors"
	"strings"
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
	leave, err := p.Take(ctx, "")
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
		if p.Taken() != 0 || p.Limit() != 2 || p.Waiting() != 0 {
			t.Errorf("%d of %d taken, %d waiting", p.Taken(), p.Limit(), p.Waiting())
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
		leave, err := p.Take(ended, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Take(ended, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("none is free: %v", err)
		}
		time.AfterFunc(time.Hour, leave)
		time.Sleep(time.Minute)
		leave, err = p.Take(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		leave()
	})
}

// A hundred of one name do not keep another's waiting for longer than its turns
// take: the lines take theirs one after another.
func TestLinesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		flood, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _, _ = come(t, p, time.Hour, time.Second) })
		synctest.Wait()
		for range 100 {
			running.Go(func() {
				leave, err := p.Take(flood, "many")
				if err != nil {
					return
				}
				time.Sleep(time.Second)
				leave()
			})
		}
		synctest.Wait()
		for n, who := range []string{"few", "few", "other"} {
			running.Go(func() {
				within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				leave, err := p.Take(within, who)
				if err != nil {
					t.Errorf("%s %d: %v", who, n, err)
					return
				}
				// The first is away after a second; then many, few, other, many, few.
				if want := time.Duration([]int{2, 5, 3}[n]) * time.Second; time.Since(began) != want {
					t.Errorf("%s %d waited %s, want %s", who, n, time.Since(began), want)
				}
				time.Sleep(time.Second)
				leave()
			})
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		if n := p.Waiting(); n < 80 {
			t.Errorf("%d wait", n)
		}
		end()
		running.Wait()
		if p.Taken() != 0 || p.Waiting() != 0 || len(p.lines) != 0 || p.turns.Len() != 0 {
			t.Errorf("%d taken, %d waiting in %d lines", p.Taken(), p.Waiting(), len(p.lines))
		}
	})
}

// What is expected of a line is what comes: whoever is taken in has its place within
// its time while nobody comes after, and whoever is not would not have had it.
func TestExpectedTurns(t *testing.T) {
	for _, tc := range []struct {
		waiting []string // one after another
		who     string
		seconds int // until its turn
	}{
		{nil, "a", 1},
		{[]string{"a", "a"}, "a", 3},
		{[]string{"a", "a"}, "b", 2},
		{[]string{"b", "a", "a", "b", "b"}, "a", 6},
		{[]string{"a", "b", "b", "b"}, "a", 3},
		{[]string{"a", "b", "c", "c"}, "b", 4},
	} {
		t.Run(tc.who+" after "+strings.Join(tc.waiting, ""), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := New(1)
				if _, err := come(t, p, time.Second, time.Second); err != nil { // so that it is known how long that takes
					t.Fatal(err)
				}
				var running sync.WaitGroup
				wait := func(who string, within time.Duration) (waited time.Duration, err error) {
					ctx, cancel := context.WithTimeout(t.Context(), within)
					defer cancel()
					began := time.Now()
					leave, err := p.Take(ctx, who)
					waited = time.Since(began)
					if err == nil {
						time.Sleep(time.Second)
						leave()
					}
					return waited, err
				}
				for _, who := range append([]string{"first"}, tc.waiting...) {
					running.Go(func() {
						if _, err := wait(who, time.Hour); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				turn := time.Duration(tc.seconds) * time.Second
				if waited, err := wait(tc.who, turn); !errors.Is(err, ErrFull) || waited != 0 {
					t.Errorf("with too little time: %v after %s", err, waited)
				}
				if waited, err := wait(tc.who, turn+1); err != nil || waited != turn {
					t.Errorf("waited %s, want %s: %v", waited, turn, err)
				}
				running.Wait()
			})
		})
	}
}
