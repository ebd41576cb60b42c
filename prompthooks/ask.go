package prompthooks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"stopgate/gate"
)

const (
	// maxTries of one request, the first one included (spec/azure.md 32).
	maxTries = 4
	// firstWait before the second try; it doubles with each.
	firstWait = 500 * time.Millisecond
	// fewOutputTokens is when the rest of the budget is so small that an
	// answer must be held to it; minOutputTokens is room for a verdict all the
	// same. Before that an answer may be as long as the model likes: a limit
	// would cut a thinking model's thoughts, and some models refuse one that
	// is larger than their own.
	fewOutputTokens = 8 << 10
	minOutputTokens = 1 << 10
)

// ask makes the next request, again where that may help, and keeps what it
// said and cost.
func (t *trial) ask(ctx context.Context) (Response, error) {
	left := t.judge.maxTokens - t.spent()
	if left <= 0 {
		return Response{}, &gate.Failure{Code: gate.BudgetExhausted,
			Message: fmt.Sprintf("the judge used %d tokens of %d and gave no verdict", t.spent(), t.judge.maxTokens)}
	}
	if left < fewOutputTokens {
		t.req.MaxOutputTokens = max(left, minOutputTokens)
	}
	answer, err := t.generate(ctx)
	if err != nil {
		return Response{}, err
	}
	t.lastCost = credible(answer.Usage.PromptTokens) + credible(answer.Usage.OutputTokens)
	t.keep(answer)
	return answer, nil
}

// keep writes an answer into the evidence: its text, and the calls that give a
// verdict. Calls that read are kept with their results.
func (t *trial) keep(answer Response) {
	text := answer.Message.Text
	if answer.Finish != Finished {
		text += "[" + answer.Detail + "]"
	}
	t.steps = append(t.steps, gate.Step{Text: gate.CutEvidence(text), Tokens: t.lastCost})
	if wantsToRead(answer) && t.mayRead() {
		return
	}
	for _, c := range answer.Message.Calls[:min(len(answer.Message.Calls), maxCalls)] {
		t.steps = append(t.steps, gate.Step{Tool: gate.Cut(c.Name, 100), Input: gate.CutEvidence(string(c.Args))})
	}
}

// generate tries one request up to t.tries times. It waits as long as the
// server asks, and longer each time; where the hook's time does not allow the
// wait, the error comes at once. A request that asks for what the model lacks is
// made again with less.
func (t *trial) generate(ctx context.Context) (Response, error) {
	for try := 1; ; try++ {
		answer, err := t.model.Generate(ctx, t.req.without(t.lacks))
		t.count(answer.Usage)
		if err == nil || ctx.Err() != nil {
			return answer, err
		}
		bad, ok := errors.AsType[*Error](err)
		if !ok {
			return Response{}, err
		}
		if again, broken := t.learn(ctx, bad); broken != nil {
			return Response{}, broken
		} else if again {
			try = 0 // what could be asked for is asked for the first time
			continue
		}
		if !bad.transient() {
			return Response{}, err
		}
		wait := max(bad.RetryAfter, backoff(try))
		if try >= t.tries {
			if try == 1 {
				return Response{}, bad
			}
			return Response{}, Errorf(bad.Kind, "%s (after %d tries)", bad.Message, try)
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
			return Response{}, Errorf(bad.Kind, "%s (no time left to try again in %s)", bad.Message, wait.Round(time.Millisecond))
		}
		if err := sleep(ctx, wait); err != nil {
			return Response{}, err
		}
	}
}

// count adds the cost of one request, also of one that failed where the server
// said what it cost. Hostile numbers below zero cost nothing.
func (t *trial) count(u gate.Usage) {
	t.usage.Calls++
	t.usage.PromptTokens += credible(u.PromptTokens)
	t.usage.CachedTokens += credible(u.CachedTokens)
	t.usage.OutputTokens += credible(u.OutputTokens)
}

// credible bounds what a server says of one request: no context window holds a
// billion tokens, and sums must not overflow.
func credible(tokens int) int { return min(max(tokens, 0), 1e9) }

// backoff is the wait after the n-th try: half of it fixed, half by chance, so
// that judges that failed together do not come back together.
func backoff(n int) time.Duration {
	d := firstWait << (n - 1)
	return d/2 + rand.N(d/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
