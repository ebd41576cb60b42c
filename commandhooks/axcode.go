package commandhooks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stopgate/gate"
)

// axCodeParallel is how many hooks of AX Code run at once, over all events
// (spec/ax-code.md 10).
const axCodeParallel = 4

// inOwnTime is run within the time of a hook that begins with it, as AX Code has
// it (spec/ax-code.md 9). That the gate must answer before it is over, since
// others were run first, is no time-out of the hook's: nothing follows from it.
func inOwnTime(limit time.Duration) func(context.Context, launcher, job) (ending, *gate.Failure) {
	return func(ctx context.Context, start launcher, j job) (ending, *gate.Failure) {
		errOver := errors.New("the hook's own time is over")
		ctx, cancel := context.WithTimeoutCause(ctx, limit, errOver)
		defer cancel()
		e, failure := run(ctx, start, j)
		e.cutShort = e.timedOut && !errors.Is(context.Cause(ctx), errOver)
		return e, failure
	}
}

// axCodeVerdict is AX Code's law (spec/ax-code.md 11–18): what a hook comes to
// depends on its event, on blockOnFailure, and on whether its entry says
// `protocol: claude-code`.
func (e ending) axCodeVerdict(h *gate.Hook) gate.Verdict {
	blocks := gate.AXCodeBlocks(h.Event)
	switch {
	case e.cutShort:
		return noVerdict(gate.Overloaded, "the gate had to answer %s after it began to run the hook, whose own time is %s", e.after.Round(time.Millisecond), h.Timeout)
	case h.ReadsAnswer && blocks:
		return e.axCodeAnswer(h.Event)
	case h.ReadsAnswer && h.Event == gate.PostToolUse:
		return e.axCodeFeedback()
	case e.axCodeExit() == 0 && h.Event == gate.PostToolUse:
		return gate.Verdict{Outcome: gate.Allow, AdditionalContext: e.stdout.trimmed()}
	case e.axCodeExit() == 0:
		return gate.Verdict{Outcome: gate.Allow}
	case h.BlockOnFailure && blocks:
		message := gate.FirstText(e.stderr.trimmed(), e.stdout.trimmed(), fmt.Sprintf("exit %d", e.axCodeExit()))
		return gate.Verdict{Outcome: gate.Block, Reason: message}
	}
	return e.passedOver()
}

// axCodeExit is the exit code as AX Code counts it (spec/ax-code.md 9).
func (e ending) axCodeExit() int {
	switch {
	case e.timedOut:
		return 124
	case e.signal != "":
		return 1
	}
	return e.code
}

// passedOver is the verdict of a failure that changes nothing but the record.
func (e ending) passedOver() gate.Verdict {
	if v, ended := e.ended(); !ended {
		return v
	}
	return noVerdict(gate.NonzeroExit, "the hook exited with %d%s", e.code, e.lastWords())
}

// axCodeAnswer is the law of `protocol: claude-code` where a hook can block
// (spec/ax-code.md 12–16).
func (e ending) axCodeAnswer(event gate.EventName) gate.Verdict {
	a, fault := gate.ReadAXCodeAnswer(e.stdout.kept)
	switch e.axCodeExit() {
	case 2: // also with a broken answer
		return gate.Verdict{Outcome: gate.Block, Reason: gate.FirstText(a.Reason(), e.stderr.trimmed())}
	case 0:
		if fault != nil {
			return e.unreadable(fault)
		}
		return a.Verdict(event)
	}
	return e.passedOver()
}

// axCodeFeedback is the law of `protocol: claude-code` after a tool call, which
// nothing can block any more (spec/ax-code.md 18, 20).
func (e ending) axCodeFeedback() gate.Verdict {
	a, fault := gate.ReadAXCodeAnswer(e.stdout.kept)
	v := gate.Verdict{Outcome: gate.Allow}
	switch e.axCodeExit() {
	case 2:
		v.AdditionalContext = gate.FirstText(a.Reason(), e.stderr.trimmed())
		return v
	case 0:
		if fault != nil {
			return e.unreadable(fault)
		}
		v.AdditionalContext = a.Feedback()
		return v
	}
	return e.passedOver()
}

// unreadable: an exit 0 goes on whatever it says, and the record keeps that
// nobody could read it (spec/ax-code.md 14).
func (e ending) unreadable(fault error) gate.Verdict {
	if e.stdout.cut {
		return noVerdict(gate.OutputTooLarge, "the hook wrote more than %d bytes to standard output, and AX Code goes on", keepBytes)
	}
	return noVerdict(gate.BadOutput, "standard output is no answer, and AX Code goes on: %v: %q", fault, head(e.stdout.trimmed(), 80))
}

// trimmed is what was kept of a stream, as text without white space round it.
func (t text) trimmed() string { return strings.TrimSpace(clean(t.kept)) }
