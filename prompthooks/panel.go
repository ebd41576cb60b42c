package prompthooks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	counts := map[opinion]int{}
	var sitting sync.WaitGroup
	for i := range votes {
		sitting.Go(func() {
			v := j.single(ctx, in, in.Hook.Voter(i))
			mu.Lock()
			defer mu.Unlock()
			votes[i] = v
			if counts[opinionOf(v)]++; v.Outcome != gate.NoVerdict && counts[opinionOf(v)] > len(votes)/2 {
				decided()
			}
		})
	}
	sitting.Wait()
	return majority(votes)
}

// opinion is what a judge says. That the check cannot be passed in this session
// is another one than that it is passed, though both let a Stop go through.
type opinion struct {
	outcome    gate.Outcome
	impossible bool
}

func opinionOf(v gate.Verdict) opinion { return opinion{v.Outcome, v.Has(gate.Impossible)} }

// majority is what more than half of the votes say: with the reasons of those
// that say it, and everything that all of them cost and did.
func majority(votes []gate.Verdict) gate.Verdict {
	counts := map[opinion]int{}
	for _, v := range votes {
		counts[opinionOf(v)]++
	}
	result := gate.Verdict{Outcome: gate.NoVerdict, Failure: undecided(votes, counts), Evidence: &gate.Evidence{}}
	for o, n := range counts {
		if o.outcome != gate.NoVerdict && n > len(votes)/2 {
			result = agreement(slices.DeleteFunc(slices.Clone(votes), func(v gate.Verdict) bool { return opinionOf(v) != o }))
		}
	}
	addProceedings(&result, votes)
	return result
}

// agreement is the verdict of votes of one opinion, at least one: each reason and
// note once, the first context, every quote.
func agreement(votes []gate.Verdict) gate.Verdict {
	result := gate.Verdict{Outcome: votes[0].Outcome, Evidence: &gate.Evidence{}}
	var reasons, contexts []string
	for _, v := range votes {
		reasons, contexts = append(reasons, strings.TrimSpace(v.Reason)), append(contexts, v.AdditionalContext)
		for _, n := range v.Notes {
			if !result.Has(n) {
				result.Notes = append(result.Notes, n)
			}
		}
		if v.Evidence != nil {
			result.Evidence.Quotes = append(result.Evidence.Quotes, v.Evidence.Quotes...)
		}
	}
	result.Reason, result.AdditionalContext = strings.Join(distinct(reasons), "\n\n"), cmp.Or(contexts...)
	return result
}

// addProceedings adds to a panel's verdict what all of its judges cost and did.
// Its probability is the median of all, dissent included, so that it is on the
// majority's side.
func addProceedings(result *gate.Verdict, votes []gate.Verdict) {
	result.Usage = &gate.Usage{}
	var models []string
	var sure []float64
	for i, v := range votes {
		models = append(models, v.Model)
		if v.Usage != nil {
			*result.Usage = result.Usage.Plus(*v.Usage)
		}
		if v.Evidence == nil {
			continue
		}
		result.Evidence.Steps = append(append(result.Evidence.Steps, gate.Step{Tool: "vote", Input: v.Model, Text: told(i, v)}), v.Evidence.Steps...)
		if p := v.Evidence.Probability; p != nil {
			sure = append(sure, *p)
		}
	}
	if len(sure) > 0 {
		slices.Sort(sure)
		result.Evidence.Probability = &sure[(len(sure)-1)/2]
	}
	result.Model = strings.Join(distinct(models), ", ")
}

// undecided says why a panel has no verdict: its judges failed, or they
// disagree.
func undecided(votes []gate.Verdict, counts map[opinion]int) *gate.Failure {
	none := counts[opinion{gate.NoVerdict, false}]
	if none > len(votes)/2 {
		for _, v := range votes {
			if v.Outcome == gate.NoVerdict {
				return &gate.Failure{Code: v.Failure.Code, Message: fmt.Sprintf("%d of %d judges gave no verdict: %s", none, len(votes), v.Failure.Message)}
			}
		}
	}
	return &gate.Failure{Code: gate.BadVerdict, Message: fmt.Sprintf("the %d judges came to no majority: %d allow, %d block, %d ask, %d impossible, %d no verdict",
		len(votes), counts[opinion{gate.Allow, false}], counts[opinion{gate.Block, false}], counts[opinion{gate.Ask, false}], counts[opinion{gate.Allow, true}], none)}
}

func told(i int, v gate.Verdict) string {
	text := fmt.Sprintf("judge %d: %s", i+1, v.Outcome)
	if v.Failure != nil {
		text += ": " + v.Failure.Error()
	}
	return text
}

// distinct are the texts that are not empty, each once, as they first come.
func distinct(texts []string) (once []string) {
	for _, s := range texts {
		if s != "" && !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}
