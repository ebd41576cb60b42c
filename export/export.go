// Package export sends records to where a team keeps them: a file, an HTTP
// endpoint, or whatever else is a [Sink].
//
//	exporter, err := export.Start(ctx, export.Options{Outbox: store, Holder: "replica-1", Log: log,
//		Sinks: []export.Named{{Name: "archive", Sink: file}}})
//	defer exporter.Close()
//
// Each record reaches each sink at least once: the store's outbox has it from its
// commit until the sink has said that it keeps it, whoever is killed in between.
// What comes twice has the same evaluation_id. Nothing here drops a record: a sink
// that fails is asked again for as long as the store has what it lacks. One record
// that the sink refuses for what it is ([Refusal]), alone and a few times, is set aside
// in the outbox, until somebody has it sent again, and those after it go on. All that
// shows in [State], and decides nothing: no decision waits for a sink.
//
// A session's records are sent in the order of their commits.
package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"stopgate/gate"
)

// Sink is where records go. Its methods are called by one goroutine.
type Sink interface {
	// Send hands over records in their order, each with its line: the JSON of GET
	// /v1/evaluations/{id} and a newline. nil: the sink has all of them, and keeps
	// them. After an error it may have some, and is handed them again. It returns
	// soon after ctx has ended.
	Send(ctx context.Context, records []gate.Record, lines [][]byte) error
	Close() error
}

// Refusal is an error of [Sink.Send] that may say that what was sent is at fault,
// and would be refused each time, where every other says that the sink is.
type Refusal interface {
	error
	RecordsAtFault() bool
}

// Named is a sink with the name that the outbox knows it by.
type Named struct {
	Name string
	Sink Sink
}

// Options of [Start]. All are required, but there may be no sinks: then those that
// were there once are forgotten in time.
type Options struct {
	Outbox gate.Outbox
	Sinks  []Named // closed by Close, and by Start where it fails
	Holder string  // tells this process from every other, those before it included
	Log    *slog.Logger
}

const (
	// batchRecords and batchBytes bound one Send: a request of a size that every
	// collector takes. One record alone may be larger.
	batchRecords = 500
	batchBytes   = 1 << 20
	// sendTime is how long one Send may take; the lease is longer, so that no other
	// replica sends the same meanwhile.
	sendTime  = 20 * time.Second
	leaseTime = 30 * time.Second
	// pollEvery is how often the outbox is looked into when there was nothing.
	pollEvery = time.Second
	// firstPause and lastPause are how long a sink that failed is left alone; each
	// is twice the one before.
	firstPause = time.Second
	lastPause  = time.Minute
	// refusals are how often a sink may refuse one record before that is set aside:
	// over some three seconds, for which all others wait.
	refusals = 3
	// stateEvery is how often the outbox is asked for what is pending.
	stateEvery = 10 * time.Second
	// keepEvery is how often the outbox is told that the sinks are in use.
	keepEvery = gate.SinkLife / 24
	// closeTime is how long Close waits for a Send to end.
	closeTime = 3 * time.Second
)

// Exporter sends until it is closed.
type Exporter struct {
	opt     Options
	sinks   []*sending
	stop    context.CancelFunc // nothing new is begun
	abort   context.CancelFunc // what runs is ended
	running sync.WaitGroup

	mu     sync.Mutex
	stored map[string]gate.SinkState
}

// State is how far a sink is.
type State struct {
	gate.SinkState
	Delivered uint64 // records that it has taken from this process
	Failures  uint64 // times that it has not
}

// Start makes the sinks known to the outbox and begins to send. Records that are
// committed from now on reach them.
func Start(ctx context.Context, opt Options) (*Exporter, error) {
	e := &Exporter{opt: opt}
	var names []string
	for _, s := range opt.Sinks {
		names = append(names, s.Name)
		e.sinks = append(e.sinks, &sending{Named: s, outbox: opt.Outbox, holder: opt.Holder, log: opt.Log.With("sink", s.Name), most: batchRecords})
	}
	// Without sinks there is nothing that a store in trouble could keep from them.
	if err := errors.Join(e.keep(ctx, names), e.look(ctx)); err != nil && len(names) > 0 {
		return nil, errors.Join(fmt.Errorf("export: %w", err), e.closeSinks())
	}
	hard, abort := context.WithCancel(context.WithoutCancel(ctx))
	soft, stop := context.WithCancel(hard)
	e.stop, e.abort = stop, abort
	for _, s := range e.sinks {
		e.running.Go(func() { s.run(soft, hard) })
	}
	e.running.Go(func() { e.watch(soft, names) })
	return e, nil
}

func (e *Exporter) keep(ctx context.Context, names []string) error {
	forgotten, err := e.opt.Outbox.KeepSinks(ctx, names)
	for _, f := range forgotten {
		e.opt.Log.Warn("sink was not configured for a day and is forgotten", "sink", f.Name, "undelivered", f.Pending)
	}
	return err
}

func (e *Exporter) look(ctx context.Context) error {
	states, err := e.opt.Outbox.SinkStates(ctx)
	if err != nil {
		return err
	}
	stored := map[string]gate.SinkState{}
	for _, s := range states {
		stored[s.Name] = s
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stored = stored
	return nil
}

// watch keeps the states, and the outbox's knowledge of the sinks, up to date.
// What fails is tried again: the store says by itself when it is down.
func (e *Exporter) watch(ctx context.Context, names []string) {
	state, keep := time.NewTicker(stateEvery), time.NewTicker(keepEvery)
	defer state.Stop()
	defer keep.Stop()
	if len(names) == 0 {
		state.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-state.C:
			_ = e.look(ctx)
		case <-keep.C:
			_ = e.keep(ctx, names)
		}
	}
}

