package transcripts

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"strings"

	"stopgate/gate"
)

// spool is an upload on its way: its view in a temporary file, indexed.
type spool struct {
	file   *os.File
	index  indexer
	plain  bool // it came as text
	asText bool // it is as it came: text, or a JSON string's
	// format of a part of a host's session file; empty: the view is rendered.
	format string
	sent   string // of such a part: what meta.Sent is with it
	begins []byte // of a text that is masked: its beginning, as it was sent
}

// discard removes the spool. Where a Replace has moved the file away, only its
// descriptor is closed.
func (sp *spool) discard() {
	sp.file.Close()
	_ = os.Remove(sp.file.Name())
}

// spool writes the view of an upload to a temporary file, a piece at a time.
func (s *Store) spool(ctx context.Context, contentType string, r io.Reader) (*spool, error) {
	read, plain, err := s.reader(contentType)
	if err != nil {
		return nil, err
	}
	asText := false
	begins := beginning{most: s.masks.Overlap()}
	sp, err := s.spoolView(plain, func(out *bufio.Writer) error {
		in := io.Reader(s.bounded(ctx, r))
		if plain {
			in = io.TeeReader(in, &begins)
		}
		asText, err = read(in, out)
		return err
	})
	if err != nil {
		return nil, err
	}
	sp.asText, sp.begins = asText, begins.text
	return sp, nil
}

// spoolView has a view written to a temporary file, bounded and indexed.
func (s *Store) spoolView(plain bool, write func(*bufio.Writer) error) (*spool, error) {
	f, err := s.temp()
	if err != nil {
		return nil, storing(err)
	}
	sp := &spool{file: f, plain: plain}
	out := bufio.NewWriterSize(&boundedView{spool: sp, limit: s.maxBytes}, block)
	if err := errors.Join(write(out), out.Flush()); err != nil {
		sp.discard()
		return nil, storing(err)
	}
	return sp, nil
}

// boundedView writes to a spool what its limit allows.
type boundedView struct {
	spool *spool
	limit int64
}

func (v *boundedView) Write(p []byte) (int, error) {
	if v.spool.index.bytes+int64(len(p)) > v.limit {
		return 0, tooLarge(v.limit)
	}
	n, err := v.spool.file.Write(p)
	_, _ = v.spool.index.Write(p[:n])
	return n, err
}

// input is an upload's body: bounded, given up when ctx ends, its errors told
// apart from those of our own disk.
type input struct {
	ctx         context.Context
	r           io.Reader
	left, limit int64
}

// bounded is what a body holds, up to what a transcript may have.
func (s *Store) bounded(ctx context.Context, r io.Reader) *input {
	return &input{ctx: ctx, r: r, left: s.maxBytes, limit: s.maxBytes}
}

func (in *input) Read(p []byte) (int, error) {
	if err := in.ctx.Err(); err != nil {
		return 0, gate.Errorf(gate.CodeValidation, "the upload was given up: %w", err)
	}
	// One byte more than is allowed tells too much from just enough.
	n, err := in.r.Read(p[:min(int64(len(p)), in.left+1)])
	in.left -= int64(n)
	if in.left < 0 {
		return 0, tooLarge(in.limit)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if e, ok := errors.AsType[*gate.Error](err); ok {
			return n, e
		}
		err = gate.Errorf(gate.CodeValidation, "the upload could not be read: %w", err)
	}
	return n, err
}

// reading turns a body into a view, and reports whether that is the body's text as
// it came.
type reading func(io.Reader, *bufio.Writer) (asText bool, err error)

// reader is what turns a body of a content type into a view.
func (s *Store) reader(contentType string) (read reading, plain bool, err error) {
	kind, params, err := mime.ParseMediaType(contentType)
	charset := strings.ToLower(params["charset"])
	if err != nil || (charset != "" && charset != "utf-8" && charset != "us-ascii") {
		kind = ""
	}
	switch kind {
	case "text/plain":
		return func(in io.Reader, out *bufio.Writer) (bool, error) { return true, s.copyText(in, out) }, true, nil
	case "application/x-ndjson":
		return func(in io.Reader, out *bufio.Writer) (bool, error) { return false, s.readNDJSON(in, out) }, false, nil
	case "application/json":
		return s.readJSON, false, nil
	}
	return nil, false, gate.Errorf(gate.CodeUnsupportedMediaType,
		"the content type %q is none of text/plain, application/x-ndjson and application/json, in UTF-8", short(contentType))
}

// readNDJSON renders one message per line. It is strict: a line that is none is
// an error that names it.
func (s *Store) readNDJSON(in io.Reader, out *bufio.Writer) error {
	lines := lineReader{r: bufio.NewReaderSize(in, block), most: s.maxMessage}
	var buf []byte
	for {
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLongLine):
			return messageTooLarge(fmt.Sprintf("line %d", lines.number), s.maxMessage)
		case err != nil:
			return err
		}
		if blank(line) {
			continue
		}
		buf, err = s.message(buf[:0], line)
		if err != nil {
			return atLine(lines.number, err)
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
}

