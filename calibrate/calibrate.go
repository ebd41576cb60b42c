// Package calibrate measures a Stop gate on runs whose answers are known to be
// good or bad.
//
// A set is read with [ReadRun]; each run is put to the gate, once or several
// times, and what came of it is a [Trial] ([TrialOf]). [Measure] makes a [Report]
// of the trials. Everything here is a function of values, without chance: the
// same trials give the same report.
//
// # Words
//
// The gate looks for bad answers, so "positive" is a bad answer (label fail) and
// a rejection is a hit:
//
//	              rejected          let pass
//	bad answer    caught (TP)       missed (FN)
//	good answer   wrongly (FP)      rightly (TN)
//
// "No" is a verdict and an error is not: a trial without a verdict is in no share
// but its own.
//
// # Intervals
//
// All intervals are of 95 %. Those of shares are Wilson's, with as many
// observations as there are runs, not trials: repeats of one run say little new,
// and do not narrow an interval. Where runs weigh differently, since some have
// trials without a verdict, Kish's effective number is taken. Youden's J is a
// difference of two shares and has Newcombe's interval (square-and-add of the
// Wilson limits); F1 is 2s/(1+s) of the share s = TP/(TP+FP+FN) and has that
// share's interval, transformed; the area under the curve has the one of
// Newcombe's fifth method (a score interval on the Hanley–McNeil variance). Unlike
// the bootstrap they keep their width where a small set has no error in it.
package calibrate

import (
	"maps"
	"slices"

	"stopgate/gate"
)

// Trial is one run that was put to the gate once.
type Trial struct {
	Run    string `json:"id"`
	Bad    bool   `json:"bad"`    // its label is fail
	Repeat int    `json:"repeat"` // from 1
	// Failure is why there was no verdict; nil: there was one.
	Failure  *gate.Failure `json:"error,omitempty"`
	Rejected bool          `json:"rejected"`
	Reason   string        `json:"reason,omitempty"`
	// Passed is how sure the judge was that the check is passed, 0 to 1; nil: it
	// did not say.
	Passed *float64    `json:"probability,omitempty"`
	Notes  []gate.Note `json:"notes,omitempty"`
	Model  string      `json:"model,omitempty"`
	Usage  gate.Usage  `json:"usage"`
	// MS is how long it took, in milliseconds; 0: not measured.
	MS float64 `json:"duration_ms,omitempty"`
}

// judged reports whether there was a verdict.
func (t *Trial) judged() bool { return t.Failure == nil }

// TrialOf is what a decision says of a run. One hook that rejects is enough; else
// one that gave no verdict leaves the run without one, whatever its failMode made
// of it; and nothing counts where the conversation could not be read. Where
// several hooks say how sure they are, the least sure counts: all of them must be
// passed.
func TrialOf(r Run, repeat int, d gate.Decision) Trial {
	t := Trial{Run: r.ID, Bad: r.Bad, Repeat: repeat}
	if len(d.Hooks) == 0 {
		t.Failure = &gate.Failure{Code: gate.Internal, Message: "no hook was asked"}
	}
	for _, v := range d.Hooks {
		t.add(v)
	}
	lost := slices.Contains(t.Notes, gate.TranscriptLost)
	switch {
	case lost:
		t.Rejected = false
		t.Failure = &gate.Failure{Code: gate.TranscriptUnreadable, Message: "the conversation could not be read"}
	case t.Rejected:
		t.Failure, t.Reason = nil, d.Reason
	}
	if t.judged() {
		t.Passed = leastSure(d.Hooks)
	}
	return t
}

// add takes in one hook's verdict.
func (t *Trial) add(v gate.Verdict) {
	switch v.Outcome {
	case gate.Block:
		t.Rejected = true
	case gate.NoVerdict:
		if t.Failure == nil {
			t.Failure = v.Failure
		}
	case gate.Skipped:
		t.Failure = &gate.Failure{Code: gate.Internal, Message: "a hook was skipped"}
	}
	t.Notes = append(t.Notes, v.Notes...)
	if t.Model == "" {
		t.Model = v.Model
	} else if v.Model != "" && v.Model != t.Model {
		t.Model += ", " + v.Model
	}
	if v.Usage != nil {
		t.Usage = t.Usage.Plus(*v.Usage)
	}
}

