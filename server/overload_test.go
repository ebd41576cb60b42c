package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stopgate/gate"
)

// standing is a store that writes nothing while its disk stands still.
type standing struct {
	*memory
	still   atomic.Bool
	waiting atomic.Int64
}

func (s *standing) Commit(ctx context.Context, c gate.Commit) error {
	if s.still.Load() {
		s.waiting.Add(1)
		defer s.waiting.Add(-1)
		<-ctx.Done()
		return ctx.Err()
	}
	return s.memory.Commit(ctx, c)
}

// A host for whose event there is no room is answered by on_gate_error at once, or,
// where the store is slow to keep it, soon; and what is refused does not fill the
// store's own line (docs/faults.md G34).
func TestOverloadedHostsDoNotWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) {
			o.Limits.InFlight = 1
			o.Protocol = func(string) (HostProtocol, bool) { return plainHost{}, true }
		})
		store := &standing{memory: w.store}
		w.opt.Gate.Store = store
		w.agent(t, "marker", gate.Stop, "ends")
		ask := func() (took time.Duration) {
			began := time.Now()
			rec := w.must(t, 200, "POST", "/v1/hooks/plain", "{}")
			if !strings.Contains(rec.Body.String(), `"overloaded"`) {
				t.Errorf("answer %s", rec.Body)
			}
			return time.Since(began)
		}
		w.judge = func(context.Context, gate.Input) gate.Verdict {
			if took := ask(); took != 0 {
				t.Errorf("answered after %s", took)
			}
			if len(w.store.records) != 1 {
				t.Errorf("%d refusals on record", len(w.store.records))
			}
			store.still.Store(true)
			var atOnce, soon atomic.Int64
			var running sync.WaitGroup
			for range 4 * refusalsAtOnce {
				running.Go(func() {
					switch took := ask(); took {
					case 0:
						atOnce.Add(1)
					case refusalTime:
						soon.Add(1)
					default:
						t.Errorf("answered after %s", took)
					}
				})
			}
			synctest.Wait()
			if n := store.waiting.Load(); n != refusalsAtOnce {
				t.Errorf("%d refusals wait for the store", n)
			}
			running.Wait()
			if atOnce.Load() != 3*refusalsAtOnce || soon.Load() != refusalsAtOnce {
				t.Errorf("%d answered at once, %d soon", atOnce.Load(), soon.Load())
			}
			store.still.Store(false)
			return gate.Verdict{Outcome: gate.Allow}
		}
		w.must(t, 200, "POST", "/v1/evaluate", stop)
		if got := w.metric(t, `stopgate_gate_errors_total{code="overloaded"}`); got != fmt.Sprint(4*refusalsAtOnce+1) {
			t.Errorf("%s refusals counted", got)
		}
	})
}
