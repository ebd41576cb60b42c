package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"stopgate/internal/loopback"
)

// maxProfile is how long one profile or trace may be taken, and sent.
const maxProfile = 2 * time.Minute

// serveProfiles serves Go's profiles on a loopback address, which the server
// file has been checked to name, until the server is closed.
func serveProfiles(address string) (*http.Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("telemetry.pprof: %w", err)
	}
	web := &http.Server{Handler: profiles(), ReadTimeout: 10 * time.Second, WriteTimeout: maxProfile, MaxHeaderBytes: 16 << 10}
	go func() { _ = web.Serve(listener) }() // ends with Close; nothing depends on it
	return web, nil
}

// profiles are those of net/http/pprof but the command line. A request has to name
// this machine: a web page whose name was made to lead here could read them
// otherwise.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if !loopback.Host(host) || r.Header.Get("Origin") != "" {
			http.Error(w, "profiles are for this machine", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
