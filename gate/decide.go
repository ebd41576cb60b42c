package gate

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// Gate decides events. Every field but Beginnings, FindAnswer and Observe is required; it is
// safe for concurrent use once made.
type Gate struct {
	Policies *Policies
	Store    interface {
		Ledger
		Activations
		Overrides
	}
	Transcripts Transcripts
	// Beginnings say in which project an agent is; nil: hooks look for themselves
	// where each event says that it works.
	Beginnings *Beginnings
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

	// Failure is what was wrong before: hooks are asked all the same, and what they
	// would allow follows OnGateError. nil: nothing was.
	Failure *Failure

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
	e := &evaluation{gate: g, ev: &ev, began: g.Now(), id: g.NewID(), agent: ev.Agent, idempotency: opt.Idempotency, forHost: opt.forHost, caller: opt.Caller, gateError: opt.Failure}

	policies := g.Policies
	if opt.Specs != nil {
		policies = policiesOf(opt.Specs)
	}
	e.begin(ctx, policies.knowProjects(ev.Agent))
	m, err := policies.match(&ev)
	if err != nil {
		return Decision{}, err
	}
	// After a failure nobody knows which hooks it kept away.
	e.concerned, e.network = opt.Failure != nil || slices.ContainsFunc(m.hooks, (*Hook).enforced), m.network
	if e.hooks = m.hooks; !opt.AllActive {
		e.hooks = e.activated(ctx, m.hooks)
	}
	if ev.Probe != "" {
		return e.probe(ctx)
	}
	e.deferred = len(ev.Background) > 0 && m.agent != nil && m.agent.DeferForBackground && ev.Name.hookEvent() == Stop

	e.readLedger(ctx)
	transcript, err := e.attach(ctx)
	if err != nil {
		return Decision{}, err
	}
	if transcript != nil {
		defer transcript.Close()
	}

	e.readOverride(ctx)
	e.verdicts = e.evaluate(ctx, transcript)
	d, err := e.commit(context.WithoutCancel(ctx))
	if errors.Is(err, ErrStale) { // once: nothing is skipped at the cap a second time
		e.verdicts = e.evaluate(ctx, transcript)
		d, err = e.commit(context.WithoutCancel(ctx))
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
	agent       string // as the caller named it
	began       time.Time
	idempotency Request
	forHost     bool            // nobody would read an error
	concerned   bool            // hooks that are no shadows are about the event, whether or not they are active
	caller      context.Context // see Options
	abandoned   atomic.Bool     // it has gone, and a judge was stopped
	uncounted   bool            // nobody was asked, so the ledger stays as it is
	deferred    bool            // the agent's tasks still run, and its spec says to wait for them
	override    *Override       // in force; nil: none is
	hooks       []*Hook
	network     *Network        // what http hooks may reach
	switched    map[string]bool // agent-level hooks that the session has switched
	lost        bool            // the transcript could not be read
	known       bool            // what the hooks are asked with, for the record
	first       Projects        // to be kept for the session, which begins; nil: they are
	mark        *TranscriptMark // how much of the transcript there was
	seen        Counts          // as the ledger holds them
	gateError   *Failure        // the first thing that went wrong with the gate itself
	verdicts    []Verdict
}

// counted reports whether the event has a ledger.
func (e *evaluation) counted() bool { return e.ev.Session != "" && !e.ev.Dry && !e.uncounted }

func (e *evaluation) storeFailed(err error) { e.failed(StoreUnavailable, err) }

// failed says what is wrong with the gate itself, unless something was before.
func (e *evaluation) failed(code FailureCode, err error) {
	if e.gateError == nil {
		e.gateError = &Failure{Code: code, Message: err.Error()}
	}
}

// activated drops the agent-level hooks that are inactive in the thread
// (spec/azure.md 12). The store is asked only when such a hook is there.
func (e *evaluation) activated(ctx context.Context, hooks []*Hook) []*Hook {
	if e.ev.Session != "" && len(hooks) > 0 && hooks[0].Level == AgentLevel {
		var err error
		if e.switched, err = e.gate.Store.Active(ctx, e.ev.Session); err != nil && slices.ContainsFunc(hooks, (*Hook).enforced) {
			e.storeFailed(err)
		}
	}
	active := hooks[:0]
	for _, h := range hooks {
		on := h.Activation != OnDemand
		if h.Level == AgentLevel {
			if s, ok := e.switched[h.Name]; ok {
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
	sent := e.ev.InlineTranscript != nil || e.ev.TranscriptPath != "" && e.ev.Protocol == Native
	if len(e.hooks) == 0 && !sent {
		e.markUnread()
		return nil, nil
	}
	t, err := e.gate.Transcripts.Attach(ctx, e.ev)
	if err == nil {
		e.learnVersion(t)
		e.markRead(t)
		return t, nil
	}
	if !sent && !slices.ContainsFunc(e.hooks, (*Hook).enforced) { // only shadows need it
		e.lost, e.known = true, true
		return nil, nil
	}
	if bad, ok := errors.AsType[*Error](err); ok && e.ev.Protocol == Native && !e.forHost {
		return nil, bad
	}
	e.lost, e.known = true, true
	if failure, ok := errors.AsType[*Failure](err); ok && e.ev.TranscriptPath == "" && e.gateError == nil {
		e.gateError = failure // what was ours to keep, not a file that somebody names
	}
	return nil, nil
}

// Native is the protocol of POST /v1/evaluate.
const Native = "native"

// readLedger is where the loop stands, and which erasure of the session was the last:
// one that comes while a hook takes its time, or a conversation is kept, is to win.
// Where neither is, the commit's own reading does: it settles again if the counts are
// not zero.
func (e *evaluation) readLedger(ctx context.Context) {
	if !e.counted() {
		e.seen = Counts{StopRejections: e.ev.ClaimedRejections, PromptRejections: e.ev.ClaimedRejections}
	}
	if e.ev.Session == "" || len(e.hooks) == 0 && e.ev.InlineTranscript == nil {
		return
	}
	counts, erasure, err := e.gate.Store.Counts(ctx, e.ev.ledgerKey())
	if err != nil && slices.ContainsFunc(e.hooks, (*Hook).enforced) {
		e.storeFailed(err)
	}
	if e.counted() {
		e.seen = counts
	}
	if e.ev.Erasure == 0 { // else it was looked up before anything else was
		e.ev.Erasure = erasure
	}
}

// loop is what the next Stop of the session sees. Without a ledger the caller's
// word that the loop is active stands until a Stop is allowed.
func (e *evaluation) loop(c Counts) loopState {
	return loopState{c.StopHookActive() || e.ev.ClaimedActive && !e.counted(), c.StopRejections}
}
