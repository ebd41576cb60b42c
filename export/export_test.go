package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// memory is an outbox of one sink.
type memory struct {
	mu       sync.Mutex
	pending  []gate.Delivery
	aside    []gate.Delivery
	kept     int
	released bool
	failing  error
}

func (m *memory) put(records ...gate.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		place := int64(1)
		if n := len(m.pending); n > 0 {
			place = m.pending[n-1].Place + 1
		}
		m.pending = append(m.pending, gate.Delivery{Place: place, Record: r})
	}
}

func (m *memory) KeepSinks(context.Context, []string) ([]gate.SinkState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept++
	return nil, m.failing
}

func (m *memory) Undelivered(_ context.Context, _ string, _ gate.Lease, see func(gate.Delivery) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.pending {
		if !see(d) {
			break
		}
	}
	return m.failing
}

func (m *memory) Delivered(_ context.Context, _ string, places []int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing == nil {
		m.pending = slices.DeleteFunc(m.pending, func(d gate.Delivery) bool { return slices.Contains(places, d.Place) })
	}
	return m.failing
}

func (m *memory) SetAside(_ context.Context, _ string, place int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = slices.DeleteFunc(m.pending, func(d gate.Delivery) bool {
		if d.Place == place && m.failing == nil {
			m.aside = append(m.aside, d)
		}
		return d.Place == place && m.failing == nil
	})
	return m.failing
}

func (m *memory) SendAgain(context.Context, string) (int64, error) { panic("not asked here") }

func (m *memory) ReleaseSink(context.Context, string, string) error {
	m.released = true
	return nil
}

func (m *memory) SinkStates(context.Context) ([]gate.SinkState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return []gate.SinkState{{Name: "s", Pending: int64(len(m.pending)), Aside: int64(len(m.aside)), Dropped: 3}}, nil
}

// sink is a function.
type sink func(ctx context.Context, records []gate.Record) error

func (s sink) Send(ctx context.Context, records []gate.Record, lines [][]byte) error {
	if len(records) != len(lines) {
		panic("lines are not those of the records")
	}
	return s(ctx, records)
}

func (sink) Close() error { return nil }

func recordOf(n int) gate.Record {
	return gate.Record{Decision: gate.Decision{EvaluationID: fmt.Sprint(n), Outcome: gate.Allow, Messages: []gate.Message{}, Hooks: []gate.Verdict{}}}
}

func start(t *testing.T, m *memory, s Sink) *Exporter {
	t.Helper()
	e, err := Start(t.Context(), Options{Outbox: m, Sinks: []Named{{"s", s}}, Holder: "me", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// pass lets time go by, and what runs come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func stop(t *testing.T, e *Exporter) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestEveryRecordIsSentInOrder, though the sink fails now and then: nothing is
// lost, and nothing confirmed comes again.
func TestEveryRecordIsSentInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const records = 1200
		m := &memory{}
		for n := range records {
			m.put(recordOf(n))
		}
		var got []string
		calls := 0
		e := start(t, m, sink(func(_ context.Context, records []gate.Record) error {
			if calls++; calls%3 == 1 {
				return errors.New("down")
			}
			for _, r := range records {
				got = append(got, r.EvaluationID)
			}
			return nil
		}))
		pass(time.Minute)
		stop(t, e)
		var want []string
		for n := range records {
			want = append(want, fmt.Sprint(n))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
		if s := e.States()[0]; s.Delivered != records || s.Failures == 0 || s.Dropped != 3 || s.Name != "s" {
			t.Errorf("state %+v", s)
		}
		if !m.released {
			t.Error("the lease was not given back")
		}
	})
}

// TestWhatARecordSpoils: one that the sink refuses holds up those after it, and
// no other; when it takes it, they follow.
func TestWhatARecordSpoils(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		for n := range 100 {
			m.put(recordOf(n))
		}
		var refused atomic.Value
		refused.Store("70")
		var got []string
		e := start(t, m, sink(func(_ context.Context, records []gate.Record) error {
			if slices.ContainsFunc(records, func(r gate.Record) bool { return r.EvaluationID == refused.Load() }) {
				return errors.New("refused")
			}
			for _, r := range records {
				got = append(got, r.EvaluationID)
			}
			return nil
		}))
		pass(10 * time.Minute)
		if len(got) != 70 {
			t.Errorf("%d were sent, want the 70 before it", len(got))
		}
		if s := e.States()[0]; s.Pending != 30 {
			t.Errorf("%d are pending, want 30", s.Pending)
		}
		refused.Store("")
		pass(10 * time.Minute)
		stop(t, e)
		if len(got) != 100 {
			t.Errorf("%d were sent, want 100", len(got))
		}
	})
}

