package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stopgate/gate"
)

// trials reads a small set: a word for each run, a letter for each repeat. Runs
// are bad where the word begins with "b". r: rejected, p: passed, e: no verdict.
func trials(words ...string) []Trial {
	var all []Trial
	for i, word := range words {
		for k, c := range word[1:] {
			t := Trial{Run: fmt.Sprint(word[:1], i), Bad: word[0] == 'b', Repeat: k + 1, Rejected: c == 'r'}
			if c == 'e' {
				t.Failure = &gate.Failure{Code: gate.Timeout, Message: "late"}
			}
			all = append(all, t)
		}
	}
	return all
}

var closely = cmpopts.EquateApprox(0, 1e-4)

// fault G62: what a gate is worth is measured on answers known to be bad.
func TestMeasureByHand(t *testing.T) {
	// Of four bad ones three are caught, of five good ones one is refused.
	set := trials("br", "br", "br", "bp", "gp", "gp", "gp", "gp", "gr", "be", "ge", "ge")
	r := Measure(set)
	if want := (Confusion{Caught: 3, Missed: 1, Wrongly: 1, Rightly: 4}); r.Confusion != want {
		t.Errorf("confusion %+v", r.Confusion)
	}
	values := map[string]*Estimate{"tpr": r.TPR, "tnr": r.TNR, "j": r.Youden, "precision": r.Precision, "f1": r.F1, "none": r.NoVerdict.Share}
	want := map[string]float64{"tpr": 3. / 4, "tnr": 4. / 5, "j": 0.55, "precision": 3. / 4, "f1": 0.75, "none": 3. / 12}
	for name, e := range values {
		if e == nil || !near(e.Value, want[name], 1e-9) || !(e.Low < e.Value && e.Value < e.High) {
			t.Errorf("%s is %+v, want %v", name, e, want[name])
		}
	}
	// F1's ends, from Wilson's for 3 of 5 (0.2307 to 0.8824).
	if diff := cmp.Diff(&Estimate{0.75, 2 * 0.2307 / 1.2307, 2 * 0.8824 / 1.8824}, r.F1, closely); diff != "" {
		t.Error(diff)
	}
	if r.Runs != 12 || r.BadRuns != 5 || r.GoodRuns != 7 || r.Trials != 12 || r.NoVerdict.Bad != 1 || r.NoVerdict.Good != 2 || r.NoVerdict.Codes[gate.Timeout] != 3 {
		t.Errorf("%+v", r)
	}
	if r.Disagreement != nil || r.Cost != nil || r.Time != nil || r.Curve.AUC != nil {
		t.Errorf("measured what was not there: %+v", r)
	}
}

func TestMeasureOfTooLittle(t *testing.T) {
	if r := Measure(nil); r.TPR != nil || r.TNR != nil || r.Youden != nil || r.Precision != nil || r.F1 != nil || r.NoVerdict.Share != nil || r.Retries != nil {
		t.Errorf("of nothing: %+v", r)
	}
	r := Measure(trials("gp", "gp"))
	if r.TNR == nil || r.TPR != nil || r.Youden != nil || r.Precision != nil || r.F1 != nil || r.Retries != nil {
		t.Errorf("of good ones only: %+v", r)
	}
	if r := Measure(trials("be", "ge")); r.TPR != nil || r.TNR != nil || r.NoVerdict.Share.Value != 1 {
		t.Errorf("of errors only: %+v", r)
	}
}

// Repeats move the value and leave the interval as wide as one trial a run does.
func TestRepeatsDoNotNarrowIntervals(t *testing.T) {
	once := Measure(trials("br", "br", "bp", "bp"))
	thrice := Measure(trials("brrr", "brrr", "bppp", "bppp"))
	if diff := cmp.Diff(once.TPR, thrice.TPR, closely); diff != "" {
		t.Error(diff)
	}
	// Weights 3 and 1 are worth 16/10 runs.
	low, high := wilson(3./4, 1.6)
	if diff := cmp.Diff(&Estimate{3. / 4, low, high}, Measure(trials("brrr", "bpee")).TPR, closely); diff != "" {
		t.Error(diff)
	}
}

