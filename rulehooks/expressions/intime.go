package expressions

import "context"

// inTime is what work gives, and whether it did so before the context ended. Nothing
// that is known to take long goes on after that, since loops ask for the time
// and all else is charged before it begins; that a caller waits no longer does not depend on it.
// What is late ends by itself, and what it gives is dropped. A panic is the caller's.
func inTime[T any](ctx context.Context, work func() T) (result T, ended bool) {
	type outcome struct {
		result   T
		panicked any
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		grow(0)
		o.result = work()
	}()
	select {
	case o := <-done:
		if o.panicked != nil {
			panic(o.panicked)
		}
		return o.result, true
	case <-ctx.Done():
		return result, false
	}
}

// grow makes a new goroutine's stack large while it is empty. An evaluation needs tens of
// kilobytes, and to get there by doubling, each time with what is on it, costs a sixth of it.
//
//go:noinline
func grow(at int) byte {
	var room [20 << 10]byte
	room[at] = 1
	return room[at/2]
}
