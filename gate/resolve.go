package gate

import (
	"slices"
	"strings"
)

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
			v = Verdict{Name: v.Name, Level: v.Level, Type: v.Type, Dialect: v.Dialect, Outcome: Skipped, Notes: []Note{Capped}, FailMode: v.FailMode,
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
				d.Forced = d.Forced || verdicts[i].Has(Capped) || verdicts[i].Has(Overridden)
			}
		case now.SameReason >= noProgressAfter-1 && MarkHead(strings.TrimSpace(d.Reason)) == now.LastReason:
			for i := range verdicts {
				if verdicts[i].objects() && !verdicts[i].Shadow {
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

// capped reports whether, with these counts, the hook may not reject once more.
// A shadow's rejections are none.
func (e *evaluation) capped(h *Hook, c Counts) bool {
	limit, rejections := h.RejectionCap(e.hooks), c.PromptRejections
	if h.Dialect == ClaudeCode {
		rejections = c.StopRejections
	}
	return limit > 0 && rejections >= limit
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