// States are those of the sinks, in the order of the options. What is pending is
// as it was a few seconds ago.
func (e *Exporter) States() []State {
	e.mu.Lock()
	defer e.mu.Unlock()
	var states []State
	for _, s := range e.sinks {
		states = append(states, State{SinkState: e.stored[s.Name], Delivered: s.delivered.Load(), Failures: s.failures.Load()})
		states[len(states)-1].Name = s.Name
	}
	return states
}

// Close ends the sending, within a few seconds, and closes the sinks. What they
// lack stays in the outbox.
func (e *Exporter) Close() error {
	e.stop()
	late := time.AfterFunc(closeTime, e.abort)
	e.running.Wait()
	late.Stop()
	e.abort()
	return e.closeSinks()
}

func (e *Exporter) closeSinks() error {
	var errs []error
	for _, s := range e.opt.Sinks {
		if err := s.Sink.Close(); err != nil {
			errs = append(errs, fmt.Errorf("sink %q: %w", s.Name, err))
		}
	}
	return errors.Join(errs...)
}

// sending is one sink and what goes to it.
type sending struct {
	Named
	outbox    gate.Outbox
	holder    string
	log       *slog.Logger
	most      int   // records of the next batch: fewer after a failure, which one of them may have caused
	refused   int64 // place of the record that it refused last, alone, and how often
	times     int
	delivered atomic.Uint64
	failures  atomic.Uint64
}

// errGoOn says that the sink answers, and is sent another batch at once: a smaller
// one, or without the record that was set aside.
var errGoOn = errors.New("some records are refused")

// run sends until soft ends; hard ends what is on its way.
func (s *sending) run(soft, hard context.Context) {
	defer s.release(hard)
	pause, failing := firstPause, false
	for {
		n, err := s.round(soft, hard)
		wait := time.Duration(0)
		switch {
		case soft.Err() != nil:
			return
		case errors.Is(err, errGoOn):
			pause = firstPause
		case err != nil:
			if !failing {
				s.log.Warn("records cannot be delivered: they are kept, and tried again", "error", err)
			}
			failing = true
			wait = pause/2 + rand.N(pause) // so that replicas do not come at once
			pause = min(2*pause, lastPause)
		case n == 0:
			wait = pollEvery
		default:
			if failing {
				s.log.Info("records are delivered again")
			}
			pause, failing = firstPause, false
		}
		select {
		case <-soft.Done():
			return
		case <-time.After(wait):
		}
	}
}

// round sends one batch, and answers of how many records.
func (s *sending) round(soft, hard context.Context) (int, error) {
	var b batch
	err := s.outbox.Undelivered(soft, s.Name, gate.Lease{Holder: s.holder, Length: leaseTime}, func(d gate.Delivery) bool { return b.add(d, s.most) })
	if err = errors.Join(err, b.err); err != nil || len(b.places) == 0 {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(hard, sendTime)
	defer cancel()
	if err := s.send(ctx, b); err != nil {
		s.failures.Add(1)
		s.most = max(1, len(b.places)/2)
		return 0, s.judge(hard, b, err)
	}
	s.most = min(2*s.most, batchRecords)
	if err := s.outbox.Delivered(hard, s.Name, b.places); err != nil { // and so it gets them twice
		return 0, err
	}
	s.delivered.Add(uint64(len(b.places)))
	return len(b.places), nil
}

// judge finds out whether a record or the sink is at fault, and sets the record aside
// that has been refused often enough.
func (s *sending) judge(ctx context.Context, b batch, err error) error {
	var refusal Refusal
	switch {
	case !errors.As(err, &refusal) || !refusal.RecordsAtFault():
		return err
	case len(b.places) > 1:
		return errGoOn
	case s.refused != b.places[0]:
		s.refused, s.times = b.places[0], 0
	}
	id := slog.String("evaluation_id", b.records[0].EvaluationID)
	if s.times++; s.times < refusals {
		s.log.Warn("record is refused by the sink, and tried again", id, slog.Any("error", err))
		return err
	}
	if failed := s.outbox.SetAside(ctx, s.Name, b.places[0]); failed != nil {
		return failed
	}
	s.log.Error("record is set aside, since the sink refuses it: stopgate export --aside has it", id, slog.Any("error", err))
	return errGoOn
}

// send keeps a panic of a sink from the process.
func (s *sending) send(ctx context.Context, b batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("sink panicked: %v", p)
		}
	}()
	return s.Sink.Send(ctx, b.records, b.lines)
}

// release lets another replica go on at once.
func (s *sending) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	_ = s.outbox.ReleaseSink(ctx, s.Name, s.holder) // else it ends by itself
}

// batch is what goes in one Send.
type batch struct {
	places  []int64
	records []gate.Record
	lines   [][]byte
	bytes   int
	err     error
}

// add takes one more, and reports whether there is room for another.
func (b *batch) add(d gate.Delivery, most int) bool {
	line, err := Line(d.Record)
	if err != nil {
		b.err = err
		return false
	}
	if len(b.places) > 0 && b.bytes+len(line) > batchBytes {
		return false
	}
	b.places, b.records, b.lines = append(b.places, d.Place), append(b.records, d.Record), append(b.lines, line)
	b.bytes += len(line)
	return len(b.places) < most
}

// Line is a record as one line of NDJSON, with its newline: the JSON of GET
// /v1/evaluations/{id}.
func Line(r gate.Record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("record %q: %w", r.EvaluationID, err)
	}
	return append(text, '\n'), nil
}
