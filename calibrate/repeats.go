package calibrate

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Disagreement is how often the gate contradicts itself about the same run.
type Disagreement struct {
	Runs int `json:"runs"` // with two verdicts or more
	// Split is the share of them whose verdicts are not all the same.
	Split Estimate `json:"split"`
	// Pairs is the chance that two verdicts on one run differ.
	Pairs float64 `json:"pairs"`
}

// tally is the verdicts on one run.
type tally struct {
	id              string
	bad             bool
	passed, verdict float64
}

// tallies are by the run's id, so that sums come out the same each time.
func tallies(trials []Trial) []*tally {
	runs := map[string]*tally{}
	for i := range trials {
		t := &trials[i]
		if !t.judged() {
			continue
		}
		r := runs[t.Run]
		if r == nil {
			r = &tally{id: t.Run, bad: t.Bad}
			runs[t.Run] = r
		}
		r.verdict++
		if !t.Rejected {
			r.passed++
		}
	}
	return slices.SortedFunc(maps.Values(runs), func(a, b *tally) int { return cmp.Compare(a.id, b.id) })
}

// disagreementOf is nil where no run has two verdicts.
func disagreementOf(trials []Trial) *Disagreement {
	var d Disagreement
	split := 0.0
	for _, r := range tallies(trials) {
		if r.verdict < 2 {
			continue
		}
		d.Runs++
		rejected := r.verdict - r.passed
		d.Pairs += r.passed * rejected / (r.verdict * (r.verdict - 1) / 2)
		if r.passed > 0 && rejected > 0 {
			split++
		}
	}
	if d.Runs == 0 {
		return nil
	}
	n := float64(d.Runs)
	d.Pairs /= n
	low, high := wilson(split/n, n)
	d.Split = Estimate{split / n, low, high}
	return &d
}

// Retries is the share of bad answers that are through when an agent, rejected,
// asks again with the same bad answer until it passes, at most Retries times after
// the first. Each time is taken to be judged independently of those before.
//
// The truth lies between two numbers. The function 1−(1−q)ⁿ of a pass rate q
// bends down, so a set in which every bad answer passes at the same rate is the
// worst there is for a mean rate (All): where some never pass, fewer get through.
// And a rate measured in a few repeats is too often 0 or 1, so the mean over each
// answer's own measured rate (Own) is too low.
type Retries struct {
	Retries int     `json:"retries"`
	All     float64 `json:"if_all_pass_at_the_mean_rate"`
	// Own is nil where no bad run has two verdicts.
	Own *float64 `json:"if_each_passes_at_its_measured_rate"`
}

// retries that are told of; 0 is the gate asked once.
var retries = []int{0, 1, 3, 5, 25}

// retriesOf is nil where no bad run has a verdict.
func retriesOf(trials []Trial) []Retries {
	var rates []float64
	repeated := false
	mean := 0.0
	for _, r := range tallies(trials) {
		if !r.bad {
			continue
		}
		rates = append(rates, r.passed/r.verdict)
		mean += r.passed / r.verdict
		repeated = repeated || r.verdict > 1
	}
	if len(rates) == 0 {
		return nil
	}
	mean /= float64(len(rates))
	through := func(rate float64, retries int) float64 { return 1 - math.Pow(1-rate, float64(retries+1)) }
	var all []Retries
	for _, n := range retries {
		r := Retries{Retries: n, All: through(mean, n)}
		if repeated {
			sum := 0.0
			for _, rate := range rates {
				sum += through(rate, n)
			}
			sum /= float64(len(rates))
			r.Own = &sum
		}
		all = append(all, r)
	}
	return all
}
