package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// http.shutdown_grace of the server file is how long an evaluation goes on once
// the service stops, where the default is 30 seconds.
func TestServeStopsWithinTheGraceOfItsFile(t *testing.T) {
	dir := t.TempDir()
	file, started := filepath.Join(dir, "stopgate.yaml"), filepath.Join(dir, "started")
	write(t, file, "sandbox: {mode: process}\nhttp: {shutdown_grace: 1s}\n")
	ctx, stop := context.WithCancel(t.Context())
	p := process{ctx: t.Context(), getenv: func(string) string { return "" }}
	cfg, err := loadConfig(p, file, overrides{data: filepath.Join(dir, "data")})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, app, err := newServer(p, cfg, slog.New(slog.DiscardHandler), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer app.close()
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, listener) }()
	s := &service{t: t, url: "http://" + listener.Addr().String()}
	s.putAgent("a", `"Stop":[{"type":"command","command":"touch `+started+`; sleep 60","timeout":90}]`)
	go func() {
		resp, err := http.Post(s.url+"/v1/evaluate", "application/json", bytes.NewReader([]byte(`{"hook_event_name":"Stop","agent_name":"a","final_output":"x"}`)))
		if err == nil {
			resp.Body.Close()
		}
	}()
	awaitFile(t, started)
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it goes on past the grace of its file")
		<-ended
	}
}

// awaitFile waits until a file is there.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for range 200 {
		if found, _ := filepath.Glob(path); len(found) > 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s has not come", path)
}

// The address of a server that was killed is taken for a moment, and that of one that
// runs for good.
func TestAnAddressIsWaitedFor(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := listenOn(t.Context(), other.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) || time.Since(began) < listenTime {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	time.AfterFunc(listenTime/10, func() { _ = other.Close() })
	mine, err := listenOn(t.Context(), other.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.Close(); err != nil {
		t.Error(err)
	}
}