// TestWhatASinkRefusesIsSetAside: a status that is about the record lets it be sent
// alone, a few times, and then those after it; every other keeps all of them waiting.
func TestWhatASinkRefusesIsSetAside(t *testing.T) {
	for status, aside := range map[int]bool{400: true, 413: true, 422: true, 301: false, 401: false, 403: false, 404: false, 408: false, 429: false, 500: false, 503: false} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{}
				for n := range 600 {
					m.put(recordOf(n))
				}
				var got []string
				alone, first, last := 0, time.Time{}, time.Time{}
				e := start(t, m, sink(func(_ context.Context, records []gate.Record) error {
					if slices.ContainsFunc(records, func(r gate.Record) bool { return r.EvaluationID == "70" }) {
						if len(records) == 1 {
							if alone++; alone == 1 {
								first = time.Now()
							}
							last = time.Now()
						}
						return fmt.Errorf("wrapped: %w", refusedWith(status))
					}
					for _, r := range records {
						got = append(got, r.EvaluationID)
					}
					return nil
				}))
				pass(time.Minute)
				state := e.States()[0]
				stop(t, e)
				if !aside {
					if len(m.aside) != 0 || len(got) > 70 || state.Aside != 0 {
						t.Errorf("%d sent, set aside: %v", len(got), m.aside)
					}
					return
				}
				if len(m.aside) != 1 || m.aside[0].Record.EvaluationID != "70" || len(got) != 599 || state.Aside != 1 || state.Pending != 0 || state.Delivered != 599 {
					t.Errorf("%d sent, set aside: %v, state %+v", len(got), m.aside, state)
				}
				if took := last.Sub(first); alone != refusals || took < time.Second || took > 5*time.Second {
					t.Errorf("it was tried %d times in %s", alone, took)
				}
			})
		})
	}
}

func TestFailuresArePacedAndPanicsAreFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		m.put(recordOf(1))
		e := start(t, m, sink(func(context.Context, []gate.Record) error { panic("no") }))
		pass(time.Hour)
		stop(t, e)
		// A minute each at the end, half of one or one and a half by chance.
		if s := e.States()[0]; s.Failures < 40 || s.Failures > 130 || s.Delivered != 0 || len(m.pending) != 1 {
			t.Errorf("state %+v", s)
		}
	})
}

// TestASendThatHangs is given up after its time, and at the end.
func TestASendThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		m.put(recordOf(1))
		e := start(t, m, sink(func(ctx context.Context, _ []gate.Record) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		pass(sendTime + 100*time.Millisecond)
		if s := e.States()[0]; s.Failures != 1 {
			t.Errorf("%d failures after %v", s.Failures, sendTime)
		}
		pass(10 * time.Second) // and it hangs again
		began := time.Now()
		stop(t, e)
		if took := time.Since(began); took > closeTime {
			t.Errorf("Close took %v", took)
		}
		if len(m.pending) != 1 {
			t.Error("the record is gone")
		}
	})
}

// TestAStoreThatFails: records wait, and go when it works again. At the start it
// is an error.
func TestAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		sent := 0
		e := start(t, m, sink(func(_ context.Context, r []gate.Record) error { sent += len(r); return nil }))
		m.mu.Lock()
		m.failing = errors.New("store is down")
		m.mu.Unlock()
		m.put(recordOf(1))
		pass(time.Minute)
		if sent != 0 || len(m.pending) != 1 {
			t.Errorf("%d were sent", sent)
		}
		m.mu.Lock()
		m.failing = nil
		m.mu.Unlock()
		pass(3 * time.Minute)
		if sent != 1 || len(m.pending) != 0 {
			t.Errorf("%d were sent", sent)
		}
		pass(gate.SinkLife)
		stop(t, e)
		if m.kept < 20 {
			t.Errorf("the store was told %d times in a day that the sink is in use", m.kept)
		}
		if _, err := Start(t.Context(), Options{Outbox: &memory{failing: errors.New("down")}, Sinks: []Named{{"s", sink(nil)}}, Log: slog.New(slog.DiscardHandler)}); err == nil {
			t.Error("it starts without a store")
		}
	})
}

// TestBatchesAreBounded in records and bytes, and one record alone may be larger.
func TestBatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		large := recordOf(0)
		large.Reason = strings.Repeat("x", batchBytes/3)
		huge := recordOf(1)
		huge.Reason = strings.Repeat("x", 3*batchBytes)
		m.put(large, large, large, huge, large)
		for n := range batchRecords {
			m.put(recordOf(n + 2))
		}
		var sizes []int
		e := start(t, m, sink(func(_ context.Context, r []gate.Record) error { sizes = append(sizes, len(r)); return nil }))
		pass(time.Minute)
		stop(t, e)
		if diff := cmp.Diff([]int{2, 1, 1, batchRecords, 1}, sizes); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

func TestLineIsOneLine(t *testing.T) {
	r := recordOf(1)
	r.Payload = gate.Payload("{\n  \"a\": \"<x>\u2028\"\n}")
	line, err := Line(r)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(line), "\n"); n != 1 || line[len(line)-1] != '\n' {
		t.Errorf("%q", line)
	}
	var back gate.Record
	if err := json.Unmarshal(line, &back); err != nil {
		t.Fatal(err)
	}
	var want, got any
	if json.Unmarshal(r.Payload, &want) != nil || json.Unmarshal(back.Payload, &got) != nil || !cmp.Equal(want, got) {
		t.Errorf("payload %s", back.Payload)
	}
}
