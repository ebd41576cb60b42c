package calibrate

import (
	"math"
	"slices"

	"stopgate/gate"
)

// Usage is a mean of [gate.Usage].
type Usage struct {
	Calls        float64 `json:"calls"`
	PromptTokens float64 `json:"prompt_tokens"`
	CachedTokens float64 `json:"cached_tokens"`
	OutputTokens float64 `json:"output_tokens"`
}

// Cost is of all trials, those without a verdict too.
type Cost struct {
	Total    float64 `json:"total"`
	PerTrial float64 `json:"per_trial"` // of those whose price is known
	Unpriced int     `json:"unpriced"`  // trials whose model has no price
}

// Time is how long trials took that had a verdict, in milliseconds.
type Time struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
}

func usageOf(trials []Trial) (all gate.Usage, mean Usage) {
	for i := range trials {
		all = all.Plus(trials[i].Usage)
	}
	n := float64(max(len(trials), 1))
	return all, Usage{float64(all.Calls) / n, float64(all.PromptTokens) / n, float64(all.CachedTokens) / n, float64(all.OutputTokens) / n}
}

// costOf is nil where no price is known. What a trial cost, whatever models took
// part in it, is in its usage.
func costOf(trials []Trial) *Cost {
	var c Cost
	priced := 0
	for i := range trials {
		switch u := trials[i].Usage; {
		case u.Cost > 0:
			priced++
			c.Total += u.Cost
		case u.Calls > 0:
			c.Unpriced++
		}
	}
	if priced == 0 {
		return nil
	}
	c.PerTrial = c.Total / float64(priced)
	return &c
}

// timeOf is nil where nothing was measured.
func timeOf(trials []Trial) *Time {
	var took []float64
	for i := range trials {
		if t := &trials[i]; t.judged() && t.MS > 0 {
			took = append(took, t.MS)
		}
	}
	if len(took) == 0 {
		return nil
	}
	slices.Sort(took)
	return &Time{percentile(took, 0.50), percentile(took, 0.95)}
}

// percentile is the least value that a share of them does not exceed.
func percentile(sorted []float64, share float64) float64 {
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
