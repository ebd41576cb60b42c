package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// transcriptSize is the answer to an upload, and part of a session.
type transcriptSize struct {
	Session string `json:"session_id,omitempty"`
	Bytes   int64  `json:"bytes"`
	Lines   int64  `json:"lines"`
}

type store func(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader) (bytes, lines int64, err error)

// appendTranscript adds to a conversation: messages or text, or with format= a
// part of a host's own session file.
func (s *Server) appendTranscript(c echo.Context) error {
	part := FilePart{Format: c.QueryParam("format"), After: c.QueryParam("after"), Then: c.QueryParam("then")}
	if part.Format == "" {
		return s.upload(s.opt.Transcripts.Append)(c)
	}
	var err error
	if part.At, err = strconv.ParseInt(c.QueryParam("at"), 10, 64); err != nil || part.At < 0 {
		return gate.Errorf(gate.CodeValidation, "at is %q, want the byte of the file at which this part begins", c.QueryParam("at"))
	}
	return s.upload(func(ctx context.Context, session string, seen gate.Erasure, _ string, r io.Reader) (int64, int64, error) {
		return s.opt.Transcripts.AppendFile(ctx, session, seen, part, r)
	})(c)
}

// upload streams a conversation into the store, never whole in memory. Its own
// limit is not the one for evaluations (fault G37). It takes its time: if its session
// is erased meanwhile, neither the conversation nor the claim comes back.
func (s *Server) upload(into store) echo.HandlerFunc {
	return func(c echo.Context) error {
		session, err := segment(c, "session")
		if err != nil {
			return err
		}
		r, limit := c.Request(), s.opt.Limits.TranscriptBytes
		if r.ContentLength > limit {
			return tooLargeError(limit)
		}
		// A store remembers an erasure for a day, see [gate.Erasure].
		ctx, cancel := context.WithTimeout(r.Context(), s.taking)
		defer cancel()
		seen, err := s.opt.Store.Erasure(ctx, session)
		if err != nil {
			return err
		}
		if err := s.claim(c, session, seen); err != nil {
			return err
		}
		r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, limit)
		body := s.paced(c)
		size := transcriptSize{Session: session}
		size.Bytes, size.Lines, err = into(ctx, session, seen, mediaType(r), body)
		switch {
		case err == nil:
			return s.answer(c, http.StatusOK, size)
		case body.err != nil: // the caller's fault, not the store's
			return brokenBody(body.err)
		}
		return err
	}
}

// brokenBody says why a body could not be read to its end.
func brokenBody(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	return gate.Errorf(gate.CodeInvalidJSON, "request body broke off: %w", err)
}

func (s *Server) getTranscript(c echo.Context) error {
	session, err := segment(c, "session")
	if err != nil {
		return err
	}
	text, _, _, err := s.opt.Transcripts.Read(c.Request().Context(), session)
	if err != nil {
		return err
	}
	defer text.Close()
	return s.answerText(c, text)
}

func (s *Server) answerText(c echo.Context, text io.Reader) error {
	c.Response().Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.Response().WriteHeader(http.StatusOK)
	if c.Request().Method == http.MethodHead {
		return nil
	}
	_, err := io.Copy(s.paced(c), text)
	return err
}

// session is the body of GET /v1/sessions/{id}.
type session struct {
	gate.SessionState
	Transcript *transcriptSize `json:"transcript"` // null: none was uploaded
	Override   *gate.Override  `json:"override,omitempty"`
}

func (s *Server) getSession(c echo.Context) error {
	id, err := segment(c, "session")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	state, err := s.opt.Store.Session(ctx, id)
	known := err == nil
	if err != nil && gate.CodeOf(err) != gate.CodeNotFound {
		return err
	}
	if who := callerOf(c); who.Limited() && len(state.Last) > 0 { // hooks may have read what is another's
		state.Last, _, err = s.opt.Store.Records(ctx, gate.RecordFilter{Session: id, Agents: who.Agents, Limit: len(state.Last)})
		if err != nil {
			return err
		}
	}
	body := session{SessionState: state}
	body.Override, err = s.overrideOf(ctx, id)
	if err != nil && gate.CodeOf(err) != gate.CodeNotFound {
		return err
	}
	known = known || err == nil
	text, bytes, lines, textErr := s.opt.Transcripts.Read(ctx, id)
	switch {
	case textErr == nil:
		text.Close()
		body.Transcript = &transcriptSize{Bytes: bytes, Lines: lines}
	case gate.CodeOf(textErr) != gate.CodeNotFound:
		return textErr
	case !known:
		return gate.Errorf(gate.CodeNotFound, "session %q is not known", id)
	}
	body.Session = id
	if body.Agents == nil {
		body.Agents = []gate.AgentCounts{}
	}
	if body.ActiveHooks == nil {
		body.ActiveHooks = map[string]bool{}
	}
	if body.Last == nil {
		body.Last = []gate.RecordSummary{}
	}
	return s.answer(c, http.StatusOK, body)
}

// deleteSession erases what is known of a conversation, in every place even if
// one fails.
func (s *Server) deleteSession(c echo.Context) error {
	id, err := segment(c, "session")
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(c.Request().Context())
	err = errors.Join(s.opt.Store.EraseSession(ctx, id), s.opt.Transcripts.Erase(ctx, id))
	if s.opt.Forget != nil {
		s.opt.Forget(id)
	}
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
