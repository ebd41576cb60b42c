package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stopgate/gate"
)

// listen serves w until the returned stop, which answers Serve's error.
func listen(t *testing.T, w *world) (url string, stop context.CancelFunc, ended chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- w.Serve(ctx, ln) }()
	return "http://" + ln.Addr().String(), stop, ended
}

// ask posts one Stop and hands its answer on.
func ask(t *testing.T, url string) chan map[string]any {
	answer := make(chan map[string]any, 1)
	go func() {
		defer close(answer)
		resp, err := http.Post(url+"/v1/evaluate", typeJSON, strings.NewReader(stop))
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		var m map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		answer <- m
	}()
	return answer
}

func TestShutdownFinishesRunningEvaluations(t *testing.T) {
	w := newWorld(t)
	running, finish := make(chan bool), make(chan bool)
	w.judge = func(ctx context.Context, _ gate.Input) gate.Verdict {
		close(running)
		select {
		case <-finish:
			return gate.Verdict{Outcome: gate.Block, Reason: "judged to the end"}
		case <-ctx.Done():
			return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Timeout, Message: "cut short"}}
		}
	}
	w.agent(t, "marker", gate.Stop, "ends")
	url, stop, ended := listen(t, w)
	answer := ask(t, url)
	<-running
	stop()
	for !w.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	w.must(t, 503, "GET", "/readyz", "")
	close(finish)
	if got := <-answer; got["reason"] != "judged to the end" {
		t.Errorf("got %v", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("still serves")
	}
}

func TestShutdownIsBounded(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ShutdownGrace = 10 * time.Millisecond })
	running := make(chan bool)
	w.judge = func(ctx context.Context, _ gate.Input) gate.Verdict {
		close(running)
		<-ctx.Done()
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Timeout, Message: "cut short"}}
	}
	w.agent(t, "marker", gate.Stop, "ends")
	url, stop, ended := listen(t, w)
	answer := ask(t, url)
	<-running
	stop()
	if got := <-answer; got["decision"] != "allow" || got["degraded"] != true {
		t.Errorf("got %v, want the failMode's answer", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestServeSaysWhenItCannot(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := newWorld(t).Serve(t.Context(), ln); err == nil {
		t.Error("a closed listener serves without error")
	}
}

func TestStreamsDoNotWaitForEver(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ShutdownGrace = 10 * time.Second })
	w.pace = 50 * time.Millisecond
	w.shelf.texts["s"] = strings.Repeat("x", 64<<20)
	url, stop, ended := listen(t, w)
	for name, request := range map[string]string{
		"a caller that does not read on":  "GET /v1/sessions/s/transcript HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"a caller that does not write on": "PUT /v1/sessions/s2/transcript HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nhalf",
		"a caller that does not ask on":   "POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\nhalf",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(name, err)
		}
		if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil { // the handler has begun, or has given up
			t.Fatal(name, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Contains(w.log.String(), "ended by the shutdown") {
		t.Errorf("a stream was still there after the grace: %s", w.log)
	}
}

func TestHooksMayTakeLongerThanTheBody(t *testing.T) {
	w := newWorld(t)
	w.pace = 300 * time.Millisecond
	w.judge = func(ctx context.Context, _ gate.Input) gate.Verdict {
		select {
		case <-ctx.Done():
			return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Timeout, Message: "cut short"}}
		case <-time.After(2 * w.pace):
			return gate.Verdict{Outcome: gate.Block, Reason: "took its time"}
		}
	}
	w.agent(t, "marker", gate.Stop, "ends")
	url, stop, ended := listen(t, w)
	if got := <-ask(t, url); got["reason"] != "took its time" {
		t.Errorf("got %v", got)
	}
	stop()
	<-ended
}

func TestKeptConnectionAfterALargeAnswer(t *testing.T) {
	w := newWorld(t)
	w.pace = 300 * time.Millisecond
	w.shelf.texts["s"] = strings.Repeat("x", 1<<20)
	url, stop, ended := listen(t, w)
	var dials atomic.Int64
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}}}
	for _, target := range []string{"/v1/sessions/s/transcript", "/healthz"} {
		resp, err := client.Get(url + target)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if dials.Load() != 1 {
			t.Errorf("%s: the connection was not kept", target)
		}
		time.Sleep(w.pace + 50*time.Millisecond) // a deadline that was left behind would end the connection
	}
	client.CloseIdleConnections()
	stop()
	<-ended
}

// brokenText is a transcript that cannot be read to its end.
type brokenText struct{ *shelf }

func (brokenText) Read(context.Context, string) (io.ReadCloser, int64, int64, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), errReader{})), 0, 0, nil
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("disk is gone") }

func TestHalfAnAnswerIsNotTakenForAWholeOne(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Transcripts = brokenText{} })
	url, stop, ended := listen(t, w)
	resp, err := http.Get(url + "/v1/sessions/s/transcript")
	if err == nil {
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err == nil {
		t.Error("the caller sees a clean end")
	}
	stop()
	<-ended
}
