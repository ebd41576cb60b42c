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
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// wired is what a handler sees of a connection that has deadlines for reading.
type wired struct {
	*httptest.ResponseRecorder
	from *io.PipeReader
	mu   sync.Mutex
	late *time.Timer
}

func (w *wired) SetReadDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.late != nil {
		w.late.Stop()
	}
	w.late = time.AfterFunc(time.Until(at), func() { w.from.CloseWithError(context.DeadlineExceeded) })
	return nil
}

// begin sends the beginning of a request with a token, and never its end; the
// status comes when it is answered.
func begin(w *world, token, target, beginning string) (status chan int) {
	from, to := io.Pipe()
	r := httptest.NewRequest(http.MethodPost, target, from)
	r.Header.Set("Content-Type", typeJSON)
	r.Header.Set("Authorization", "Bearer "+token)
	conn := &wired{ResponseRecorder: httptest.NewRecorder(), from: from}
	_ = conn.SetReadDeadline(time.Now().Add(w.pace)) // as Serve sets it for the whole request
	status = make(chan int, 1)
	go func() { _, _ = io.WriteString(to, beginning) }() // fails when nobody reads on
	go func() {
		w.Handler().ServeHTTP(conn, r)
		_ = from.Close()
		status <- conn.Code
	}()
	return status
}

// crowd is a server with two keys that can only ask, and little room.
func crowd(t *testing.T) *world {
	w := newWorld(t, func(o *Options) {
		o.Limits.BodyBytes, o.Limits.BufferedBytes, o.Limits.InFlight = 1<<20, 16*smallBody, 8
		o.Protocol = func(string) (HostProtocol, bool) { return plainHost{}, true }
	})
	w.agent(t, "marker", gate.Stop, "ends")
	w.judge = func(context.Context, gate.Input) gate.Verdict { return gate.Verdict{Outcome: gate.Block, Reason: "no"} }
	ask := func(name string) gate.Caller {
		return gate.Caller{Name: name, Credential: "key:" + name, Scopes: []gate.Scope{gate.EvaluateScope}, Agents: []string{gate.EveryAgent}}
	}
	w.opt.Login = tokens{"mine": ask("mine"), "theirs": ask("theirs")}
	return w
}

func longStop(size int) string {
	return strings.Replace(stop, "done", strings.Repeat("x", size), 1)
}

// One key that sends the beginnings of many bodies, large or small, and no ends, shuts
// out neither another's events, large or small, nor its own, which on_gate_error would
// let go.
func TestNoKeyShutsOutAnother(t *testing.T) {
	for name, beginning := range map[string]string{"large bodies": `{"x":"` + strings.Repeat("a", 3*smallBody), "small bodies": "{"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := crowd(t)
				var held []chan int
				for range 20 {
					held = append(held, begin(w, "mine", "/v1/evaluate", beginning))
				}
				synctest.Wait()
				for _, size := range []int{1, 5 * smallBody} {
					w.must(t, 200, "POST", "/v1/evaluate", longStop(size), as("theirs"))
				}
				time.Sleep(ownStandstill)
				for _, size := range []int{1, 5 * smallBody} {
					rec := w.must(t, 200, "POST", "/v1/evaluate", longStop(size), as("mine"))
					if got := fields(t, rec)["decision"]; got != "block" {
						t.Errorf("its own of %d bytes: %v", size, got)
					}
				}
				time.Sleep(2 * w.pace)
				synctest.Wait()
				for _, status := range held {
					if got := <-status; got != 503 && got != 400 {
						t.Errorf("a beginning was answered %d", got)
					}
				}
				if w.rooms.held != (amounts{}) || len(w.rooms.payers) != 0 {
					t.Errorf("%v is still held by %d", w.rooms.held, len(w.rooms.payers))
				}
			})
		})
	}
}

