package gate

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Gate decides events. Every field but FindAnswer and Observe is required; it is
// safe for concurrent use once made.
type Gate struct {
	Policies *Policies
	Store    interface {
		Ledger
		Activations
	}
	Transcripts Transcripts
	// FindAnswer looks for the answer under judgement where a host's payload has
	// none, and says in the event if it was not found; nil: nothing is looked
	// for.
	FindAnswer func(ctx context.Context, ev *Event)
	Evaluators map[HookType]Evaluator
	// OnGateError is what an allow becomes when the gate itself failed.
	OnGateError FailMode
	// Parallel is how many hooks of one event run at once.
	Parallel int
	Now      func() time.Time
	NewID    func() string // evaluation ids; unique, ordered by time
	// Untried is a sentence about a host's version that nobody tried, for the
	// record; empty of one that was. nil: nothing is said of any.
	Untried func(protocol, version string) string
	// Observe sees every record after its commit was tried; nil: nobody. It
	// cannot change the decision.
	Observe func(Record)
}

// Options are what a caller adds to an event.
type Options struct {
	// Idempotency is the request that the decision answers, if it came with a
	// key: the commit completes it, reserved or not.
	Idempotency Request
	// Specs, when not nil, take the place of the gate's own policies: for dry
	// runs and for evaluations without a server.
	Specs []*Spec
	// AllActive asks agent-level hooks that are inactive as well: what is tried
	// is meant to be tried.
	AllActive bool
	// Caller ends when nobody waits for the answer any more. Judges, which cost
	// money, are then stopped; scripts, whose effects stand, run to their end. nil:
	// somebody always waits, or will ask again.
	Caller context.Context

	forHost bool // see [Gate.DecideForHost]
}

// Decide answers one event. It is the straight path of DESIGN §2:
//
//	match → budget → evaluate → settle → combine → commit
//
// An error means that there is no decision, since the request was wrong: an
// [*Error] with CodeNotFound (unknown agent) or CodeValidation (a transcript
// that may not be read); or since it has one already: CodeConflict (another
// decision answered its key meanwhile) or CodeIdempotencyMismatch (its key
// belongs to another body); or [ErrAbandoned]. Whatever else goes wrong is inside
// the decision.
//
// When ctx ends, hooks that still run have timed out.
func (g *Gate) Decide(ctx context.Context, ev Event, opt Options) (Decision, error) {
	e := &evaluation{gate: g, ev: &ev, began: g.Now(), id: g.NewID(), idempotency: opt.Idempotency, forHost: opt.forHost, caller: opt.Caller}

	policies := g.Policies
	if opt.Specs != nil {
		policies = policiesOf(opt.Specs)
	}
	m, err := policies.match(&ev)
	if err != nil {
		return Decision{}, err
	}
	e.concerned, e.network = len(m.hooks) > 0, m.network
	if e.hooks = m.hooks; !opt.AllActive {
		e.hooks = e.activated(ctx, m.hooks)
	}
	if ev.Probe != "" {
		return e.probe(ctx)
	}
	e.deferred = len(ev.Background) > 0 && m.agent != nil && m.agent.DeferForBackground && ev.Name.hookEvent() == Stop

	transcript, err := e.attach(ctx)
	if err != nil {
		return Decision{}, err
	}
	if transcript != nil {
		defer transcript.Close()
	}

	e.readCounts(ctx)
	e.verdicts = e.evaluate(ctx, transcript)
	d, err := e.commit(ctx)
	if errors.Is(err, ErrStale) { // once: nothing is skipped at the cap a second time
		e.verdicts = e.evaluate(ctx, transcript)
		d, err = e.commit(ctx)
	}
	if e.abandoned.Load() {
		return Decision{}, ErrAbandoned
	}
	return d, err
}

// ErrAbandoned says that the caller went away and its judges were stopped, so that there
// is no decision. It is recorded as the gate's failure and counts nothing: what
// was never answered neither rejects a Stop nor ends a loop.
var ErrAbandoned = errors.New("the caller went away before its judges had answered")

