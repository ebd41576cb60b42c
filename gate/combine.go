package gate

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Reasons given where a hook gave none.
const (
	defaultToolReason = "A hook blocked this tool call and gave no reason."
	defaultReason     = "A hook blocked this and gave no reason."
	// Withheld tells the agent what a PostToolUse block means where it replaces
	// the tool's result (spec/azure.md 45). The native protocol always says so;
	// of the hosts, those that do replace it.
	Withheld = "(The tool has already run: its result is withheld, its side effects stand.)"
)

// settle gives one verdict its meaning on the event, before combination:
// a failure its failMode (spec/azure.md 42), a Stop rejection without a reason
// an approval (34), any other block without one a stated default (45).
func settle(ev *Event, v Verdict) Verdict {
	name := ev.Name.hookEvent()
	cutReason(&v)
	switch v.Outcome {
	case NoVerdict:
		if v.FailMode == FailBlock {
			v.note(FailedClosed)
			v.Reason = fmt.Sprintf("Hook %q could not be evaluated (%s), and it is set to block then.", v.Name, v.Failure.Error())
		} else {
			v.note(FailedOpen)
		}
	case Block:
		if v.Reason != "" {
			break
		}
		switch {
		case name == Stop && v.dialect() == Azure:
			v.Outcome = Allow
			v.note(RejectedWithoutReason)
		case name == Stop && v.dialect() == ClaudeCode && FirstText(v.AdditionalContext) != "":
			// The turn goes on with the context, which is all that it is told
			// (wire/EFFECTS.md 1).
			v.Reason, v.AdditionalContext = v.AdditionalContext, ""
			cutReason(&v)
		case name.ForTool():
			v.Reason = defaultToolReason
		default:
			v.Reason = defaultReason
		}
	}
	if name == Start && v.objects() { // Start cannot block (DESIGN §9)
		if v.Outcome == Block {
			v.Outcome = Allow
		}
		v.note(WouldBlock)
	}
	if v.Shadow && v.dialect().rule(ev, []Verdict{v}).outcome == Block {
		v.note(WouldBlock)
	}
	return v
}

// combine makes the decision of settled verdicts, in firing order: each dialect
// rules by its own law, and over the dialects deny beats ask beats allow
// (DESIGN §2.5). Reasons and contexts are joined by a blank line, a reason that
// several dialects give once. Shadows are
// among the decision's hooks and have no part in it. Counts are not its business.
func combine(ev *Event, verdicts []Verdict) Decision {
	d := Decision{Outcome: Allow, Messages: []Message{}, Hooks: verdicts}
	name := ev.Name.hookEvent()
	reasons := map[Outcome][]string{}
	var contexts []string
	var counting []Verdict
	for i := range verdicts {
		verdicts[i].Injected = false
		if !verdicts[i].Shadow {
			d.Degraded = d.Degraded || verdicts[i].Has(FailedOpen)
			counting = append(counting, verdicts[i])
		}
	}
	for of, group := range byDialect(counting) {
		r := of.rule(ev, group)
		if r.outcome != Allow {
			reasons[r.outcome] = appendNew(reasons[r.outcome], r.reasons)
		}
		contexts = append(contexts, r.contexts...)
	}
	for i := range verdicts { // with what the laws have marked
		if !verdicts[i].Shadow {
			verdicts[i], counting = counting[0], counting[1:]
		}
	}
	for _, outcome := range []Outcome{Block, Ask} {
		if texts, held := reasons[outcome]; held {
			d.Outcome, d.Reason = outcome, joinTexts(texts)
			break
		}
	}
	if d.Outcome == Ask && d.Reason == "" {
		d.Reason = "A hook asks for a person's approval of this tool call."
	}
	if len(d.Reason) > MaxReasonBytes {
		d.Reason = Cut(d.Reason, MaxReasonBytes-len("…")) + "…"
	}
	if d.Outcome == Block && name == PostToolUse && ev.Protocol == Native {
		d.Reason += "\n\n" + Withheld
	}
	d.AdditionalContext = joinTexts(contexts)
	if d.Outcome == Block && name == Stop {
		d.Messages = append(d.Messages, Message{Role: "user", Content: d.Reason})
	}
	if d.AdditionalContext != "" && (name != Stop || d.Outcome == Block) {
		d.Messages = append(d.Messages, Message{Role: "user", Content: d.AdditionalContext})
	}
	return d
}

// appendNew adds the reasons of one more dialect but those that another gave.
func appendNew(reasons, more []string) []string {
	given := reasons
	for _, text := range more {
		if !slices.Contains(given, text) {
			reasons = append(reasons, text)
		}
	}
	return reasons
}

// byDialect cuts verdicts in firing order into those of one dialect each.
func byDialect(verdicts []Verdict) iter.Seq2[Dialect, []Verdict] {
	return func(yield func(Dialect, []Verdict) bool) {
		for len(verdicts) > 0 {
			of, n := verdicts[0].dialect(), 1
			for n < len(verdicts) && verdicts[n].dialect() == of {
				n++
			}
			if !yield(of, verdicts[:n:n]) {
				return
			}
			verdicts = verdicts[n:]
		}
	}
}

// joinTexts joins what is not empty by a blank line.
func joinTexts(texts []string) string {
	var kept []string
	for _, t := range texts {
		if t != "" {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, "\n\n")
}

// MaxReasonBytes is how long one hook's reason may be in an answer; the rest
// is cut, with the note ReasonCut.
const MaxReasonBytes = 9000

func cutReason(v *Verdict) {
	v.Reason = strings.TrimSpace(v.Reason)
	if len(v.Reason) > MaxReasonBytes {
		v.Reason = strings.TrimSpace(Cut(v.Reason, MaxReasonBytes-len("…"))) + "…"
		v.note(ReasonCut)
	}
}
