package gate

import (
	"fmt"
	"strings"
)

// Reasons given where a hook gave none.
const (
	defaultToolReason = "A hook blocked this tool call and gave no reason."
	// Withheld tells the agent what a PostToolUse block means where it replaces
	// the tool's result (spec/azure.md 45). The native protocol always says so;
	// of the hosts, those that do replace it.
	Withheld = "(The tool has already run: its result is withheld, its side effects stand.)"
)

// settle gives one verdict its meaning on the event, before combination:
// a failure its failMode (spec/azure.md 42), a Stop rejection without a reason
// an approval (34), a tool block without one a stated default (45).
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
		if name == Stop {
			v.Outcome = Allow
			v.note(RejectedWithoutReason)
		} else {
			v.Reason = defaultToolReason
		}
	}
	if name == Start && v.objects() { // Start cannot block (DESIGN §9)
		if v.Outcome == Block {
			v.Outcome = Allow
		}
		v.note(WouldBlock)
	}
	return v
}

// combine makes the decision of settled verdicts, in firing order: deny beats
// ask beats allow, reasons are joined by a blank line (spec/azure.md 37, 39,
// 48), the last additionalContext is the one injected (46). Counts are not its
// business.
func combine(ev *Event, verdicts []Verdict) Decision {
	d := Decision{Outcome: Allow, Messages: []Message{}, Hooks: verdicts}
	name := ev.Name.hookEvent()
	var blocks, asks []string
	last := -1
	for i := range verdicts {
		v := &verdicts[i]
		v.Injected = false
		switch {
		case v.objects() && name != Start:
			blocks = append(blocks, v.Reason)
		case v.Outcome == Ask:
			asks = append(asks, v.Reason)
		}
		if strings.TrimSpace(v.AdditionalContext) != "" {
			last = i
		}
		if v.Has(FailedOpen) {
			d.Degraded = true
		}
	}
	switch {
	case len(blocks) > 0:
		d.Outcome, d.Reason = Block, joinTexts(blocks)
	case len(asks) > 0:
		d.Outcome, d.Reason = Ask, joinTexts(asks)
		if d.Reason == "" {
			d.Reason = "A hook asks for a person's approval of this tool call."
		}
	}
	if len(d.Reason) > MaxReasonBytes {
		d.Reason = Cut(d.Reason, MaxReasonBytes-len("…")) + "…"
	}
	if d.Outcome == Block && name == PostToolUse && ev.Protocol == Native {
		d.Reason += "\n\n" + Withheld
	}
	if last >= 0 {
		verdicts[last].Injected = true
		d.AdditionalContext = verdicts[last].AdditionalContext
	}
	if d.Outcome == Block && name == Stop {
		d.Messages = append(d.Messages, Message{Role: "user", Content: d.Reason})
	}
	if d.AdditionalContext != "" && (name != Stop || d.Outcome == Block) {
		d.Messages = append(d.Messages, Message{Role: "user", Content: d.AdditionalContext})
	}
	return d
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
