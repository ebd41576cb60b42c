package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// spooled takes an upload in before it becomes its session's writer, as package
// transcripts does.
type spooled struct{ *shelf }

func (s spooled) Replace(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader) (int64, int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return 0, 0, err
	}
	return s.shelf.Replace(ctx, session, seen, contentType, strings.NewReader(string(b)))
}

// meanwhile does something when it is first read from.
type meanwhile struct {
	io.Reader
	do func()
}

func (m *meanwhile) Read(b []byte) (int, error) {
	if m.do != nil {
		m.do()
		m.do = nil
	}
	return m.Reader.Read(b)
}

// A conversation whose upload had begun before its session was erased does not
// come back; and the session is not lost to the agent that goes on in it, since a
// host takes a 404 for "allow".
func TestAnErasureWinsOverAnUpload(t *testing.T) {
	w := newGuardedWorld(t, func(o *Options) {
		o.Transcripts = spooled{o.Transcripts.(*shelf)}
		o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true }
	})
	body := &meanwhile{strings.NewReader("what was to be forgotten\n"), func() { w.must(t, 204, "DELETE", "/v1/sessions/s-mine", "", as("admin")) }}
	r := httptest.NewRequest(http.MethodPut, "/v1/sessions/s-mine/transcript?agent=mine", body)
	r.Header.Set("Content-Type", "text/plain")
	r.Header.Set("Authorization", "Bearer mines-agent")
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, r)
	if answer.Code != http.StatusConflict {
		t.Errorf("the upload is answered %d %s, want a 409", answer.Code, answer.Body)
	}
	if owners := w.store.owners["s-mine"]; len(owners) != 0 {
		t.Errorf("the erased session belongs to %q", owners)
	}
	if rec := w.do("GET", "/v1/sessions/s-mine/transcript", "", as("admin")); rec.Code != http.StatusNotFound {
		t.Errorf("the erased conversation is read again: %d %q", rec.Code, rec.Body)
	}
	if rec := w.do("POST", "/v1/hooks/plain?agent=mine&session=s-mine", "{}", as("mines-agent")); rec.Code != http.StatusOK {
		t.Errorf("the agent's next event is not judged: %d %s", rec.Code, rec.Body)
	}
}

// patient says when what it takes in must be there.
type patient struct {
	*shelf
	until time.Time
}

func (p *patient) Append(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader) (int64, int64, error) {
	p.until, _ = ctx.Deadline()
	return p.shelf.Append(ctx, session, seen, contentType, r)
}

// An upload ends before a store forgets that its session was erased.
func TestAnUploadTakesLessThanADay(t *testing.T) {
	var p *patient
	w := newWorld(t, func(o *Options) {
		p = &patient{shelf: o.Transcripts.(*shelf)}
		o.Transcripts = p
	})
	w.must(t, 200, "POST", "/v1/sessions/s/transcript", "x\n", "Content-Type: text/plain")
	if left := time.Until(p.until); left <= 0 || left > 12*time.Hour {
		t.Errorf("it may take %s", left)
	}
}