// evaluation is one event on its way through Decide.
type evaluation struct {
	gate        *Gate
	ev          *Event
	id          string
	began       time.Time
	idempotency Request
	forHost     bool            // nobody would read an error
	concerned   bool            // hooks are about the event, whether or not they are active
	caller      context.Context // see Options
	abandoned   atomic.Bool     // it has gone, and a judge was stopped
	uncounted   bool            // nobody was asked, so the ledger stays as it is
	deferred    bool            // the agent's tasks still run, and its spec says to wait for them
	hooks       []*Hook
	network     *Network // what http hooks may reach
	lost        bool     // the transcript could not be read
	seen        Counts   // as the ledger holds them
	gateError   *Failure // the first thing that went wrong with the gate itself
	verdicts    []Verdict
}

// counted reports whether the event has a ledger.
func (e *evaluation) counted() bool { return e.ev.Session != "" && !e.ev.Dry && !e.uncounted }

func (e *evaluation) storeFailed(err error) {
	if e.gateError == nil {
		e.gateError = &Failure{Code: StoreUnavailable, Message: err.Error()}
	}
}

// activated drops the agent-level hooks that are inactive in the thread
// (spec/azure.md 12). The store is asked only when such a hook is there.
func (e *evaluation) activated(ctx context.Context, hooks []*Hook) []*Hook {
	var switched map[string]bool
	if e.ev.Session != "" && len(hooks) > 0 && hooks[0].Level == AgentLevel {
		var err error
		if switched, err = e.gate.Store.Active(ctx, e.ev.Session); err != nil {
			e.storeFailed(err)
		}
	}
	active := hooks[:0]
	for _, h := range hooks {
		on := h.Activation != OnDemand
		if h.Level == AgentLevel {
			if s, ok := switched[h.Name]; ok {
				on = s
			}
		}
		if on {
			active = append(active, h)
		}
	}
	return active
}

// attach opens the conversation where a hook could read it, or the caller sent
// one to keep, or named one and is told if it may not be read.
func (e *evaluation) attach(ctx context.Context) (Transcript, error) {
	e.lost = e.ev.TranscriptStale
	if len(e.hooks) == 0 && e.ev.InlineTranscript == nil && (e.ev.TranscriptPath == "" || e.ev.Protocol != Native) {
		return nil, nil
	}
	t, err := e.gate.Transcripts.Attach(ctx, e.ev)
	if err == nil {
		e.learnVersion(t)
		return t, nil
	}
	if bad, ok := errors.AsType[*Error](err); ok && e.ev.Protocol == Native && !e.forHost {
		return nil, bad
	}
	e.lost = true
	if failure, ok := errors.AsType[*Failure](err); ok && e.ev.TranscriptPath == "" && e.gateError == nil {
		e.gateError = failure // what was ours to keep, not a file that somebody names
	}
	return nil, nil
}

// Native is the protocol of POST /v1/evaluate.
const Native = "native"

// readCounts is where the loop stands. Where no hook is to see it the commit's
// own reading does: it settles again if the counts are not zero.
func (e *evaluation) readCounts(ctx context.Context) {
	claimed := Counts{StopRejections: e.ev.ClaimedRejections, PromptRejections: e.ev.ClaimedRejections}
	if !e.counted() {
		e.seen = claimed
		return
	}
	if len(e.hooks) == 0 {
		return
	}
	var err error
	if e.seen, err = e.gate.Store.Counts(ctx, e.ev.ledgerKey()); err != nil {
		e.storeFailed(err)
	}
}

// loop is what the next Stop of the session sees. Without a ledger the caller's
// word that the loop is active stands until a Stop is allowed.
func (e *evaluation) loop(c Counts) loopState {
	return loopState{c.StopHookActive() || e.ev.ClaimedActive && !e.counted(), c.StopRejections}
}

// skip says why a hook is not asked: the agent's own tasks still run
// (spec/claude-code.md 11), it is at its last turn (spec/azure.md 36), or the
// loop is at its cap (35).
func (e *evaluation) skip(h *Hook) (Note, bool) {
	if h.Event.hookEvent() != Stop {
		return "", false
	}
	if e.deferred {
		return Deferred, true
	}
	if lastTurn(e.ev) {
		return MaxTurns, true
	}
	if e.capped(h, e.seen.opened(e.ev)) {
		return Capped, true
	}
	return "", false
}

