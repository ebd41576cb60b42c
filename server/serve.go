package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"stopgate/gate"
)

const (
	headerTimeout  = 10 * time.Second  // request line and headers
	idleTimeout    = 120 * time.Second // between two requests of a connection
	maxHeaderBytes = 64 << 10
	// lastAnswers is how long evaluations have to answer once they were told
	// to end: an evaluator returns within a second of that.
	lastAnswers = 3 * time.Second
)

// Serve answers on ln until ctx ends. Then it takes no new connection, lets
// running evaluations finish for ShutdownGrace, ends those that have not
// (their hooks time out, by their own failMode), and returns nil. Another
// error means that ln failed. A server serves once. Meanwhile specs that other
// replicas store are put in force, where the store tells of them
// ([gate.SpecWatcher]).
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer s.endRun()
	if watched, ok := s.opt.Store.(gate.SpecWatcher); ok {
		var following sync.WaitGroup
		defer following.Wait()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		following.Go(func() { s.follow(ctx, watched.SpecsChanged(ctx)) })
	}
	web := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       s.pace, // ends with the body: hooks may take longer
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSConfig:         s.opt.TLS,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() {
		if web.TLSConfig == nil {
			failed <- web.Serve(ln)
		} else {
			failed <- web.ServeTLS(ln, "", "") // the certificate is the configuration's
		}
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("serving on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	if shutdown(web, s.opt.ShutdownGrace) == nil {
		return nil
	}
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "evaluations are ended by the shutdown",
		slog.Int64("in_flight", s.metrics.inFlight.Load()))
	s.endRun()
	if shutdown(web, lastAnswers) == nil {
		return nil
	}
	if err := web.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing connections: %w", err)
	}
	return nil
}

func shutdown(web *http.Server, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return web.Shutdown(ctx)
}