// readJSON renders an array of messages, or writes a string as it is.
func (s *Store) readJSON(in io.Reader, out *bufio.Writer) (asText bool, err error) {
	leash := &leash{r: in, most: int64(s.maxMessage)}
	dec := json.NewDecoder(leash)
	leash.allow(0, "the first value")
	begin, err := dec.Token()
	if err != nil {
		return false, invalidJSON("the transcript", err)
	}
	switch begin := begin.(type) {
	case string:
		asText = true
		_, err = out.Write(s.masks.Text([]byte(begin)))
	case json.Delim:
		if begin != '[' {
			return false, gate.Errorf(gate.CodeValidation, "the transcript must be a string or an array of messages, not an object")
		}
		err = s.readArray(leash, dec, out)
	default:
		return false, gate.Errorf(gate.CodeValidation, "the transcript must be a string or an array of messages, not %v", begin)
	}
	if err != nil {
		return false, err
	}
	leash.allow(dec.InputOffset(), "what follows")
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("there is more after the value's end")
		}
		return false, invalidJSON("the transcript", err)
	}
	return asText, nil
}

func (s *Store) readArray(leash *leash, dec *json.Decoder, out *bufio.Writer) error {
	var buf []byte
	var raw json.RawMessage
	for n := 1; ; n++ {
		what := fmt.Sprintf("message %d", n)
		leash.allow(dec.InputOffset(), what)
		if !dec.More() {
			break
		}
		if err := dec.Decode(&raw); err != nil {
			return invalidJSON(what, err)
		}
		if len(raw) > s.maxMessage {
			return messageTooLarge(what, s.maxMessage)
		}
		var err error
		if buf, err = s.message(buf[:0], raw); err != nil {
			return inArray(n, err)
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil { // the closing bracket
		return invalidJSON("the transcript", err)
	}
	return nil
}

// leash bounds how much a json.Decoder holds in memory: while it reads a value,
// it asks for more only when all it has belongs to that value.
type leash struct {
	r     io.Reader
	most  int64
	read  int64
	until int64
	what  string
}

// allow lets the value that begins at off be read.
func (l *leash) allow(off int64, what string) { l.until, l.what = off+l.most, what }

func (l *leash) Read(p []byte) (int, error) {
	if l.read > l.until {
		return 0, messageTooLarge(l.what, int(l.most))
	}
	n, err := l.r.Read(p)
	l.read += int64(n)
	return n, err
}

func messageTooLarge(what string, limit int) *gate.Error {
	return gate.Errorf(gate.CodeBodyTooLarge, "%s is larger than %d bytes; longer text goes as text/plain", what, limit)
}

// invalidJSON words an error of the decoder; one of the reading itself stays.
func invalidJSON(what string, err error) error {
	if e, ok := errors.AsType[*gate.Error](err); ok {
		return e
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	if at, ok := errors.AsType[*json.SyntaxError](err); ok {
		return gate.Errorf(gate.CodeInvalidJSON, "%s is not valid JSON, at byte %d: %w", what, at.Offset, err)
	}
	return gate.Errorf(gate.CodeInvalidJSON, "%s is not valid JSON: %w", what, err)
}

func atLine(line int64, err error) error {
	e := gate.Errorf(gate.CodeOf(err), "line %d: %w", line, err)
	e.Details = []gate.Finding{{Severity: gate.SeverityError, Line: int(line), Message: err.Error()}}
	return e
}

func inArray(n int, err error) error {
	e := gate.Errorf(gate.CodeOf(err), "message %d: %w", n, err)
	e.Details = []gate.Finding{{Severity: gate.SeverityError, Path: fmt.Sprintf("[%d]", n-1), Message: err.Error()}}
	return e
}

// lineReader reads lines that end with \n, and with nothing else: U+2028 is a
// character like any other.
type lineReader struct {
	r      *bufio.Reader
	most   int
	number int64 // of the line that next gave last
	read   int64 // bytes of all lines so far
	buf    []byte
}

var errLongLine = errors.New("the line is too long")

// next is the next line without its newline, valid until the next call; io.EOF
// after the last. A line that is too long is read to its end and gives
// errLongLine.
func (l *lineReader) next() ([]byte, error) {
	l.number++
	l.buf = l.buf[:0]
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		l.read += int64(len(part))
		if err == nil && len(l.buf) == 0 && !long && len(part) <= l.most+1 {
			return part[:len(part)-1], nil // as it lies in the buffer
		}
		if long = long || len(l.buf)+len(part) > l.most+1; !long {
			l.buf = append(l.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case long:
			return nil, errLongLine
		case err != nil && len(l.buf) == 0:
			return nil, io.EOF
		}
		if n := len(l.buf); l.buf[n-1] == '\n' {
			return l.buf[:n-1], nil
		}
		return l.buf, nil
	}
}
