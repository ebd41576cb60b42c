package server

import (
	"context"
	"io"
	"strings"
	"testing"

	"stopgate/gate"
)

// elsewhere reads a record's conversation where it was uploaded, as package
// transcripts does.
type elsewhere struct{ *shelf }

func (s elsewhere) ReadFor(ctx context.Context, r gate.Record, original bool) (io.ReadCloser, bool, error) {
	if r.Asked != nil && r.Asked.Transcript != nil && r.Asked.Transcript.Session != "" {
		r.Session = r.Asked.Transcript.Session
	}
	return s.shelf.ReadFor(ctx, r, original)
}

// An evaluation whose conversation was uploaded under another agent's session (by
// somebody who is not limited, with transcript= in a host's URL) is as closed to
// the limited as that session: its reasons quote it, and its conversation is it.
func TestAnEvaluationShowsNoConversationOfOthers(t *testing.T) {
	for _, session := range []string{"", "s-mine"} {
		w := newGuardedWorld(t, func(o *Options) { o.Transcripts = elsewhere{o.Transcripts.(*shelf)} })
		w.store.last = true
		w.must(t, 200, "GET", "/v1/evaluations/ev-0001", "", as("mine"))
		for i := range w.store.records {
			if r := &w.store.records[i]; r.EvaluationID == "ev-0001" {
				r.Session, r.Asked = session, &gate.Asked{Transcript: &gate.TranscriptMark{Session: "s-theirs", Bytes: 17}}
			}
		}
		for _, path := range []string{"", "/transcript"} {
			if rec := w.do("GET", "/v1/evaluations/ev-0001"+path, "", as("mine")); rec.Code != 404 || strings.Contains(rec.Body.String(), "secret of theirs") {
				t.Errorf("in session %q: GET …%s: %d %.200s", session, path, rec.Code, rec.Body)
			}
		}
		for _, path := range []string{"/v1/evaluations", "/v1/evaluations/export", "/v1/sessions/s-mine"} {
			if strings.Contains(w.must(t, 200, "GET", path, "", as("mine")).Body.String(), "ev-0001") {
				t.Errorf("in session %q: it is in %s", session, path)
			}
			if session == "" && strings.Contains(path, "sessions") {
				continue
			}
			if !strings.Contains(w.must(t, 200, "GET", path, "", as("read")).Body.String(), "ev-0001") {
				t.Errorf("in session %q: it is not in %s for one who is not limited", session, path)
			}
		}
		w.store.owners["s-theirs"] = nil // erased, or forgotten: the reasons quote it still
		w.must(t, 404, "GET", "/v1/evaluations/ev-0001", "", as("mine"))
		w.store.owners["s-theirs"] = []string{"mine"}
		w.must(t, 200, "GET", "/v1/evaluations/ev-0001", "", as("mine"))
	}
}
