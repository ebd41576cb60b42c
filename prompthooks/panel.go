package prompthooks

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"stopgate/gate"
)

// panel has several judges decide, each by itself and none knowing of the
// others: what more than half of all votes say is the verdict. A tie, and too
// many judges without a verdict, is no verdict. Once it is clear, those that
// still read are told to stop.
func (j *Judge) panel(ctx context.Context, in gate.Input) gate.Verdict {
	ctx, decided := context.WithCancel(ctx)
	defer decided()
	votes := make([]gate.Verdict, in.Hook.Votes)
	var mu sync.Mutex
	counts := map[gate.Outcome]int{}
	var sitting sync.WaitGroup
	for i := range votes {
		sitting.Go(func() {
			v := j.single(ctx, in, in.Hook.Voter(i))
			mu.Lock()
			defer mu.Unlock()
			votes[i] = v
			if counts[v.Outcome]++; v.Outcome != gate.NoVerdict && counts[v.Outcome] > len(votes)/2 {
				decided()
			}
		})
	}
	sitting.Wait()
	return majority(votes)
}

// majority is what more than half of the votes say: with the reasons of those
// that say it, and everything that all of them cost and did.
func majority(votes []gate.Verdict) gate.Verdict {
	counts := map[gate.Outcome]int{}
	for _, v := range votes {
		counts[v.Outcome]++
	}
	result := gate.Verdict{Outcome: gate.NoVerdict}
	for o, n := range counts {
		if o != gate.NoVerdict && n > len(votes)/2 {
			result.Outcome = o
		}
	}
	if result.Outcome == gate.NoVerdict {
		result.Failure = undecided(votes, counts)
	}
	usage, evidence := gate.Usage{}, gate.Evidence{}
	var reasons, models []string
	sure, said := 0.0, 0
	for i, v := range votes {
		models = appendNew(models, v.Model)
		if v.Usage != nil {
			usage = usage.Plus(*v.Usage)
		}
		if v.Evidence != nil {
			evidence.Steps = append(evidence.Steps, gate.Step{Tool: "vote", Input: v.Model, Text: told(i, v)})
			evidence.Steps = append(evidence.Steps, v.Evidence.Steps...)
		}
		if v.Outcome != result.Outcome || v.Outcome == gate.NoVerdict {
			continue
		}
		reasons = appendNew(reasons, strings.TrimSpace(v.Reason))
		for _, n := range v.Notes {
			if !result.Has(n) {
				result.Notes = append(result.Notes, n)
			}
		}
		if result.AdditionalContext == "" {
			result.AdditionalContext = v.AdditionalContext
		}
		if v.Evidence != nil {
			evidence.Quotes = append(evidence.Quotes, v.Evidence.Quotes...)
			if p := v.Evidence.Probability; p != nil {
				sure, said = sure+*p, said+1
			}
		}
	}
	if said > 0 {
		mean := sure / float64(said)
		evidence.Probability = &mean
	}
	result.Reason, result.Model = strings.Join(reasons, "\n\n"), strings.Join(models, ", ")
	result.Usage, result.Evidence = &usage, &evidence
	return result
}

// undecided says why a panel has no verdict: its judges failed, or they
// disagree.
func undecided(votes []gate.Verdict, counts map[gate.Outcome]int) *gate.Failure {
	if counts[gate.NoVerdict] > len(votes)/2 {
		for _, v := range votes {
			if v.Outcome == gate.NoVerdict {
				return &gate.Failure{Code: v.Failure.Code, Message: fmt.Sprintf("%d of %d judges gave no verdict: %s", counts[gate.NoVerdict], len(votes), v.Failure.Message)}
			}
		}
	}
	return &gate.Failure{Code: gate.BadVerdict, Message: fmt.Sprintf("the %d judges came to no majority: %d allow, %d block, %d ask, %d no verdict",
		len(votes), counts[gate.Allow], counts[gate.Block], counts[gate.Ask], counts[gate.NoVerdict])}
}

func told(i int, v gate.Verdict) string {
	text := fmt.Sprintf("judge %d: %s", i+1, v.Outcome)
	if v.Failure != nil {
		text += ": " + v.Failure.Error()
	}
	return text
}

func appendNew(list []string, s string) []string {
	if s == "" {
		return list
	}
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}
