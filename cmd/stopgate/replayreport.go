package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"stopgate/gate"
)

// print writes the report for a person: what changed, then by hook, then in a
// line.
func (r *replayReport) print(w io.Writer) error {
	var b strings.Builder
	for _, row := range r.Evaluations {
		if row.Changed {
			row.print(&b)
		}
	}
	r.printEnd(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// print writes one evaluation.
func (w replayRow) print(b *strings.Builder) {
	about := string(w.Event)
	if w.Tool != "" {
		about += " " + foreign(w.Tool)
	}
	fmt.Fprintf(b, "%s  %s  %s  %s  ", w.Time.UTC().Format(time.RFC3339), foreign(w.EvaluationID), foreign(w.Agent), about)
	switch {
	case w.Obstacle != nil:
		fmt.Fprintf(b, "not replayed: %s\n", indented(w.Obstacle.Error()))
		return
	case w.Was.Decision == w.Now.Decision:
		fmt.Fprintf(b, "%s\n", w.Now.Decision)
	default:
		fmt.Fprintf(b, "%s\n", arrow(w.Was.Decision, w.Now.Decision))
	}
	for _, h := range w.Hooks {
		if !h.Changed {
			continue
		}
		fmt.Fprintf(b, "    %s: %s→%s\n", foreign(h.Name), h.Was.told(), h.Now.told())
		for _, side := range []struct {
			name string
			*hookVerdict
		}{{"was", h.Was}, {"now", h.Now}} {
			if v := side.hookVerdict; v != nil && v.Reason != "" {
				fmt.Fprintf(b, "        %s: %s\n", side.name, indented(v.Reason))
			}
		}
	}
}

// foreign is a name on a line of its own making: no line of it is another.
func foreign(text string) string { return strings.Map(onOneLine, cmp.Or(text, "-")) }

func onOneLine(r rune) rune {
	if r == '\n' || r == '\t' {
		return ' '
	}
	return r
}

func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n        ") }

// told is a verdict in a word or two.
func (h *hookVerdict) told() string {
	if h == nil {
		return "none"
	}
	text := string(h.Outcome)
	if h.Failure != nil {
		text += " (" + string(h.Failure.Code) + ")"
	}
	if h.Shadow {
		text += " (shadow)"
	}
	return text
}

func (r *replayReport) printEnd(b *strings.Builder) {
	r.printHooks(b)
	for _, name := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(b, "The draft has no hook %q, which took part in %s: give its file too, or it is its absence that is compared.\n", name, plural(r.Missing[name], "evaluation"))
	}
	told := map[string]bool{}
	for _, w := range r.Evaluations {
		if o := w.Obstacle; o != nil && !told[o.Code] {
			told[o.Code] = true
			fmt.Fprintf(b, "Not replayed for %s, the first %s: %s\n", o.Code, foreign(w.EvaluationID), o.Message)
		}
	}
	if r.Partial {
		b.WriteString("PARTIAL: interrupted.\n")
	}
	fmt.Fprintln(b, r.line())
}

// line is the whole in one.
func (r *replayReport) line() string {
	text := fmt.Sprintf("%s replayed, %d changed%s", plural(r.Replayed, "evaluation"), r.Changed, counted(r.Decisions))
	failed := 0
	for _, n := range r.Obstacles {
		failed += n
	}
	if failed > 0 {
		text += fmt.Sprintf("; %d could not be replayed%s", failed, counted(r.Obstacles))
	}
	if r.OtherAgents > 0 {
		text += fmt.Sprintf("; %d are of agents that the draft says nothing of", r.OtherAgents)
	}
	return text
}

func counted(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%d %s", of[name], name))
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// printHooks is a table of what each hook said then, and says now.
func (r *replayReport) printHooks(b *strings.Builder) {
	if len(r.Hooks) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOOK\tWAS\tNOW\tCHANGED\tCALLS\tTOKENS\tTIME")
	for _, name := range slices.Sorted(maps.Keys(r.Hooks)) {
		t := r.Hooks[name]
		changed := strings.Trim(counted(t.Changed), " ()")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", foreign(name), t.Was.outcomes(), t.Now.outcomes(), cmp.Or(changed, "-"),
			both(t.Was.Usage.Calls, t.Now.Usage.Calls), both(tokens(t.Was.Usage), tokens(t.Now.Usage)),
			both(milliseconds(float64(t.Was.DurationMS)), milliseconds(float64(t.Now.DurationMS))))
	}
	_ = w.Flush() // into memory
	var was, now gate.Usage
	for _, t := range r.Hooks {
		was, now = was.Plus(t.Was.Usage), now.Plus(t.Now.Usage)
	}
	if was.Cost > 0 || now.Cost > 0 {
		fmt.Fprintf(b, "Cost: %.4f→%.4f.\n", was.Cost, now.Cost)
	}
}

func tokens(u gate.Usage) int { return u.PromptTokens + u.OutputTokens }

// both is what was and what is, or one where they do not differ.
func both[T comparable](was, now T) string {
	if was == now {
		return fmt.Sprint(now)
	}
	return fmt.Sprintf("%v→%v", was, now)
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
