package gate

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// skip says why no hook is asked about a Stop: the agent's own tasks still run
// (spec/claude-code.md 11), or it is at its last turn (spec/azure.md 36).
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
	return "", false
}

// unasked is the verdict of a hook whose evaluator is not asked: its condition
// does not hold, or could not be answered; the loop is at its cap (spec/azure.md
// 35); or the answer that it is about is not known. A hook that is not about the
// event is not capped, so the condition comes first.
func (e *evaluation) unasked(ctx context.Context, h *Hook, in Input) (v Verdict, is bool) {
	answerless := h.Event == Stop && e.ev.AnswerUnknown && h.Dialect != AXCode // whose hooks are not told it
	var failure *Failure
	if h.When != nil && !answerless {
		var holds bool
		if holds, failure = h.When.Holds(ctx, in); failure == nil && !holds {
			return Verdict{Outcome: Skipped, Notes: []Note{WhenFalse}}, true
		}
	}
	switch {
	case e.capped(h, e.seen.opened(e.ev)):
		return Verdict{Outcome: Skipped, Notes: []Note{Capped}}, true
	case failure != nil:
		return Verdict{Outcome: NoVerdict, Failure: &Failure{failure.Code, "when: " + failure.Message}}, true
	case answerless:
		return failed(TranscriptUnreadable, "the agent's answer is not in its payload and was not found in its transcript"), true
	}
	return Verdict{}, false
}

// evaluate asks every hook and answers in firing order: at once, at most
// Parallel of them, or one after another where the dialect says so. No hook waits
// for a shadow. It returns when all have answered. Where there are verdicts
// already, only those whose hooks were skipped at the cap are sought again.
func (e *evaluation) evaluate(ctx context.Context, transcript Transcript) []Verdict {
	verdicts := make([]Verdict, len(e.hooks))
	slots := make(chan struct{}, max(e.gate.Parallel, 1))
	var running sync.WaitGroup
	turns := e.turns()
	for n, places := range turns {
		slots <- struct{}{}
		run := func() {
			defer func() { <-slots }()
			e.inTurn(ctx, transcript, verdicts, places)
		}
		if n < len(turns)-1 {
			running.Go(run)
		} else {
			run() // here, where most often it is the only one: thousands that wait for a model would each hold a second stack, and a rule is faster than one grows
		}
	}
	running.Wait()
	if e.abandoned.Load() {
		e.uncounted, e.gateError = true, &Failure{Code: Timeout, Message: ErrAbandoned.Error()}
	}
	return e.named(verdicts)
}

// turns are the places of hooks that run one after another, of all others one
// each; shadows are last, so that no hook waits for one.
func (e *evaluation) turns() (all [][]int) {
	for _, shadows := range []bool{false, true} {
		var before Dialect
		for i, h := range e.hooks {
			if h.Shadow != shadows {
				continue
			}
			if n := len(all) - 1; h.Dialect == before && h.Dialect.InTurn() {
				all[n] = append(all[n], i)
			} else {
				all = append(all, []int{i})
			}
			before = h.Dialect
		}
	}
	return all
}

// inTurn seeks the verdicts of these places, one after another.
func (e *evaluation) inTurn(ctx context.Context, transcript Transcript, verdicts []Verdict, places []int) {
	for n, i := range places {
		h, v := e.hooks[i], &verdicts[i]
		if e.verdicts != nil && !atCap(&e.verdicts[i]) {
			*v = e.verdicts[i]
		} else if e.override != nil {
			*v = e.override.waived()
		} else if why, skipped := e.skip(h); skipped {
			*v = Verdict{Outcome: Skipped}
			v.note(why)
		} else {
			*v = e.ask(ctx, h, transcript)
		}
		if h.endsTurn(v) {
			for _, rest := range places[n+1:] {
				verdicts[rest] = Verdict{Outcome: Skipped, Reason: fmt.Sprintf("not run: %q has blocked", h.Name)}
			}
			return
		}
	}
}

// named says of each verdict whose it is.
func (e *evaluation) named(verdicts []Verdict) []Verdict {
	for i, h := range e.hooks {
		v := &verdicts[i]
		v.hook, v.Name, v.Level, v.Type, v.Dialect, v.FailMode, v.Shadow = h, h.Name, h.Level, h.Type, h.Dialect, h.failModeOf(v), h.Shadow
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
	in := Input{Hook: h, Event: e.told(), Transcript: transcript, Network: e.network}
	if v, is := e.unasked(ctx, h, in); is {
		return v
	}
	evaluator := e.gate.Evaluators[h.Type]
	if evaluator == nil {
		return failed(Internal, fmt.Sprintf("no evaluator for hooks of type %q", h.Type))
	}
	in.Context = h.told(in.Event, e.loop(e.seen.opened(e.ev)), transcript)
	v = evaluator.Evaluate(ctx, in)
	if judged && h.enforced() && v.Outcome == NoVerdict && e.caller.Err() != nil {
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

// told is the event as hooks are told of it.
func (e *evaluation) told() *Event {
	if !e.ev.AnswersJoined {
		return e.ev
	}
	ev := *e.ev
	ev.FinalOutput = e.seen.opened(e.ev).newestAnswer(ev.FinalOutput)
	return &ev
}
