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
