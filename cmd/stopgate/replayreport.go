package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
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
		fmt.Fprint(b, w.Now.Decision)
	default:
		fmt.Fprint(b, arrow(w.Was.Decision, w.Now.Decision))
	}
	if w.Redacted {
		b.WriteString(" (redacted)")
	}
	if w.Blind {
		b.WriteString(" (without its workspace)")
	}
	b.WriteByte('\n')
	told := false
	for _, h := range w.Hooks {
		if h.Changed || h.moved() {
			h.print(b)
			told = true
		}
	}
	if w.Changed && !told { // the gate itself refused, or does
		printReasons(b, "    ", w.Was.Reason, w.Now.Reason)
	}
}

// moved: it has come to shadow, or from it, so that a verdict that is the same
// counts otherwise.
func (h hookChange) moved() bool { return h.Was != nil && h.Now != nil && h.Was.Shadow != h.Now.Shadow }

func (h hookChange) print(b *strings.Builder) {
	fmt.Fprintf(b, "    %s: %s→%s\n", h.title(), h.Was.told(), h.Now.told())
	printReasons(b, "        ", h.Was.reason(), h.Now.reason())
	fmt.Fprintf(b, "        %s\n", h.spent())
}

func printReasons(b *strings.Builder, indent, was, now string) {
	for _, side := range [][2]string{{"was", was}, {"now", now}} {
		if side[1] != "" {
			fmt.Fprintf(b, "%s%s: %s\n", indent, side[0], indented(side[1]))
		}
	}
}

func (h *hookVerdict) reason() string {
	if h == nil {
		return ""
	}
	return h.Reason
}

// title is the hook's name, with the other side's where that is another.
func (h hookChange) title() string {
	if h.WasName == "" {
		return foreign(h.Name)
	}
	return fmt.Sprintf("%s (was %s)", foreign(h.Name), foreign(h.WasName))
}

// spent is what the two verdicts took.
func (h hookChange) spent() string {
	var was, now sideTally
	was.add(h.Was)
	now.add(h.Now)
	text := "time " + both(was.time(), now.time())
	if was.Usage.Calls+now.Usage.Calls > 0 {
		text += fmt.Sprintf(", tokens %s, cost %s", both(was.tokens(), now.tokens()), both(was.cost(), now.cost()))
	}
	return text
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

// maxBadLines is how many lines of an export that are no records are named; --json
// has all.
const maxBadLines = 20

func (r *replayReport) printEnd(b *strings.Builder) {
	r.printHooks(b)
	for _, name := range slices.Sorted(maps.Keys(r.Renamed)) {
		for _, was := range r.Renamed[name] {
			fmt.Fprintf(b, "Renamed: %q is compared with %q, which the draft does not have.\n", name, was)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(b, "The draft has no hook %q, which took part in %s: give its file too, or it is its absence that is compared.\n", name, plural(r.Missing[name], "evaluation"))
	}
	r.printInactive(b)
	r.printObstacles(b)
	if r.Repeated > 0 {
		fmt.Fprintf(b, "Left out: %s of the export that another has, word for word (%s).\n", plural(r.Repeated, "line"), r.again.first)
	}
	if r.More {
		fmt.Fprintf(b, "There are more: this is of the %s %d (--limit).\n", r.order, r.Found)
	}
	if r.Partial {
		b.WriteString("PARTIAL: interrupted.\n")
	}
	fmt.Fprintln(b, r.line())
}

func (r *replayReport) printInactive(b *strings.Builder) {
	if len(r.Inactive) == 0 {
		return
	}
	were := "were"
	if len(r.Inactive) == 1 {
		were = "was"
	}
	fmt.Fprintf(b, "%s %s not active in these sessions: --all-active asks everywhere", plural(len(r.Inactive), "on-demand hook"), were)
	mark := " ("
	for _, name := range slices.Sorted(maps.Keys(r.Inactive)) {
		fmt.Fprintf(b, "%s%q in %s", mark, name, plural(r.Inactive[name], "evaluation"))
		mark = ", "
	}
	b.WriteString(").\n")
}

// printObstacles says of each kind what the first of it was, and of lines of an
// export which they are.
func (r *replayReport) printObstacles(b *strings.Builder) {
	told := map[string]bool{}
	var lines []*obstacle
	for _, w := range r.Evaluations {
		switch o := w.Obstacle; {
		case o == nil:
		case o.Code == badLine:
			lines = append(lines, o)
		case !told[o.Code]:
			told[o.Code] = true
			fmt.Fprintf(b, "Not replayed for %s, the first %s: %s\n", o.Code, foreign(w.EvaluationID), indented(o.Message))
		}
	}
	slices.SortFunc(lines, func(a, b *obstacle) int { return cmp.Compare(a.Line, b.Line) })
	for _, o := range lines[:min(len(lines), maxBadLines)] {
		fmt.Fprintf(b, "Not replayed for %s, %s\n", badLine, foreign(o.Message))
	}
	if left := len(lines) - maxBadLines; left > 0 {
		fmt.Fprintf(b, "and %s more\n", plural(left, "line"))
	}
}

// line is the whole in one.
func (r *replayReport) line() string {
	const alone = "in hooks alone" // the decision is the same
	changed := maps.Clone(r.Decisions)
	changed[alone] = r.Changed
	for _, n := range r.Decisions {
		changed[alone] -= n
	}
	text := fmt.Sprintf("%s replayed, %d changed%s", plural(r.Replayed, "evaluation"), r.Changed, counted(changed))
	if n := r.failed(); n > 0 {
		text += fmt.Sprintf("; %d could not be replayed%s", n, counted(r.Obstacles))
	}
	if r.Redacted > 0 {
		text += fmt.Sprintf("; in %d of them hooks saw marks in the place of secrets", r.Redacted)
	}
	if r.Blind > 0 {
		text += fmt.Sprintf("; in %d of them scripts may have looked at a workspace, which they had not here", r.Blind)
	}
	if r.OtherAgents > 0 {
		text += fmt.Sprintf("; %d are of agents that the draft says nothing of", r.OtherAgents)
	}
	return text
}

func counted(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of[name], name))
		}
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
