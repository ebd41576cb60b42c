package calibrate

import (
	"cmp"
	"math"
	"slices"
)

// Curve is what the judge's own probabilities are worth, over all trials with a
// verdict that has one.
type Curve struct {
	Scored int `json:"scored"` // trials
	// AUC is the chance that a bad answer was given a lower probability than a
	// good one; nil without both kinds.
	AUC *Estimate `json:"auc"`
	// Points are what thresholds would do that reject hardly any good answer.
	Points []Point `json:"points"`
}

// Point is the best that a threshold can do when it may reject a share of the
// good answers. It was chosen on the trials that it is measured on, so it
// flatters.
type Point struct {
	Limit   float64  `json:"limit"`         // share of good answers that may be rejected
	Wrongly int      `json:"good_rejected"` // of them, with this threshold
	Recall  Estimate `json:"recall"`        // share of bad answers rejected
	// Threshold for the hook: what is less probable is rejected. 0: none does it.
	Threshold float64 `json:"threshold,omitempty"`
}

// limits of wrongly rejected good answers.
var limits = []float64{0.01, 0.05}

func curveOf(trials []Trial) Curve {
	scored := make([]*Trial, 0, len(trials))
	bad, good := map[string]float64{}, map[string]float64{}
	for i := range trials {
		t := &trials[i]
		switch {
		case !t.judged() || t.Passed == nil:
			continue
		case t.Bad:
			bad[t.Run]++
		default:
			good[t.Run]++
		}
		scored = append(scored, t)
	}
	c := Curve{Scored: len(scored)}
	badRuns, badTrials := effective(bad)
	goodRuns, goodTrials := effective(good)
	if badRuns == 0 || goodRuns == 0 {
		return c
	}
	slices.SortStableFunc(scored, func(a, b *Trial) int { return cmp.Compare(*a.Passed, *b.Passed) })
	area := areaUnder(scored, badTrials, goodTrials)
	low, high := aucInterval(area, badRuns, goodRuns)
	c.AUC = &Estimate{area, low, high}
	for _, limit := range limits {
		p := pointAt(scored, limit, goodTrials)
		p.Recall.Value /= badTrials
		p.Recall.Low, p.Recall.High = wilson(p.Recall.Value, badRuns)
		c.Points = append(c.Points, p)
	}
	return c
}

// areaUnder is the share of pairs of a bad and a good trial in which the bad one
// has the lower probability, ties by half (Mann and Whitney).
func areaUnder(sorted []*Trial, bad, good float64) float64 {
	pairs, below := 0.0, 0.0 // bad trials with a lower probability
	for same := range equals(sorted) {
		b, g := counts(same)
		pairs += g * (below + b/2)
		below += b
	}
	return pairs / (bad * good)
}

// pointAt is the highest threshold that rejects no more good trials than the
// limit allows; its recall is a number yet, not a share.
func pointAt(sorted []*Trial, limit, good float64) Point {
	p := Point{Limit: limit}
	bad, wrongly, seen := 0.0, 0.0, 0
	for same := range equals(sorted) {
		b, g := counts(same)
		bad, wrongly, seen = bad+b, wrongly+g, seen+len(same)
		above := 1.0
		if seen < len(sorted) {
			above = *sorted[seen].Passed
		}
		threshold := (*same[0].Passed + above) / 2
		if wrongly > math.Floor(limit*good+1e-9) || threshold <= *same[0].Passed { // nothing is less probable than 1
			break
		}
		p.Recall.Value, p.Wrongly, p.Threshold = bad, int(wrongly), threshold
	}
	return p
}

// equals are the trials of each probability, the lowest first.
func equals(sorted []*Trial) func(yield func([]*Trial) bool) {
	return func(yield func([]*Trial) bool) {
		for from := 0; from < len(sorted); {
			to := from + 1
			for to < len(sorted) && *sorted[to].Passed == *sorted[from].Passed {
				to++
			}
			if !yield(sorted[from:to]) {
				return
			}
			from = to
		}
	}
}

func counts(trials []*Trial) (bad, good float64) {
	for _, t := range trials {
		if t.Bad {
			bad++
		} else {
			good++
		}
	}
	return bad, good
}