// capped reports whether, with these counts, the hook may not reject once more.
func (e *evaluation) capped(h *Hook, c Counts) bool {
	if h.Dialect == ClaudeCode {
		return h.Event.hookEvent() == Stop && c.StopRejections >= claudeCodeStops
	}
	return h.countsRejections() && c.PromptRejections >= rejectionCap(e.hooks)
}

func lastTurn(ev *Event) bool {
	return ev.Name.hookEvent() == Stop && ev.MaxTurns > 0 && ev.Turn >= ev.MaxTurns
}

// atCap reports whether the hook of a verdict was skipped because of the cap.
func atCap(v *Verdict) bool { return v.Outcome == Skipped && v.Has(Capped) }

// skippedInVain reports whether a hook was skipped because of a cap that these
// counts are under: another Stop was let through at the cap, or the user spoke,
// and this one belongs to the loop that begins there
// (docs/decisions/0006-two-stops-at-the-cap.md).
func (e *evaluation) skippedInVain(now Counts) bool {
	now = now.opened(e.ev)
	return slices.ContainsFunc(e.verdicts, func(v Verdict) bool { return atCap(&v) && !e.capped(v.hook, now) })
}

// evaluate asks every hook and answers in firing order: at once, at most
// Parallel of them, or one after another where the dialect says so. It returns
// when all have answered. Where there are verdicts already, only those whose
// hooks were skipped at the cap are sought again.
func (e *evaluation) evaluate(ctx context.Context, transcript Transcript) []Verdict {
	verdicts := make([]Verdict, len(e.hooks))
	slots := make(chan struct{}, max(e.gate.Parallel, 1))
	var running sync.WaitGroup
	for first, last := 0, 0; first < len(e.hooks); first = last {
		of := e.hooks[first].Dialect
		for last++; of.inTurn() && last < len(e.hooks) && e.hooks[last].Dialect == of; last++ {
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			e.inTurn(ctx, transcript, verdicts, first, last)
		})
	}
	running.Wait()
	if e.abandoned.Load() {
		e.uncounted, e.gateError = true, &Failure{Code: Timeout, Message: ErrAbandoned.Error()}
	}
	return e.named(verdicts)
}

// inTurn seeks the verdicts from first up to last, one after another.
func (e *evaluation) inTurn(ctx context.Context, transcript Transcript, verdicts []Verdict, first, last int) {
	for i := first; i < last; i++ {
		h, v := e.hooks[i], &verdicts[i]
		if e.verdicts != nil && !atCap(&e.verdicts[i]) {
			*v = e.verdicts[i]
		} else if why, skipped := e.skip(h); skipped {
			*v = Verdict{Outcome: Skipped}
			v.note(why)
		} else {
			*v = e.ask(ctx, h, transcript)
		}
		if h.endsTurn(v) {
			for i++; i < last; i++ {
				verdicts[i] = Verdict{Outcome: Skipped, Reason: fmt.Sprintf("not run: %q has blocked", h.Name)}
			}
		}
	}
}

// named says of each verdict whose it is.
func (e *evaluation) named(verdicts []Verdict) []Verdict {
	for i, h := range e.hooks {
		v := &verdicts[i]
		v.hook, v.Name, v.Level, v.Type, v.FailMode = h, h.Name, h.Level, h.Type, h.failModeOf(v)
		if e.lost {
			v.note(TranscriptLost)
		}
		if v.Notes == nil {
			v.Notes = []Note{}
		}
	}
	return verdicts
}

