package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"stopgate/gate"
)

// printHooks is a table of what each hook said then, and says now, and what that
// took.
func (r *replayReport) printHooks(b *strings.Builder) {
	if len(r.Hooks) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOOK\tWAS\tNOW\tCHANGED\tCALLS\tTOKENS\tCOST\tTIME")
	var was, now sideTally // together
	for _, name := range slices.Sorted(maps.Keys(r.Hooks)) {
		t := r.Hooks[name]
		was.plus(t.Was)
		now.plus(t.Now)
		changed := strings.Trim(counted(t.Changed), " ()")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", foreign(name), t.Was.outcomes(), t.Now.outcomes(), cmp.Or(changed, "-"),
			both(t.Was.calls(), t.Now.calls()), both(t.Was.tokens(), t.Now.tokens()), both(t.Was.cost(), t.Now.cost()), both(t.Was.time(), t.Now.time()))
	}
	_ = w.Flush() // into memory
	r.printSpent(b, was, now)
}

// printSpent says what was spent in all, and what the numbers are.
func (r *replayReport) printSpent(b *strings.Builder, was, now sideTally) {
	if was.Usage.Cost+now.Usage.Cost > 0 {
		fmt.Fprintf(b, "Cost: %s.\n", both(was.cost(), now.cost()))
	}
	if n := was.Unpriced + now.Unpriced; n > 0 && was.Usage.Cost+now.Usage.Cost > 0 {
		fmt.Fprintf(b, "?: the cost of %s is not known, since no price of the model is (models.prices in the server file).\n", plural(n, "verdict"))
	}
	switch {
	case was.Usage.Calls+now.Usage.Calls == 0:
	case r.Recorded:
		b.WriteString("Answers of models were replayed: tokens are those of the recording, cost is by the prices of now, time was not measured.\n")
	case r.Compared == "record":
		b.WriteString("What was is recorded: tokens, cost and time are those of then.\n")
	}
}

func (t *sideTally) plus(o sideTally) {
	t.Verdicts, t.Unpriced = t.Verdicts+o.Verdicts, t.Unpriced+o.Unpriced
	t.Usage, t.DurationMS = t.Usage.Plus(o.Usage), t.DurationMS+o.DurationMS
}

// The cells of a side: "-" where there was no verdict, or nothing was measured.

func (t sideTally) calls() string { return t.cell(fmt.Sprint(t.Usage.Calls)) }

func (t sideTally) tokens() string {
	return t.cell(fmt.Sprint(t.Usage.PromptTokens + t.Usage.OutputTokens))
}

// cost is what is known of it; "?" where it is not of all.
func (t sideTally) cost() string {
	switch {
	case t.Usage.Calls == 0:
		return "-"
	case t.Usage.Cost == 0:
		return "?"
	}
	digits := 4
	if t.Usage.Cost < 0.1 { // of one verdict
		digits = 6
	}
	text := fmt.Sprintf("%.*f", digits, t.Usage.Cost)
	if t.Unpriced > 0 {
		text += "+?"
	}
	return text
}

func (t sideTally) time() string {
	if t.Usage.Calls > 0 && t.DurationMS == 0 { // from a recording
		return "-"
	}
	return t.cell(milliseconds(float64(t.DurationMS)).String())
}

func (t sideTally) cell(text string) string {
	if t.Verdicts == 0 {
		return "-"
	}
	return text
}

// both is what was and what is, or one where they do not differ.
func both(was, now string) string {
	if was == now {
		return now
	}
	return was + "→" + now
}

func (t sideTally) outcomes() string {
	var parts []string
	for _, o := range []gate.Outcome{gate.Allow, gate.Block, gate.Ask, gate.NoVerdict, gate.Skipped} {
		if n := t.Outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}