// A large body that does not come is waited for no longer than a piece of it may
// take, one that comes slowly is.
func TestLargeBodiesKeepAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crowd(t)
		began := time.Now()
		if status := <-begin(w, "mine", "/v1/evaluate", strings.Repeat(" ", smallBody+1)); status != 400 || time.Since(began) != pieceTime {
			t.Errorf("%d after %s", status, time.Since(began))
		}
		from, to := io.Pipe()
		go func() {
			for text := longStop(5 * smallBody); len(text) > 0; {
				time.Sleep(pieceTime * 4 / 5)
				n := min(len(text), smallBody)
				_, _ = io.WriteString(to, text[:n])
				text = text[n:]
			}
			to.Close()
		}()
		r := httptest.NewRequest(http.MethodPost, "/v1/evaluate", from)
		r.Header.Set("Content-Type", typeJSON)
		r.Header.Set("Authorization", "Bearer mine")
		conn := &wired{ResponseRecorder: httptest.NewRecorder(), from: from}
		if w.Handler().ServeHTTP(conn, r); conn.Code != 200 {
			t.Errorf("a slow one: %d %s", conn.Code, conn.Body)
		}
	})
}

// Of what is there, all but a share is for others; and what is being judged gives
// way to nobody.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooms(Limits{InFlight: 8, BufferedBytes: 80})
		take := func(name string, kind roomKind, n int64) error {
			g := r.enter(name, func() { t.Errorf("%s gave way", name) })
			err := g.take(kind, n)
			if e := g.arrived(); err == nil && e != nil {
				t.Error(e)
			}
			return err
		}
		var got []string
		for _, ask := range []struct {
			name string
			kind roomKind
			n    int64
		}{
			{"a", placeRoom, 6}, {"a", placeRoom, 1}, {"b", placeRoom, 2}, {"b", placeRoom, 1},
			{"a", smallRoom, 30}, {"a", smallRoom, 1}, {"b", smallRoom, 10}, {"c", smallRoom, 1},
			{"a", largeRoom, 41}, {"a", largeRoom, 40}, {"b", largeRoom, 40}, {"c", largeRoom, 1},
		} {
			time.Sleep(2 * standstill)
			err := take(ask.name, ask.kind, ask.n)
			word := "yes"
			if err != nil {
				word = "no"
				if strings.Contains(err.Error(), "one credential") {
					word = "no more"
				}
				if gate.CodeOf(err) != gate.CodeOverloaded {
					t.Error(err)
				}
			}
			got = append(got, fmt.Sprint(ask.name, ask.n, " ", word))
		}
		want := []string{"a6 yes", "a1 no more", "b2 yes", "b1 no", "a30 yes", "a1 no more", "b10 yes", "c1 no", "a41 no more", "a40 yes", "b40 yes", "c1 no"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Where several have taken all there is, who stands still gives way to anybody.
func TestWhoStandsStillGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooms(Limits{InFlight: 4, BufferedBytes: 80})
		var gone []string
		enter := func(name string) *guest { return r.enter(name, func() { gone = append(gone, name) }) }
		a, b, c := enter("a"), enter("b"), enter("c")
		for _, g := range []*guest{a, b} {
			if err := g.take(largeRoom, 40); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(standstill / 2)
		b.progress()
		if err := c.take(largeRoom, 1); err == nil {
			t.Error("nobody has stood still for long, and there was room")
		}
		time.Sleep(standstill / 2)
		if err := c.take(largeRoom, 1); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"a"}, gone); diff != "" {
			t.Errorf("gave way (-want +got):\n%s", diff)
		}
		if gate.CodeOf(a.arrived()) != gate.CodeOverloaded || gate.CodeOf(a.take(placeRoom, 1)) != gate.CodeOverloaded {
			t.Error("who gave way is let go on")
		}
		for _, g := range []*guest{a, b, c} {
			g.leave()
		}
		if r.held != (amounts{}) || len(r.payers) != 0 {
			t.Errorf("%v is held by %d", r.held, len(r.payers))
		}
	})
}
