package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"stopgate/calibrate"
	"stopgate/gate"
)

// calibration is what stopgate calibrate --json prints.
type calibration struct {
	Set      string            `json:"set"`
	Hooks    []string          `json:"hooks"`
	Repeat   int               `json:"repeat"`
	Planned  int               `json:"planned_trials"`
	Partial  bool              `json:"partial"` // it was interrupted
	Lines    int               `json:"skipped_lines"`
	Skipped  []skippedLine     `json:"skipped,omitempty"` // the first of them
	Replayed bool              `json:"replayed"`
	Drifted  int               `json:"drifted_requests"`
	Report   calibrate.Report  `json:"report"`
	Trials   []calibrate.Trial `json:"trials"`
}

// print writes the numbers for a person.
func (c calibration) print(w io.Writer) error {
	var b strings.Builder
	r := c.Report
	c.printHead(&b)
	printConfusion(&b, r)
	printWrong(&b, c.Trials)
	printEstimates(&b, r)
	printRepeats(&b, r)
	printRetries(&b, r.Retries)
	printCost(&b, r)
	if c.Replayed {
		b.WriteString("Answers were replayed: tokens are those of the recording, time was not measured.\n")
	}
	if c.Drifted > 0 {
		fmt.Fprintf(&b, "%d replayed requests had other tool results than when they were recorded (time limits, or another version of stopgate).\n", c.Drifted)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c calibration) printHead(b *strings.Builder) {
	r := c.Report
	if c.Partial {
		fmt.Fprintf(b, "PARTIAL: interrupted after %d of %d trials.\n", r.Trials, c.Planned)
	}
	models := map[string]bool{}
	for _, t := range c.Trials {
		if t.Model != "" {
			models[fmt.Sprintf("%q", t.Model)] = true
		}
	}
	names := make([]string, len(c.Hooks))
	for i, n := range c.Hooks {
		names[i] = fmt.Sprintf("%q", n)
	}
	fmt.Fprintf(b, "Hooks: %s. Models: %s.\n", strings.Join(names, ", "), strings.Join(slices.Sorted(maps.Keys(models)), ", "))
	fmt.Fprintf(b, "Runs: %d, of them %d bad and %d good; each judged %d×, %d trials in all.\n", r.Runs, r.BadRuns, r.GoodRuns, c.Repeat, r.Trials)
	if c.Lines > 0 {
		fmt.Fprintf(b, "Lines of the set that are no run, left out: %d.\n", c.Lines)
		for _, s := range c.Skipped {
			fmt.Fprintf(b, "  line %d: %s\n", s.Line, s.Error)
		}
		if left := c.Lines - len(c.Skipped); left > 0 {
			fmt.Fprintf(b, "  and %d more\n", left)
		}
	}
}

// maxWrong is how many runs that were judged wrongly are named; --json has all.
const maxWrong = 20

// printWrong names the runs whose verdict was not what their label says. The
// trials of one run stand together.
func printWrong(b *strings.Builder, trials []calibrate.Trial) {
	named, left := 0, 0
	for len(trials) > 0 {
		n := 1
		for n < len(trials) && trials[n].Run == trials[0].Run {
			n++
		}
		of := trials[:n]
		trials = trials[n:]
		wrong, verdicts := 0, 0
		for _, t := range of {
			if t.Failure == nil {
				verdicts++
				if t.Rejected != t.Bad {
					wrong++
				}
			}
		}
		switch {
		case wrong == 0:
			continue
		case named == maxWrong:
			left++
			continue
		case named == 0:
			b.WriteString("Wrong:\n")
		}
		named++
		expected, got := "let pass", "rejected"
		if of[0].Bad {
			expected, got = got, expected
		}
		fmt.Fprintf(b, "  %.60q: expected %s, got %s in %d of %d verdicts\n", of[0].Run, expected, got, wrong, verdicts)
	}
	if left > 0 {
		fmt.Fprintf(b, "  and %d more runs; --json has them all\n", left)
	}
}

func printConfusion(b *strings.Builder, r calibrate.Report) {
	c := r.Confusion
	fmt.Fprintf(b, "\n%-16s%10s%10s\n", "", "rejected", "let pass")
	fmt.Fprintf(b, "%-16s%10d%10d\n%-16s%10d%10d\n", "bad answers", c.Caught, c.Missed, "good answers", c.Wrongly, c.Rightly)
	n := r.NoVerdict
	if n.Share == nil {
		return
	}
	fmt.Fprintf(b, "No verdict: %d of %d trials, %s; %d bad, %d good. They are in none of the numbers below: failMode decides such cases.\n",
		n.Bad+n.Good, r.Trials, percents(*n.Share), n.Bad, n.Good)
	for _, code := range slices.Sorted(maps.Keys(n.Codes)) {
		fmt.Fprintf(b, "  %s: %d\n", code, n.Codes[code])
	}
	for _, note := range []gate.Note{gate.Impossible, gate.Repaired} {
		if r.Notes[note] > 0 {
			fmt.Fprintf(b, "  noted %s: %d\n", note, r.Notes[note])
		}
	}
}

func printEstimates(b *strings.Builder, r calibrate.Report) {
	b.WriteString("\nWith intervals of 95 % (Wilson, over runs; J, F1 and AUC by Newcombe's methods):\n")
	line := func(name, text string) { fmt.Fprintf(b, "  %-40s%s\n", name, text) }
	share := func(name string, e *calibrate.Estimate) {
		if e != nil {
			line(name, percents(*e))
		}
	}
	number := func(name string, e *calibrate.Estimate, more string) {
		if e != nil {
			line(name, fmt.Sprintf("%.2f (%.2f to %.2f)%s", e.Value, e.Low, e.High, more))
		}
	}
	share("bad answers rejected (TPR, recall)", r.TPR)
	share("good answers let pass (TNR)", r.TNR)
	number("Youden's J (TPR + TNR − 1)", r.Youden, "")
	share("rejections that are right (precision)", r.Precision)
	number("F1", r.F1, "")
	number("AUC of the judge's probabilities", r.Curve.AUC, fmt.Sprintf(", of %d verdicts that have one", r.Curve.Scored))
	for _, p := range r.Curve.Points {
		how := ", no threshold does it"
		if p.Threshold > 0 {
			how = fmt.Sprintf(", threshold %.3f", p.Threshold)
		}
		line(fmt.Sprintf("TPR at ≤ %g %% false rejections", 100*p.Limit), percents(p.Recall)+how)
	}
	if r.TPR == nil || r.TNR == nil {
		b.WriteString("  The set, or what was judged of it, lacks bad or good answers: what needs both is not there.\n")
	}
}

func printRepeats(b *strings.Builder, r calibrate.Report) {
	if d := r.Disagreement; d != nil {
		fmt.Fprintf(b, "\nRepeats: of %d runs with several verdicts, %s have verdicts that differ. Two verdicts on one run differ in %.1f %% of the cases.\n",
			d.Runs, percents(d.Split), 100*d.Pairs)
	}
}

func printRetries(b *strings.Builder, all []calibrate.Retries) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\nShare of bad answers that pass when the agent asks again until they do:\n")
	for _, r := range all {
		low, firstLow := r.All, all[0].All
		if r.Own != nil {
			low, firstLow = *r.Own, *all[0].Own
		}
		fmt.Fprintf(b, "  after %2d retries  %s %%", r.Retries, span(low, r.All))
		if r.Retries > 0 {
			fmt.Fprintf(b, ", %s points more than at once", span(low-firstLow, r.All-all[0].All))
		}
		b.WriteString("\n")
	}
	b.WriteString("  Assumed: the answer stays as bad, every time is judged independently, no maxRejections ends the loop.\n")
	if all[0].Own != nil {
		b.WriteString("  The lower number takes each answer's own rate in its repeats, the higher one the same rate for all; but for chance the truth lies between.\n")
	} else {
		b.WriteString("  Taken: the same rate for all answers, which is the worst case; with --repeat the best case is told, too.\n")
	}
}

// span is two shares in hundredths, or one where they do not differ.
func span(low, high float64) string {
	from, to := fmt.Sprintf("%.1f", 100*low), fmt.Sprintf("%.1f", 100*high)
	if from == to {
		return to
	}
	return from + " to " + to
}

func printCost(b *strings.Builder, r calibrate.Report) {
	u, each := r.Usage, r.PerTrial
	fmt.Fprintf(b, "\nTokens: %d prompt (%d cached), %d output, in %d calls; for each trial %.0f prompt, %.0f output, %.1f calls.\n",
		u.PromptTokens, u.CachedTokens, u.OutputTokens, u.Calls, each.PromptTokens, each.OutputTokens, each.Calls)
	if c := r.Cost; c != nil {
		fmt.Fprintf(b, "Cost: %.4f, %.6f for each trial; %d trials without a known price.\n", c.Total, c.PerTrial, c.Unpriced)
	}
	if t := r.Time; t != nil {
		fmt.Fprintf(b, "Time for a verdict: p50 %s, p95 %s.\n", milliseconds(t.P50), milliseconds(t.P95))
	}
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Millisecond)
}

func percents(e calibrate.Estimate) string {
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*e.Value, 100*e.Low, 100*e.High)
}
