package prompthooks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"

	"stopgate/gate"
	"stopgate/internal/places"
)

const (
	// breakAfter failures in a row a deployment is left alone: what four tries
	// of one judge and one of another have seen is no accident.
	breakAfter = 5
	// breakFor is how long, before one request may try again. Judges whose hooks
	// have the time wait for it.
	breakFor = 10 * time.Second
	// maxBreakers bounds what is kept of deployments that hooks name.
	maxBreakers = 1000
)

// Guarded asks m no more than it can take: at most parallel requests at once,
// others wait, agent by agent in turns, unless theirs would come after their hooks' time; and a deployment that failed
// again and again is left alone for a while, so that its judges hear at once
// that it is unavailable. Whoever is refused has no verdict, never an allow.
func Guarded(m Model, parallel int) Model {
	return &guarded{model: m, room: places.New(parallel), breakers: map[string]circuitbreaker.CircuitBreaker[Response]{}}
}

type guarded struct {
	model Model
	room  *places.Places

	mu       sync.Mutex
	breakers map[string]circuitbreaker.CircuitBreaker[Response] // by deployment
}

// Lacks implements [Limited] for a model that does.
func (g *guarded) Lacks() Features {
	if limited, ok := g.model.(Limited); ok {
		return limited.Lacks()
	}
	return 0
}

// Generate implements [Model].
func (g *guarded) Generate(ctx context.Context, req Request) (Response, error) {
	leave, err := g.room.Take(ctx, req.Agent)
	if errors.Is(err, places.ErrFull) {
		return Response{}, Errorf(Crowded, "%d requests to the model's provider are under way, as many as it may have, and others wait already", g.room.Limit())
	} else if err != nil {
		return Response{}, err
	}
	defer leave()
	b := g.breaker(req.Model)
	if !b.TryAcquirePermit() {
		wait := b.RemainingDelay()
		return Response{}, &Error{Kind: Unavailable, RetryAfter: wait,
			Message: fmt.Sprintf("model %q failed %d times in a row; it is asked again in %s", gate.Cut(req.Model, 80), breakAfter, wait.Round(time.Millisecond))}
	}
	began := time.Now()
	answer, err := g.model.Generate(ctx, req)
	record(ctx, b, err, time.Since(began))
	return answer, err
}

// hangs is how long a model may think before no answer means that it is gone: a
// hook with less time says nothing about it.
const hangs = 20 * time.Second

// record tells the breaker how it went. A server that says no, or that there
// are too many requests, is there; one that did not answer for long is not. A
// judge that went away says nothing, but must not keep the one try that a
// half-open breaker gives.
func record(ctx context.Context, b circuitbreaker.CircuitBreaker[Response], err error, took time.Duration) {
	bad, ok := errors.AsType[*Error](err)
	switch {
	case err == nil, ok && bad.Kind != Unavailable:
		b.RecordSuccess()
	case ok, errors.Is(ctx.Err(), context.DeadlineExceeded) && took >= hangs, b.IsHalfOpen():
		b.RecordFailure()
	}
}

func (g *guarded) breaker(deployment string) circuitbreaker.CircuitBreaker[Response] {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.breakers[deployment]
	if b == nil {
		if len(g.breakers) >= maxBreakers {
			clear(g.breakers) // what fails still will be known again after five tries
		}
		b = circuitbreaker.NewBuilder[Response]().WithFailureThreshold(breakAfter).WithSuccessThreshold(1).WithDelay(breakFor).Build()
		g.breakers[deployment] = b
	}
	return b
}