// fault G64: a judge that contradicts itself is found out.
func TestDisagreement(t *testing.T) {
	// Unanimous, 2:1 (2 of 3 pairs differ), 1:1 with an error, and one alone.
	d := Measure(trials("brrr", "grrp", "gpre", "bpee")).Disagreement
	if d.Runs != 3 || !near(d.Split.Value, 2./3, 1e-9) || !near(d.Pairs, (0+2./3+1)/3, 1e-9) {
		t.Errorf("%+v", d)
	}
}

func TestRetries(t *testing.T) {
	own := func(r Retries) float64 { return *r.Own }
	// Pass rates 0, ½ and 1; good ones do not matter.
	r := Measure(trials("brr", "bpr", "bpp", "gpp")).Retries
	want := map[int][2]float64{ // all alike at ½; each its own
		0: {0.5, 0.5}, 1: {0.75, (0.75 + 1) / 3}, 3: {15. / 16, (15./16 + 1) / 3}, 5: {63. / 64, (63./64 + 1) / 3}, 25: {1, 2. / 3},
	}
	for _, n := range r {
		if w := want[n.Retries]; !near(n.All, w[0], 1e-6) || !near(own(n), w[1], 1e-6) {
			t.Errorf("after %d: %v, %v, want %v", n.Retries, n.All, own(n), w)
		}
	}
	if len(r) != len(want) {
		t.Errorf("%+v", r)
	}
	once := Measure(trials("br", "br", "br", "bp")).Retries
	if once[1].Own != nil || !near(once[1].All, 1-0.75*0.75, 1e-9) {
		t.Errorf("%+v", once[1])
	}
}

// The truth of a mixed set lies between both numbers, on the average.
func TestRetriesEncloseTheTruth(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 4))
	const runs = 3000
	truth := map[int]float64{}
	var set []Trial
	for i := range runs {
		rate := chance.Float64() * chance.Float64()
		for _, n := range retries {
			all := 1.0 // asked one by one
			for range n + 1 {
				all *= 1 - rate
			}
			truth[n] += (1 - all) / runs
		}
		for k := range 3 {
			set = append(set, Trial{Run: fmt.Sprint(i), Bad: true, Repeat: k + 1, Rejected: chance.Float64() >= rate})
		}
	}
	for _, r := range Measure(set).Retries {
		if r.Retries == 0 {
			continue // the same number twice
		}
		if !(*r.Own < truth[r.Retries] && truth[r.Retries] < r.All) {
			t.Errorf("after %d: %.3f < %.3f < %.3f does not hold", r.Retries, *r.Own, truth[r.Retries], r.All)
		}
	}
}

func scored(bad, good []float64) []Trial {
	var all []Trial
	for i, p := range append(append([]float64{}, bad...), good...) {
		all = append(all, Trial{Run: fmt.Sprint(i), Bad: i < len(bad), Rejected: p < 0.5, Passed: &p})
	}
	return all
}

