package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// smallBody is the longest body that is small: nearly every event is, a Stop with
	// a long answer too, and as many as run at once may be.
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
func (s *Server) withBody(c echo.Context, limit int64, use func(body []byte) error) error {
	return s.takeIn(c, intake{limit: limit, use: use})
}

// intake is what becomes of a request's body.
type intake struct {
	places int64 // that it needs, beside room
	limit  int64 // of its bytes
	use    func(body []byte) error
	// refused is shown the beginning of a body that the gate does not take, as far as
	// it is here; nil: nobody wants to know. It lasts until refused returns.
	refused func(start []byte)
}

// takeIn reads a body as far as there is room for it; see withBody.
func (s *Server) takeIn(c echo.Context, in intake) error {
	body := s.newComing(c)
	defer body.guest.leave()
	buf := s.buffer()
	err := body.guest.take(placeRoom, in.places)
	switch {
	case err != nil:
	case c.Request().ContentLength > in.limit:
		err = tooLargeError(in.limit) // whatever the hooks' failMode (fault G38)
	default:
		err = fill(buf, body, in.limit)
	}
	switch {
	case err == nil:
		err = in.use(buf.Bytes())
	case in.refused != nil && hostsFailure(err) != nil:
		s.peek(c, buf)
		in.refused(buf.Bytes()[:min(buf.Len(), smallBody)])
	}
	s.recycle(buf)
	return err
}

// fill reads body into buf, in steps, so that a large body takes its share of
// the memory for all only as far as it has come.
func fill(buf *bytes.Buffer, body *coming, limit int64) error {
	for step := int64(smallBody + 1); ; step = int64(buf.Len()) {
		_, err := io.CopyN(buf, body, min(step, limit+1-int64(buf.Len())))
		switch {
		case int64(buf.Len()) > limit:
			return tooLargeError(limit)
		case errors.Is(err, io.EOF):
			if buf.Len() <= smallBody { // many of them are much, too
				if err := body.guest.take(smallRoom, int64(buf.Len())); err != nil {
					return err
				}
			}
			return body.guest.arrived()
		case err != nil:
			return cmp.Or(body.guest.arrived(), brokenBody(err))
		}
		// What the next step may double.
		if err := body.guest.take(largeRoom, int64(buf.Len())); err != nil {
			return err
		}
	}
}

// coming is a body on its way. The first smallBody bytes may take as long as the
// server lets a request; of a large one each further piece is due within pieceTime.
type coming struct {
	io.Reader
	guest *guest
	ctl   *http.ResponseController
	end   time.Time // of its time altogether
	read  int64
	due   int64 // how much is read when a piece is complete
}

// pieceTime is how long a large body may take for smallBody more of it: a network
// that loses packets takes a second or two. What does not come at all, or at less than 13 KiB/s,
// is not worth the room that it keeps from others.
const pieceTime = 5 * time.Second

func (s *Server) newComing(c echo.Context) *coming {
	ctl := http.NewResponseController(c.Response().Writer)
	from := callerOf(c).Credential
	if from == "" {
		from = addressOf(c.Request()).String()
	}
	stop := func() { _ = ctl.SetReadDeadline(time.Unix(1, 0)) } // an error means a connection that has no deadlines
	return &coming{Reader: c.Request().Body, guest: s.rooms.enter(from, stop), ctl: ctl, end: time.Now().Add(s.pace), due: smallBody}
}

// Read keeps the pace.
func (b *coming) Read(p []byte) (n int, err error) {
	n, err = b.Reader.Read(p)
	if b.read += int64(n); b.read < b.due || err != nil {
		return n, err
	}
	b.due = b.read + smallBody
	deadline := time.Now().Add(pieceTime)
	if deadline.After(b.end) {
		deadline = b.end
	}
	_ = b.ctl.SetReadDeadline(deadline)
	b.guest.progress()
	return n, nil
}

const (
	// peekTime is how long the beginning of a body is waited for that is not taken
	// in: what comes with its headers is here.
	peekTime = 100 * time.Millisecond
	// peeksAtOnce bounds the memory that is taken though there is no room: 16 MiB.
	peeksAtOnce = 256
)

// peek reads the beginning of a body, for the record of its refusal to say what
// was refused. A caller that waits for 100 Continue has sent nothing.
func (s *Server) peek(c echo.Context, buf *bytes.Buffer) {
	defer s.peeking.Add(-1)
	if s.peeking.Add(1) > peeksAtOnce || buf.Len() >= smallBody || c.Request().Header.Get("Expect") != "" {
		return
	}
	_ = http.NewResponseController(c.Response().Writer).SetReadDeadline(time.Now().Add(peekTime))
	_, _ = io.CopyN(buf, c.Request().Body, int64(smallBody-buf.Len())) // what does not come is not needed
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
