package gate

import (
	"context"
	"errors"
	"fmt"
)

// DecideForHost is all that lies between a host's payload, decoded, and its
// answer, encoded (DESIGN §2). It is Decide for hosts that may not say what is
// under judgement, so that FindAnswer looks for it, and that take an error for
// "allow": what goes wrong is answered by OnGateError, and a conversation that
// may not be read is done without (DESIGN §9). When ctx ends, hooks that still
// run have timed out. The only error is [ErrAbandoned].
func (g *Gate) DecideForHost(ctx context.Context, ev Event, opt Options) (Decision, error) {
	if ev.Name == "" {
		return Decision{Outcome: Allow}, nil // no hook is about it
	}
	if g.FindAnswer != nil {
		g.FindAnswer(ctx, &ev)
	}
	opt.forHost = true
	d, err := g.Decide(ctx, ev, opt)
	if err == nil || errors.Is(err, ErrAbandoned) {
		return d, err
	}
	code := Internal
	if CodeOf(err) == CodeNotFound {
		code = UnknownAgent
	}
	return g.Fail(context.WithoutCancel(ctx), ev, &Failure{Code: code, Message: err.Error()}), nil
}

// Fail answers an event that the gate could not take on: by OnGateError, with
// the cause in the answer. It is recorded where that is possible before ctx ends,
// and counts nothing.
func (g *Gate) Fail(ctx context.Context, ev Event, cause *Failure) Decision {
	e := &evaluation{gate: g, ev: &ev, began: g.Now(), id: g.NewID(), concerned: true, uncounted: true, gateError: cause}
	d, _ := e.commit(ctx) // nobody was skipped, and there is no key
	return d
}

// FailUnrecorded is Fail for a caller of whom nobody could say who it is: nothing
// that it sent is kept.
func (g *Gate) FailUnrecorded(ev Event, cause *Failure) Decision {
	e := evaluation{gate: g, ev: &ev, id: g.NewID(), concerned: true, uncounted: true, gateError: cause}
	d, _ := e.resolve(Counts{})
	return d
}

// refuse makes an allow a block because the gate itself failed and was told to
// block then. A Start cannot be blocked, and the last turn must end.
func refuse(ev *Event, d *Decision) {
	if ev.Name == Start || lastTurn(ev) {
		return
	}
	d.Outcome, d.Forced = Block, false
	d.Reason = fmt.Sprintf("The gate itself failed (%s), and it is set to block then.", d.GateError.Code)
	if ev.Name.hookEvent() == Stop {
		d.Messages = append([]Message{{Role: "user", Content: d.Reason}}, d.Messages...)
	}
}
