package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"stopgate/cmd/internal/hookclient"
	"stopgate/gate"
	"stopgate/redact"
	"stopgate/server"
)

// remote are the evaluations of a running server.
type remote struct {
	apiClient
	app *app
}

// readTimeout is for one record with its payload, or one conversation.
const readTimeout = 2 * time.Minute

// get reads one answer by use, which must not keep it.
func (c apiClient) get(ctx context.Context, path string, use func(*http.Response) error) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusedBy(resp, hookclient.MaxAnswer)
	}
	return use(resp)
}

// getJSON reads an answer of at most maxRecord bytes.
func (c apiClient) getJSON(ctx context.Context, path string, into any) error {
	return c.get(ctx, path, func(resp *http.Response) error {
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxRecord+1))
		if err == nil && len(body) > maxRecord {
			err = &obstacle{Code: badRecord, Message: errLongRecord.Error()}
		} else if err == nil {
			err = json.Unmarshal(body, into)
		}
		if _, ok := errors.AsType[*obstacle](err); err == nil || ok {
			return err
		}
		return exit{exitUnreachable, fmt.Errorf("%s does not answer like a stopgate server: %w", c.base, err)}
	})
}

func (r remote) close() error { return nil }

func (r remote) size(int) int { return 0 }

func (r remote) repeated() (none repeats) { return none }

func (r remote) list(ctx context.Context, f gate.RecordFilter, limit int) iter.Seq2[found, error] {
	return pages(f, limit, func(f gate.RecordFilter) ([]gate.RecordSummary, string, error) {
		var answer struct {
			Value []gate.RecordSummary `json:"value"`
			Next  string               `json:"next"`
		}
		err := r.getJSON(ctx, "/v1/evaluations?"+queryOf(f), &answer)
		return answer.Value, answer.Next, err
	}, r.record)
}

func (r remote) record(ctx context.Context, id string) (rec gate.Record, err error) {
	err = r.getJSON(ctx, "/v1/evaluations/"+url.PathEscape(id), &rec)
	if gate.CodeOf(err) == gate.CodeNotFound {
		err = &obstacle{Code: gone, Message: "it was erased meanwhile"}
	}
	return rec, err
}

// queryOf is a filter as the list's parameters.
func queryOf(f gate.RecordFilter) string {
	v := url.Values{}
	set := func(name, text string) {
		if text != "" {
			v.Set(name, text)
		}
	}
	set("agent", f.Agent)
	set("session", f.Session)
	set("event", string(f.Event))
	set("decision", string(f.Decision))
	set("hook", f.Hook)
	set("cursor", f.Cursor)
	if f.DryRun != nil {
		set("dry_run", strconv.FormatBool(*f.DryRun))
	}
	if !f.Since.IsZero() {
		set("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		set("until", f.Until.UTC().Format(time.RFC3339Nano))
	}
	set("limit", strconv.Itoa(f.Limit))
	return v.Encode()
}

// conversation asks the server, which knows how much of it there was. What it
// cannot give is no reason to end. Who may not have it as it was, or asks a server
// that knows no such question, has it as the server shows it.
func (r remote) conversation(ctx context.Context, rec gate.Record, _ *gate.Event) (gate.Transcript, error) {
	path := "/v1/evaluations/" + url.PathEscape(rec.EvaluationID) + "/transcript"
	t, _, err := r.view(ctx, path+"?original=true")
	if code := gate.CodeOf(err); err == nil || code != gate.CodeForbidden && code != gate.CodeValidation {
		return t, err
	}
	t, marked, err := r.view(ctx, path)
	if err != nil || !marked {
		return t, err
	}
	return markedTranscript{t}, nil
}

// markedTranscript is a conversation with marks in the place of secrets.
type markedTranscript struct{ gate.Transcript }

// view reads a conversation; marked: there is a mark of a secret in it.
func (r remote) view(ctx context.Context, path string) (t gate.Transcript, marked bool, err error) {
	err = r.get(ctx, path, func(resp *http.Response) error {
		watched := &markWatcher{of: resp.Body}
		t, err = r.app.transcripts.View(ctx, watched, resp.Header.Get(server.TranscriptAsText) != "false")
		marked = watched.seen
		return err
	})
	return t, marked, err
}

// markWatcher is a text that is looked through for marks of secrets as it is read.
type markWatcher struct {
	of   io.Reader
	tail []byte // in which a mark may have begun
	seen bool
}

// longestMark is more than a mark has bytes: its name has at most 40.
const longestMark = 64

// Read implements [io.Reader].
func (w *markWatcher) Read(p []byte) (int, error) {
	n, err := w.of.Read(p)
	if !w.seen {
		w.tail = append(w.tail, p[:n]...)
		w.seen = redact.Marked(w.tail)
		w.tail = append(w.tail[:0], w.tail[max(0, len(w.tail)-longestMark):]...)
	}
	return n, err
}

func (r remote) answer(ctx context.Context, ev *gate.Event, since time.Time) (string, error) {
	if ev.TranscriptSession != "" {
		return "", errors.New("the server does not tell an answer apart")
	}
	return r.app.transcripts.AnswerMarked(ctx, ev, since)
}