func TestCurve(t *testing.T) {
	c := Measure(scored([]float64{0.1, 0.2, 0.4, 0.8}, []float64{0.4, 0.9})).Curve
	// Pairs: 0.1, 0.2 below both; 0.4 ties one; 0.8 below one: 2+2+1.5+1 of 8.
	if c.Scored != 6 || !near(c.AUC.Value, 6.5/8, 1e-9) {
		t.Errorf("%+v %+v", c, c.AUC)
	}
	// No good one may go: what is below 0.4 can, two of four.
	low, high := wilson(0.5, 4)
	want := Point{Limit: 0.01, Recall: Estimate{0.5, low, high}, Threshold: 0.3}
	if diff := cmp.Diff(want, c.Points[0], closely); diff != "" {
		t.Error(diff)
	}
	t.Run("one of twenty is 5 %", func(t *testing.T) {
		good := []float64{0.3}
		for range 19 {
			good = append(good, 0.9)
		}
		points := Measure(scored([]float64{0.1, 0.35, 0.95}, good)).Curve.Points
		if p := points[0]; p.Recall.Value != 1./3 || p.Wrongly != 0 || !near(p.Threshold, 0.2, 1e-9) {
			t.Errorf("%+v", p)
		}
		if p := points[1]; p.Recall.Value != 2./3 || p.Wrongly != 1 || !near(p.Threshold, (0.35+0.9)/2, 1e-9) {
			t.Errorf("%+v", p)
		}
	})
	t.Run("a threshold that would have to be above 1", func(t *testing.T) {
		if p := Measure(scored([]float64{1, 1}, []float64{1})).Curve.Points[1]; p.Threshold != 0 || p.Recall.Value != 0 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("without both kinds there is none", func(t *testing.T) {
		if c := Measure(scored([]float64{0.1}, nil)).Curve; c.AUC != nil || c.Points != nil || c.Scored != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// The area, and the point's share, as one counts them pair by pair.
func TestCurveAgainstCounting(t *testing.T) {
	chance := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var bad, good []float64
		for range 1 + chance.IntN(30) {
			bad = append(bad, math.Round(chance.Float64()*10)/10)
		}
		for range 1 + chance.IntN(60) {
			good = append(good, math.Round((0.2+0.8*chance.Float64())*10)/10)
		}
		c := Measure(scored(bad, good)).Curve
		pairs := 0.0
		for _, b := range bad {
			for _, g := range good {
				switch {
				case b < g:
					pairs++
				case b == g:
					pairs += 0.5
				}
			}
		}
		if area := pairs / float64(len(bad)*len(good)); !near(area, c.AUC.Value, 1e-9) {
			t.Fatalf("area %v, counted %v", c.AUC.Value, area)
		}
		for _, p := range c.Points {
			best := 0.0
			for threshold := 0.05; threshold < 1; threshold += 0.1 { // between all probabilities
				if part(below(good, threshold), good) <= p.Limit {
					best = max(best, part(below(bad, threshold), bad))
				}
			}
			if !near(best, p.Recall.Value, 1e-9) {
				t.Fatalf("recall %v, best %v", p.Recall.Value, best)
			}
			if below(good, p.Threshold) != p.Wrongly || part(below(bad, p.Threshold), bad) != p.Recall.Value {
				t.Fatalf("the threshold does not do what it says: %+v", p)
			}
		}
	}
}

func below(all []float64, threshold float64) int {
	n := 0
	for _, p := range all {
		if p < threshold {
			n++
		}
	}
	return n
}

func TestCostAndTime(t *testing.T) {
	set := []Trial{
		{Run: "a", Model: "m", MS: 10, Usage: gate.Usage{Calls: 1, PromptTokens: 1_000_000, CachedTokens: 400_000, OutputTokens: 100_000, Cost: 2.4}},
		{Run: "b", Model: "m", MS: 30, Usage: gate.Usage{Calls: 3, PromptTokens: 200_000, OutputTokens: 0, Cost: 0.4}},
		{Run: "c", Model: "other", MS: 20, Usage: gate.Usage{Calls: 2, PromptTokens: 300_000, OutputTokens: 200_000}},
		{Run: "d", Model: "other", MS: 9999, Failure: &gate.Failure{Code: gate.Timeout}},
	}
	r := Measure(set)
	if diff := cmp.Diff(&Cost{Total: 2.8, PerTrial: 1.4, Unpriced: 1}, r.Cost, closely); diff != "" {
		t.Error(diff)
	}
	if want := (gate.Usage{Calls: 6, PromptTokens: 1_500_000, CachedTokens: 400_000, OutputTokens: 300_000, Cost: 2.8}); r.Usage != want || r.PerTrial.PromptTokens != 375_000 {
		t.Errorf("%+v %+v", r.Usage, r.PerTrial)
	}
	if *r.Time != (Time{P50: 20, P95: 30}) {
		t.Errorf("%+v", r.Time)
	}
	if Measure(set[2:]).Cost != nil {
		t.Error("a cost without a price")
	}
	for n, want := range map[int]float64{1: 1, 19: 19, 20: 19, 21: 20, 100: 95} {
		sorted := make([]float64, n)
		for i := range sorted {
			sorted[i] = float64(i + 1)
		}
		if got := percentile(sorted, 0.95); got != want {
			t.Errorf("p95 of 1…%d is %v, want %v", n, got, want)
		}
	}
}

func TestTrialOf(t *testing.T) {
	sure := func(p float64) *gate.Evidence { return &gate.Evidence{Probability: &p} }
	none := gate.Verdict{Outcome: gate.NoVerdict, FailMode: gate.FailBlock, Failure: &gate.Failure{Code: gate.Timeout, Message: "late"}, Notes: []gate.Note{gate.FailedClosed}}
	tests := []struct {
		name     string
		hooks    []gate.Verdict
		rejected bool
		failure  gate.FailureCode
		passed   float64 // 0: none
	}{
		{name: "passed", hooks: []gate.Verdict{{Outcome: gate.Allow, Evidence: sure(0.9)}}, passed: 0.9},
		{name: "rejected", hooks: []gate.Verdict{{Outcome: gate.Block, Evidence: sure(0.2)}}, rejected: true, passed: 0.2},
		{name: "one of two rejects", hooks: []gate.Verdict{{Outcome: gate.Allow, Evidence: sure(0.9)}, {Outcome: gate.Block, Evidence: sure(0.3)}}, rejected: true, passed: 0.3},
		{name: "one does not say how sure", hooks: []gate.Verdict{{Outcome: gate.Allow, Evidence: sure(0.9)}, {Outcome: gate.Allow}}},
		{name: "an error is no rejection, though it blocks", hooks: []gate.Verdict{{Outcome: gate.Allow, Evidence: sure(0.9)}, none}, failure: gate.Timeout},
		{name: "a rejection stands beside an error", hooks: []gate.Verdict{none, {Outcome: gate.Block, Evidence: sure(0.1)}}, rejected: true},
		{name: "judged without the conversation", hooks: []gate.Verdict{{Outcome: gate.Block, Notes: []gate.Note{gate.TranscriptLost}}}, failure: gate.TranscriptUnreadable},
		{name: "one was not asked", hooks: []gate.Verdict{{Outcome: gate.Allow}, {Outcome: gate.Skipped}}, failure: gate.Internal},
		{name: "nobody asked", failure: gate.Internal},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := TrialOf(Run{ID: "x", Bad: true}, 2, gate.Decision{Hooks: test.hooks})
			if got.Run != "x" || !got.Bad || got.Repeat != 2 || got.Rejected != test.rejected {
				t.Errorf("%+v", got)
			}
			if (got.Failure != nil) != (test.failure != "") || got.Failure != nil && got.Failure.Code != test.failure {
				t.Errorf("failure %v, want %q", got.Failure, test.failure)
			}
			if (got.Passed != nil) != (test.passed > 0) || got.Passed != nil && *got.Passed != test.passed {
				t.Errorf("probability %v, want %v", got.Passed, test.passed)
			}
		})
	}
	t.Run("models and tokens of all hooks", func(t *testing.T) {
		got := TrialOf(Run{}, 1, gate.Decision{Hooks: []gate.Verdict{
			{Outcome: gate.Allow, Model: "a", Usage: &gate.Usage{Calls: 1, PromptTokens: 5}},
			{Outcome: gate.Allow, Model: "b", Usage: &gate.Usage{Calls: 2, OutputTokens: 7}}}})
		if got.Model != "a, b" || got.Usage != (gate.Usage{Calls: 3, PromptTokens: 5, OutputTokens: 7}) {
			t.Errorf("%+v", got)
		}
	})
}

func part(n int, of []float64) float64 { return float64(n) / float64(len(of)) }
