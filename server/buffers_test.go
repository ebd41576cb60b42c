package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// TestBuffersAreNotShared holds who owns a body: under -race, and by what each
// record has as its payload.
func TestBuffersAreNotShared(t *testing.T) {
	w := newWorld(t)
	w.judge = func(_ context.Context, in gate.Input) gate.Verdict {
		return gate.Verdict{Outcome: gate.Allow, Reason: string(in.Event.Payload)}
	}
	w.agent(t, "marker", gate.Stop, "ends")
	const callersAtOnce, each = 8, 8
	var callers sync.WaitGroup
	for i := range callersAtOnce {
		callers.Go(func() {
			for j := range each {
				final := fmt.Sprintf("%d-%d-%s", i, j, strings.Repeat("x", (i*j*997)%(70<<10)))
				body := strings.Replace(stop, "done", final, 1)
				got := fields(t, w.do("POST", "/v1/evaluate", body))
				if hook := got["hooks"].([]any)[0].(map[string]any); !strings.HasPrefix(body, strings.TrimSuffix(hook["reason"].(string), "…")) {
					t.Errorf("hook of %d-%d saw another request's body", i, j)
				}
			}
		})
	}
	callers.Wait()
	seen := map[string]bool{}
	for _, rec := range w.store.records {
		seen[string(rec.Payload)] = true
	}
	if len(seen) != callersAtOnce*each {
		t.Errorf("%d different payloads, want %d", len(seen), callersAtOnce*each)
	}
}

func TestFill(t *testing.T) {
	for _, n := range []int{0, 1, smallBody - 1, smallBody, smallBody + 1, 3*smallBody + 7, 1 << 20} {
		s := newWorld(t).Server
		for limit, fits := range map[int64]bool{int64(n): true, int64(n) + 1: true, int64(n) - 1: false} {
			if limit < 0 {
				continue
			}
			text := strings.Repeat("ab", n)[:n]
			for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "in halves": iotest.HalfReader(strings.NewReader(text)), "end with data": iotest.DataErrReader(strings.NewReader(text))} {
				body := s.newComing(echo.New().NewContext(httptest.NewRequest(http.MethodPost, "/", r), httptest.NewRecorder()))
				buf := s.buffer()
				err := fill(buf, body, limit)
				if (err == nil) != fits || fits && buf.String() != text {
					t.Errorf("%d bytes %s, limit %d: error %v, %d bytes read", n, name, limit, err, buf.Len())
				}
				want := amounts{smallRoom: int64(n)}
				if n > smallBody { // no less than what has come before the last step
					want = amounts{largeRoom: max(body.guest.held[largeRoom], int64(n)/2)}
				}
				if fits && body.guest.held != want {
					t.Errorf("%d bytes %s, limit %d: holds %v, want %v", n, name, limit, body.guest.held, want)
				}
				body.guest.leave()
				if s.rooms.held != (amounts{}) || len(s.rooms.payers) != 0 {
					t.Errorf("%d bytes %s, limit %d: %v is still held", n, name, limit, s.rooms.held)
				}
			}
		}
	}
}

func TestLargeBufferIsNotKept(t *testing.T) {
	s := newWorld(t).Server
	b := s.buffer()
	b.Grow(keptBuffer + 1)
	s.recycle(b)
	if got, _ := s.buffers.Get().(interface{ Cap() int }); got != nil && got.Cap() > keptBuffer {
		t.Errorf("a buffer of %d bytes is kept", got.Cap())
	}
}
