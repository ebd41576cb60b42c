package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

const (
	// smallBody is how much is read before a body is counted the first time:
	// nearly every event fits.
	smallBody = 64 << 10
	// newBuffer is what a small event or its answer fits into: as much is held by
	// each request that waits for a model.
	newBuffer = 1 << 10
	// keptBuffer is the largest that is kept for the next request.
	keptBuffer = 2 * smallBody
)

func (s *Server) buffer() *bytes.Buffer {
	if b, ok := s.buffers.Get().(*bytes.Buffer); ok {
		b.Reset()
		return b
	}
	return bytes.NewBuffer(make([]byte, 0, newBuffer))
}

func (s *Server) recycle(b *bytes.Buffer) {
	if b.Cap() <= keptBuffer {
		s.buffers.Put(b)
	}
}

// withBody reads the request's body and hands it to use. The body belongs to
// use until that returns; then the buffer serves another request. So an
// [gate.Event] may alias it: Decide returns after its last evaluator has, and
// observers and stores see the record before. After a panic somebody may still
// hold it, and it is left to the collector.
func (s *Server) withBody(r *http.Request, limit int64, use func(body []byte) error) error {
	if r.ContentLength > limit {
		return tooLargeError(limit) // whatever the hooks' failMode (fault G38)
	}
	buf := s.buffer()
	taken, err := s.fill(buf, r.Body, limit)
	defer s.held.Add(-taken)
	if err == nil {
		err = use(buf.Bytes())
	}
	s.recycle(buf)
	return err
}

// fill reads body into buf, in steps, so that a large body takes its share of
// the memory for all only as far as it has come.
func (s *Server) fill(buf *bytes.Buffer, body io.Reader, limit int64) (taken int64, err error) {
	for step := int64(smallBody); ; step = int64(buf.Len()) {
		_, err := io.CopyN(buf, body, min(step, limit+1-int64(buf.Len())))
		switch {
		case int64(buf.Len()) > limit:
			return taken, tooLargeError(limit)
		case errors.Is(err, io.EOF):
			if taken == 0 { // a small one: many of them are much, too
				taken = int64(buf.Len())
				err = s.overheld(s.held.Add(taken))
				return taken, err
			}
			return taken, nil
		case err != nil:
			return taken, brokenBody(err)
		}
		share := int64(buf.Len()) // which the next step may double
		taken += share
		if err := s.overheld(s.held.Add(share)); err != nil {
			return taken, err
		}
	}
}

// overheld is an error when all bodies together take more than they may.
func (s *Server) overheld(bytes int64) error {
	if bytes <= s.opt.Limits.BufferedBytes {
		return nil
	}
	return gate.Errorf(gate.CodeOverloaded, "server holds too much of large requests, try again")
}

// answer writes v as JSON.
func (s *Server) answer(c echo.Context, status int, v any) error {
	buf := s.buffer()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	err := s.send(c, status, "application/json; charset=utf-8", buf.Bytes())
	s.recycle(buf)
	return err
}

// send writes a whole body.
func (s *Server) send(c echo.Context, status int, contentType string, body []byte) error {
	w := c.Response()
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := s.paced(c).Write(body)
	return err
}

const (
	// drainBytes is twice what an evaluation may have: who is over the limit is
	// seldom far over it.
	drainBytes = 64 << 20
	// drainTime bounds what a caller that goes on sending can hold.
	drainTime = 2 * time.Second
)

// drain reads on after a request was answered unread, for a while: a caller that writes its
// whole body before it reads would otherwise meet a closed connection and never
// learn why. What comes then is dropped. A caller that waits for 100 Continue
// has sent nothing.
func (s *Server) drain(c echo.Context, body io.Reader) {
	if c.Request().ContentLength == 0 || c.Request().Header.Get("Expect") != "" {
		return
	}
	ctl := http.NewResponseController(c.Response().Writer)
	if ctl.Flush() != nil || ctl.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return // no connection behind it
	}
	_, _ = io.CopyN(io.Discard, body, drainBytes)
}

// pacedBody streams a body of any length, as long as it does not stand still:
// each step has its own deadline. Without it a caller that stops reading or
// writing would hold its handler for ever.
type pacedBody struct {
	ctl  *http.ResponseController
	w    io.Writer
	r    io.Reader
	pace time.Duration
	err  error // the first that reading met, other than the end
}

func (s *Server) paced(c echo.Context) *pacedBody {
	return &pacedBody{ctl: http.NewResponseController(c.Response().Writer), w: c.Response(), r: c.Request().Body, pace: s.pace}
}

// Read extends the deadline that the server set for the whole request. An
// error in setting one means a connection that has none.
func (p *pacedBody) Read(b []byte) (int, error) {
	_ = p.ctl.SetReadDeadline(time.Now().Add(p.pace))
	n, err := p.r.Read(b)
	if err != nil && err != io.EOF && p.err == nil {
		p.err = err
	}
	return n, err
}

// Write writes in steps that even a slow caller takes in time. The last
// deadline holds for what net/http sends after the handler, and is cleared by
// it before the connection's next request.
func (p *pacedBody) Write(b []byte) (written int, err error) {
	for len(b) > 0 && err == nil {
		step := b[:min(len(b), smallBody)]
		_ = p.ctl.SetWriteDeadline(time.Now().Add(p.pace))
		var n int
		n, err = p.w.Write(step)
		written += n
		b = b[len(step):]
	}
	return written, err
}
