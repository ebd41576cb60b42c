package config

import (
	"slices"
	"strings"

	"stopgate/gate"
)

// effect is what an answer at exit 0 comes to by a system's own law. fault is why the
// system reads nothing of it; it goes on then.
type effect struct {
	outcome         gate.Outcome
	reason, context string
	halts           bool
	fault           error
}

// effectOf has an answer read by the reader that a dialect's hooks have.
func effectOf(d gate.Dialect, event gate.EventName, object []byte) effect {
	var v gate.Verdict
	var err error
	switch d {
	case gate.Antigravity:
		v, err = gate.ReadAntigravityAnswer(event, object)
	case gate.AXCode:
		var a gate.AXCodeAnswer
		if a, err = gate.ReadAXCodeAnswer(object); gate.AXCodeBlocks(event) {
			v = a.Verdict(event)
		} else { // what it says is feedback, a refusal's reason too
			v = gate.Verdict{Outcome: gate.Allow, AdditionalContext: a.Feedback()}
		}
	case gate.ClaudeCode:
		v, err = gate.ReadClaudeCodeAnswer(event, object)
	default:
		v, err = gate.ReadAnswer(event, object)
	}
	e := effect{v.Outcome, strings.TrimSpace(v.Reason), strings.TrimSpace(v.AdditionalContext), v.Has(gate.HaltRequested), err}
	switch {
	case err != nil:
		return effect{outcome: gate.Allow, fault: err}
	case e.outcome != gate.Block && e.outcome != gate.Ask:
		e.reason = "" // nobody reads it
	}
	return e
}

// sameFeedback: what refuses after a tool in another system is told the agent in AX
// Code, which is said of all hooks.
func sameFeedback(from, to effect) bool {
	return from.outcome == gate.Block && from.reason != "" && strings.HasPrefix(to.context, from.reason)
}

// effectNames are what an effect is called.
var effectNames = map[gate.Outcome]string{gate.Allow: "lets the agent go on", gate.Block: "refuses", gate.Ask: "asks a person", gate.NoVerdict: "changes the call"}

// sayMeanings says of each answer that is seen whole what it comes to there, where that
// is something else: by the other system's own reader, not by the words in it. What is
// only known as the hook runs is tried as a text, as none, and, where it need not be a
// text, as null.
func (c *converter) sayMeanings(d *declared, event gate.EventName, text hookText) {
	from, to, name := systemNames[c.From], systemNames[c.To], EventName(c.To, event)
	for _, o := range text.says {
		for i, object := range tried(o) {
			was, is := effectOf(c.From, d.Event, object), effectOf(c.To, event, object)
			if c.From == gate.Azure && d.FailMode == gate.FailBlock && was.fault != nil {
				was.outcome = gate.Block
			}
			feedback := c.To == gate.AXCode && !gate.AXCodeBlocks(event) && sameFeedback(was, is) || c.From == gate.AXCode && !gate.AXCodeBlocks(d.Event) && sameFeedback(is, was)
			shown := cut(visibleWord(string(object)))
			switch {
			case was.outcome != is.outcome && !feedback:
				why := ""
				switch {
				case was.outcome == gate.Block && was.fault != nil:
					why = ", where no failMode block is about it: " + was.fault.Error()
				case is.fault != nil:
					why = ": " + is.fault.Error()
				case was.fault != nil:
					why = ", which reads more of it than " + from + ": " + was.fault.Error()
				}
				const differs = "answer on %s: %s %s in %s, and %s in %s%s"
				if i == 0 {
					c.lose(d, "", differs, name, shown, effectNames[was.outcome], from, effectNames[is.outcome], to, why)
				} else {
					c.differ(d, "", differs+"; check that the hook never says so", name, shown, effectNames[was.outcome], from, effectNames[is.outcome], to, why)
				}
			case i == 0 && was.context != is.context && !feedback:
				c.differ(d, "", "answer on %s: %s tells the agent %q in %s, and %q in %s", name, shown, cut(was.context), from, cut(is.context), to)
			case i == 0 && was.reason != is.reason && !feedback:
				c.differ(d, "", "answer on %s: %s gives the reason %q in %s, and %q in %s", name, shown, cut(was.reason), from, cut(is.reason), to)
			default:
				continue
			}
			break
		}
	}
}

// tried are the forms that an answer may have, the likely one first.
func tried(o *node) [][]byte {
	forms := [][]byte{o.filledIn("…", false)}
	if !o.allKnown() {
		forms = append(forms, o.filledIn("", false), o.filledIn("", true))
	}
	return forms
}

// allKnown reports whether every text in an answer is known.
func (n *node) allKnown() bool {
	return known(n.text) && !slices.ContainsFunc(n.items, func(i *node) bool { return !i.allKnown() }) &&
		!slices.ContainsFunc(n.fields, func(f field) bool { return !f.value.allKnown() })
}

// filledIn is an answer as JSON with a text for what is not known; null: what is wholly
// unknown may be no text.
func (n *node) filledIn(text string, null bool) []byte {
	return n.filled(text, null).ordered()
}

func (n *node) filled(text string, null bool) *node {
	c := *n
	switch {
	case null && n.kind == textKind && n.text == unplain:
		return &node{kind: nullKind, text: "null"}
	case n.kind == textKind:
		c.text = strings.ReplaceAll(strings.ReplaceAll(n.text, unplain+unplain, unplain), unplain, text)
	}
	c.items, c.fields = nil, nil
	for _, i := range n.items {
		c.items = append(c.items, i.filled(text, null))
	}
	for _, f := range n.fields {
		f.value = f.value.filled(text, null)
		c.fields = append(c.fields, f)
	}
	return &c
}
