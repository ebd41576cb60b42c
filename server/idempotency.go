package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// maxIdempotencyKey is the longest key, in bytes.
const maxIdempotencyKey = 255

// idempotencyKey reads the header; the zero key means that there is none.
func idempotencyKey(c echo.Context) (gate.IdempotencyKey, error) {
	values := c.Request().Header["Idempotency-Key"]
	if len(values) == 0 {
		return gate.IdempotencyKey{}, nil
	}
	key := values[0]
	ok := len(values) == 1 && key != "" && len(key) <= maxIdempotencyKey
	for i := 0; i < len(key) && ok; i++ {
		ok = key[i] > ' ' && key[i] <= '~'
	}
	if !ok {
		return gate.IdempotencyKey{}, gate.Errorf(gate.CodeValidation, "header Idempotency-Key must be one key of 1 to %d visible ASCII characters", maxIdempotencyKey)
	}
	return gate.IdempotencyKey{Credential: callerOf(c).Credential, Key: key}, nil
}

// decideOnce decides the event if the key has no answer yet, and gives the
// stored answer again if it has (DESIGN §5).
//
// The store is asked without the caller's context: a caller that goes away
// while the key is being reserved, and tries again, must not be counted twice.
func (s *Server) decideOnce(c echo.Context, ev gate.Event, key gate.IdempotencyKey, body []byte) error {
	opt := gate.Options{Idempotency: gate.Request{Key: key, Body: sha256.Sum256(body)}}
	held, err := s.opt.Store.Reserve(s.running, opt.Idempotency, s.leaseTime)
	if _, refused := errors.AsType[*gate.Error](err); refused {
		return err
	}
	answered := false
	switch {
	case err != nil: // the store is down, or was: the commit claims the key if it can
		s.log.LogAttrs(c.Request().Context(), slog.LevelWarn, "idempotency key could not be reserved",
			slog.String("request_id", requestIDOf(c)), slog.Any("error", err))
	case held.Evaluation != "":
		return s.replay(c, held.Evaluation)
	default:
		stop := s.renewing(held)
		defer func() {
			stop()
			if !answered {
				s.release(c, held)
			}
		}()
	}
	d, err := s.traced(c, &ev, func(ctx context.Context) (gate.Decision, error) { return s.opt.Gate.Decide(ctx, ev, opt) })
	switch {
	case err == nil:
		answered = d.GateError == nil // if its commit failed, a retry may try again at once
		return s.conclude(c, &ev, d)
	case gate.CodeOf(err) != gate.CodeConflict:
		return err
	}
	// Another request was answered under the key meanwhile: that is the answer.
	other, lookup := s.opt.Store.Reserve(s.running, opt.Idempotency, 0) // to be told, not to hold it
	if lookup != nil || other.Evaluation == "" {
		return cmp.Or(lookup, err)
	}
	return s.replay(c, other.Evaluation)
}

// release gives a key back; if that fails, its lease will end.
func (s *Server) release(c echo.Context, held gate.Reservation) {
	if err := s.opt.Store.Release(context.WithoutCancel(s.running), held); err != nil {
		s.log.LogAttrs(c.Request().Context(), slog.LevelWarn, "idempotency key could not be released",
			slog.String("request_id", requestIDOf(c)), slog.Any("error", err))
	}
}

func (s *Server) replay(c echo.Context, evaluation string) error {
	rec, err := s.opt.Store.Record(c.Request().Context(), evaluation)
	if gate.CodeOf(err) == gate.CodeNotFound {
		return gate.Errorf(gate.CodeConflict, "evaluation %q of this Idempotency-Key was erased: use a new key", evaluation)
	}
	if err != nil {
		return err
	}
	c.Response().Header().Set("Idempotency-Replayed", "true")
	d := told(callerOf(c), rec.Decision).WithoutEvidence()
	return s.answer(c, http.StatusOK, &d)
}

// renewing keeps the key's lease alive, however long the hooks take, until
// stop is called. stop returns when no renewal runs any more.
func (s *Server) renewing(held gate.Reservation) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.running))
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(s.leaseTime / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := s.opt.Store.Renew(ctx, held, s.leaseTime); err != nil && ctx.Err() == nil {
				s.log.LogAttrs(ctx, slog.LevelWarn, "idempotency lease could not be renewed", slog.Any("error", err))
			}
		}
	})
	return func() { cancel(); done.Wait() }
}