// ask has one hook evaluated within its own timeout. An evaluator that panics
// or answers nonsense has given no verdict.
func (e *evaluation) ask(ctx context.Context, h *Hook, transcript Transcript) (v Verdict) {
	began := e.gate.Now()
	ctx, cancel := h.timed(ctx)
	defer cancel()
	judged := h.Type == PromptHook && e.caller != nil
	if judged {
		defer context.AfterFunc(e.caller, cancel)()
	}
	defer func() {
		if p := recover(); p != nil {
			v = failed(Internal, "the hook's evaluation panicked")
			v.Evidence = &Evidence{Stderr: CutEvidence(fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))}
		}
		v.Duration = e.gate.Now().Sub(began)
		v.DurationMS = v.Duration.Milliseconds()
	}()
	if h.Event == Stop && e.ev.AnswerUnknown && h.Dialect != AXCode { // whose hooks are not told it
		return failed(TranscriptUnreadable, "the agent's answer is not in its payload and was not found in its transcript")
	}
	evaluator := e.gate.Evaluators[h.Type]
	if evaluator == nil {
		return failed(Internal, fmt.Sprintf("no evaluator for hooks of type %q", h.Type))
	}
	v = evaluator.Evaluate(ctx, Input{Hook: h, Event: e.ev, Transcript: transcript,
		Context: e.context(h, transcript), Network: e.network})
	if judged && v.Outcome == NoVerdict && e.caller.Err() != nil {
		e.abandoned.Store(true)
	}
	switch {
	case v.Outcome == Allow, v.Outcome == Block, v.Outcome == Ask && h.Event == PreToolUse:
		v.Failure = nil
	case v.Outcome == NoVerdict:
		if v.Failure == nil {
			v.Failure = &Failure{Code: Internal, Message: "the hook gave no verdict and no cause"}
		}
	default:
		v.Outcome, v.Failure = NoVerdict, &Failure{Code: Internal, Message: fmt.Sprintf("the hook's outcome %q has no meaning on %s", v.Outcome, h.Event)}
	}
	return v
}

// context is what the hook is told.
func (e *evaluation) context(h *Hook, transcript Transcript) []byte {
	counts, ev := e.seen.opened(e.ev), *e.ev
	if ev.AnswersJoined {
		ev.FinalOutput = counts.newestAnswer(ev.FinalOutput)
	}
	return h.told(&ev, e.loop(counts), transcript)
}

// noProgressAfter rejections in a row for the same reason the loop goes nowhere,
// and the record says so.
const noProgressAfter = 3

// resolve is what the verdicts come to with the counts as they are now: pure,
// so that a commit may call it again when another event came in between.
func (e *evaluation) resolve(now Counts) (Decision, Counts) {
	now = now.opened(e.ev)
	verdicts := make([]Verdict, len(e.verdicts))
	for i, v := range e.verdicts {
		v.Notes = append([]Note{}, v.Notes...)
		v = settle(e.ev, v)
		if v.objects() && e.capped(v.hook, now) {
			// Another Stop of this session took the last rejection meanwhile.
			v = Verdict{Name: v.Name, Level: v.Level, Type: v.Type, Outcome: Skipped, Notes: []Note{Capped}, FailMode: v.FailMode,
				Duration: v.Duration, DurationMS: v.DurationMS, Model: v.Model, Usage: v.Usage, Evidence: v.Evidence, hook: v.hook}
		}
		verdicts[i] = v
	}
	d := combine(e.ev, verdicts)
	d.EvaluationID = e.id
	if e.ev.Probe != "" {
		answerProbe(e.ev, &d)
	}
	if e.ev.Name == Start && now.Started {
		withholdContext(&d)
	}
	if e.ev.Name.hookEvent() == Stop {
		switch {
		case d.Outcome == Allow:
			d.Forced = lastTurn(e.ev)
			for i := range verdicts {
				d.Forced = d.Forced || verdicts[i].Has(Capped)
			}
		case now.SameReason >= noProgressAfter-1 && strings.TrimSpace(d.Reason) == now.LastReason:
			for i := range verdicts {
				if verdicts[i].objects() {
					verdicts[i].note(NoProgress)
				}
			}
		}
	}
	if e.gateError != nil {
		d.Degraded, d.GateError = true, e.gateError
		if d.Outcome == Allow && e.concerned && e.gate.OnGateError == FailBlock {
			refuse(e.ev, &d)
		}
	}
	next := now
	if !e.deferred && e.ev.Probe == "" { // a Stop that is put off, or only asked about, is none yet
		next = now.after(e.ev, &d)
	}
	after := e.loop(next)
	if e.ev.Name.hookEvent() == Stop && !e.deferred && e.ev.Probe == "" {
		after.StopHookActive = next.StopHookActive()
	}
	d.StopHookActive, d.StopRejectionCount = after.StopHookActive, after.StopRejectionCount
	return d, next
}

// withholdContext takes the context out of a Start that is not the thread's
// first (spec/azure.md 49).
func withholdContext(d *Decision) {
	d.AdditionalContext, d.Messages = "", []Message{}
	for i := range d.Hooks {
		d.Hooks[i].Injected = false
	}
}
