package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"stopgate/gate"
)

func TestTranscripts(t *testing.T) {
	w := newWorld(t)
	const target = "/v1/sessions/s%2F1/transcript"
	sameJSON(t, "PUT", w.must(t, 200, "PUT", target, "one\n", "Content-Type: text/plain; charset=utf-8").Body.Bytes(), `{"session_id":"s/1","bytes":4,"lines":1}`)
	sameJSON(t, "POST", w.must(t, 200, "POST", target, "{}\n", "Content-Type: application/x-ndjson").Body.Bytes(), `{"session_id":"s/1","bytes":7,"lines":2}`)
	rec := w.must(t, 200, "GET", target, "")
	if got := rec.Body.String(); got != "one\n{}\n" {
		t.Errorf("GET %q", got)
	}
	if h := rec.Header(); h.Get("Content-Type") != "text/plain; charset=utf-8" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", h)
	}
	if rec := w.must(t, 200, "HEAD", target, ""); rec.Body.Len() != 0 {
		t.Errorf("HEAD has a body: %q", rec.Body)
	}
	sameJSON(t, "PUT again", w.must(t, 200, "PUT", target, `[]`).Body.Bytes(), `{"session_id":"s/1","bytes":2,"lines":0}`)
	if got := strings.Join(w.shelf.types, " "); got != "text/plain application/x-ndjson application/json" {
		t.Errorf("content types handed on: %s", got)
	}
	w.must(t, 415, "PUT", target, "x", "Content-Type: text/html")
}

// brokenOff is a body whose sender goes away.
type brokenOff struct{ sent bool }

func (b *brokenOff) Read(p []byte) (int, error) {
	if b.sent {
		return 0, io.ErrUnexpectedEOF
	}
	b.sent = true
	return copy(p, "half"), nil
}

func TestUploadThatBreaksOffIsNotOurFault(t *testing.T) {
	w := newWorld(t)
	for _, target := range []string{"/v1/sessions/s/transcript", "/api/v2/extendedAgent/agents/a"} {
		r, _ := http.NewRequest(http.MethodPut, "http://localhost"+target, &brokenOff{})
		r.Header.Set("Content-Type", typeJSON)
		if status := serve(w.Server, r); status != 400 {
			t.Errorf("%s: status %d", target, status)
		}
	}
	if w.log.Len() > 0 {
		t.Errorf("logged as ours: %s", w.log)
	}
}

func TestUploadOverItsLimit(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Limits.TranscriptBytes = 10 })
	chunked := newRequest("PUT", "/v1/sessions/s/transcript", "12345678901")
	chunked.ContentLength = -1
	said := newRequest("PUT", "/v1/sessions/s/transcript", "12345678901")
	said.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)) // must not be read
	for name, r := range map[string]*http.Request{"chunked": chunked, "said beforehand": said} {
		if status := serve(w.Server, r); status != 413 {
			t.Errorf("%s: status %d", name, status)
		}
	}
	w.must(t, 200, "PUT", "/v1/sessions/s/transcript", "1234567890")
}

func TestFaultG37LimitsAreEachRoutesOwn(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Limits.BodyBytes = 100 })
	big := strings.Repeat("x", 1<<20)
	w.must(t, 200, "PUT", "/v1/sessions/s/transcript", big, "Content-Type: text/plain")
	w.must(t, 202, "PUT", agents+"/a", `{"name":"a","owner":"`+big+`"}`)
	w.must(t, 413, "POST", "/v1/evaluate", `{"hook_event_name":"Stop","final_output":"`+big+`"}`)
}

func TestSessions(t *testing.T) {
	w := newWorld(t)
	w.judge = needsMarker
	w.agent(t, "marker", gate.Stop, "ends")
	w.must(t, 200, "POST", "/v1/evaluate", stop)
	sameJSON(t, "fault G04: rejections in a row are shown", w.must(t, 200, "GET", "/v1/sessions/s1", "").Body.Bytes(),
		`{"session_id":"s1","agents":[{"agent":"marker","stop_hook_active":true,"stop_rejection_count":1,"prompt_rejection_count":0}],"hooks":{},"last":[],"transcript":null}`)
	w.must(t, 200, "PUT", "/v1/sessions/s2/transcript", "a\n", "Content-Type: text/plain")
	sameJSON(t, "transcript only", w.must(t, 200, "GET", "/v1/sessions/s2", "").Body.Bytes(),
		`{"session_id":"s2","agents":[],"hooks":{},"last":[],"transcript":{"bytes":2,"lines":1}}`)
	for _, id := range []string{"s1", "s2", "never"} {
		w.must(t, 204, "DELETE", "/v1/sessions/"+id, "")
		w.must(t, 404, "GET", "/v1/sessions/"+id, "")
		w.must(t, 404, "GET", "/v1/sessions/"+id+"/transcript", "")
	}
}

// A part of a host's file is put where its at says, and nowhere else.
func TestUploadedPartSaysWhereItBegins(t *testing.T) {
	w := newWorld(t)
	const target = "/v1/sessions/s/transcript?format=claude-code&after=x"
	for _, c := range []struct {
		at     string
		status int
	}{{"&at=0", 200}, {"&at=1", 409}, {"&at=4", 200}, {"&at=4", 409}, {"&at=8", 200}, {"&at=-1", 400}, {"&at=x", 400}, {"", 400}} {
		w.must(t, c.status, "POST", target+c.at, "one\n", "Content-Type: application/x-ndjson")
	}
	if text := w.shelf.texts["s"]; text != "one\none\none\n" {
		t.Errorf("stored %q", text)
	}
}

// TestErasureIsTold to whoever remembers something of a session, once it is gone
// from the store.
func TestErasureIsTold(t *testing.T) {
	var told []string
	w := newWorld(t, func(o *Options) { o.Forget = func(session string) { told = append(told, session) } })
	w.must(t, 204, "DELETE", "/v1/sessions/a%2Fb", "")
	if len(told) != 1 || told[0] != "a/b" {
		t.Errorf("told of %q", told)
	}
}