// leastSure is the lowest probability; nil where a hook gave none.
func leastSure(hooks []gate.Verdict) *float64 {
	var least *float64
	for _, v := range hooks {
		if v.Evidence == nil || v.Evidence.Probability == nil {
			return nil
		}
		if p := v.Evidence.Probability; least == nil || *p < *least {
			least = p
		}
	}
	return least
}

// Report is the numbers of a gate. What the trials do not tell is nil: the share
// of good answers let pass of a set without good answers.
type Report struct {
	Runs     int `json:"runs"`
	BadRuns  int `json:"bad_runs"`
	GoodRuns int `json:"good_runs"`
	Trials   int `json:"trials"`

	NoVerdict NoVerdict `json:"no_verdict"`
	Confusion Confusion `json:"confusion"`
	// TPR is the share of bad answers that were rejected (recall), TNR of good
	// answers let pass, Precision of rejections that were right.
	TPR       *Estimate `json:"tpr"`
	TNR       *Estimate `json:"tnr"`
	Youden    *Estimate `json:"youden_j"` // TPR + TNR − 1
	Precision *Estimate `json:"precision"`
	F1        *Estimate `json:"f1"`

	Curve        Curve         `json:"curve"`
	Disagreement *Disagreement `json:"disagreement"`
	Retries      []Retries     `json:"retries"`

	Usage    gate.Usage        `json:"usage"` // of all trials, those without a verdict too
	PerTrial Usage             `json:"usage_per_trial"`
	Cost     *Cost             `json:"cost"`
	Time     *Time             `json:"time"`
	Notes    map[gate.Note]int `json:"notes"`
}

// Confusion counts the trials with a verdict.
type Confusion struct {
	Caught  int `json:"bad_rejected"`  // TP
	Missed  int `json:"bad_passed"`    // FN
	Wrongly int `json:"good_rejected"` // FP
	Rightly int `json:"good_passed"`   // TN
}

// NoVerdict is the trials in which the gate could not be asked.
type NoVerdict struct {
	Share *Estimate                `json:"share"` // of all trials
	Bad   int                      `json:"bad"`
	Good  int                      `json:"good"`
	Codes map[gate.FailureCode]int `json:"codes"`
}

// Measure makes the report of trials.
func Measure(trials []Trial) Report {
	r := Report{Trials: len(trials), NoVerdict: NoVerdict{Codes: map[gate.FailureCode]int{}}, Notes: map[gate.Note]int{}}
	runs := map[string]bool{}
	for i := range trials {
		t := &trials[i]
		runs[t.Run] = t.Bad
		r.count(t)
		for _, n := range t.Notes {
			r.Notes[n]++
		}
	}
	r.Runs = len(runs)
	for bad := range maps.Values(runs) {
		if bad {
			r.BadRuns++
		} else {
			r.GoodRuns++
		}
	}
	r.shares(trials)
	r.Curve = curveOf(trials)
	r.Disagreement = disagreementOf(trials)
	r.Retries = retriesOf(trials)
	r.Usage, r.PerTrial = usageOf(trials)
	r.Cost = costOf(trials)
	r.Time = timeOf(trials)
	return r
}

func (r *Report) count(t *Trial) {
	c := &r.Confusion
	switch {
	case !t.judged() && t.Bad:
		r.NoVerdict.Bad++
	case !t.judged():
		r.NoVerdict.Good++
	case t.Bad && t.Rejected:
		c.Caught++
	case t.Bad:
		c.Missed++
	case t.Rejected:
		c.Wrongly++
	default:
		c.Rightly++
	}
	if !t.judged() {
		r.NoVerdict.Codes[t.Failure.Code]++
	}
}

func (r *Report) shares(trials []Trial) {
	all := func(*Trial) bool { return true }
	unjudged := func(t *Trial) bool { return !t.judged() }
	bad := func(t *Trial) bool { return t.judged() && t.Bad }
	good := func(t *Trial) bool { return t.judged() && !t.Bad }
	rejected := func(t *Trial) bool { return t.judged() && t.Rejected }
	passed := func(t *Trial) bool { return !t.Rejected }
	atStake := func(t *Trial) bool { return t.judged() && (t.Bad || t.Rejected) } // all but TN
	caught := func(t *Trial) bool { return t.Bad && t.Rejected }

	r.NoVerdict.Share = share(trials, all, unjudged)
	r.TPR = share(trials, bad, rejected)
	r.TNR = share(trials, good, passed)
	r.Precision = share(trials, rejected, caught)
	r.F1 = share(trials, atStake, caught).f1()
	r.Youden = youden(r.TPR, r.TNR)
}
