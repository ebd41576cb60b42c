package transcripts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"stopgate/gate"
)

// Attach finds the conversation that belongs to an event; nil when there is
// none. What it returns must be closed.
//
// An inline transcript replaces the session's. It is kept for this event alone
// where there is no session, in a dry run, which changes nothing, and inside a
// sub-agent, whose conversation is not the session's; and where the session was
// erased since the event came, or nobody could say whether it was.
func (s *Store) Attach(ctx context.Context, ev *gate.Event) (gate.Transcript, error) {
	inline := bytes.TrimSpace(ev.InlineTranscript)
	var v *view
	var err error
	switch {
	case len(inline) > 0 && string(inline) != "null":
		v, err = s.attachInline(ctx, ev, inline)
	case ev.TranscriptSession != "":
		v, err = s.attachSession(ctx, keyOf(ev.TranscriptSession), ev)
	case ev.TranscriptPath != "":
		v, err = s.attachNamed(ctx, ev)
	case ev.Session != "":
		v, err = s.attachSession(ctx, keyOf(ev.Session), ev)
	}
	if err != nil {
		return nil, attaching(err)
	}
	if v == nil {
		return nil, nil
	}
	return v, nil
}

// attaching words an error for the gate: what the caller did wrong, or what
// went wrong here.
func attaching(err error) error {
	if e, ok := errors.AsType[*gate.Error](err); ok && e.Code != gate.CodeInternal {
		if e.Code == gate.CodeInvalidJSON || e.Code == gate.CodeBodyTooLarge {
			return &gate.Error{Code: gate.CodeValidation, Message: e.Message, Details: e.Details, Err: e}
		}
		return e
	}
	return &gate.Failure{Code: gate.TranscriptUnreadable, Message: err.Error()}
}

func (s *Store) attachInline(ctx context.Context, ev *gate.Event, inline []byte) (*view, error) {
	sp, err := s.spool(ctx, "application/json", bytes.NewReader(inline))
	if err != nil {
		return nil, inEvent(err)
	}
	if ev.Session == "" || ev.Dry || !ev.MainAgent() || s.erasure != nil && ev.Erasure == 0 {
		return s.temporary(sp), nil
	}
	v, err := s.keepInline(ctx, ev, sp)
	if errors.Is(err, gate.ErrErased) {
		return s.temporary(sp), nil
	}
	sp.discard()
	return v, err
}

// keepInline makes an inline transcript the session's.
func (s *Store) keepInline(ctx context.Context, ev *gate.Event, sp *spool) (*view, error) {
	k := keyOf(ev.Session)
	unlock, err := s.writer(ctx, k)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := s.unerased(ctx, ev.Session, ev.Erasure); err != nil {
		return nil, storing(err)
	}
	m, err := s.commitReplace(ctx, k, ev.Erasure, sp)
	if err == nil && m.View == "" { // it is shared, and not here
		_, err = s.current(ctx, k)
	}
	if err != nil {
		return nil, storing(err)
	}
	return s.viewSession(k)
}

// inEvent names the event's field in what is wrong with an inline transcript.
func inEvent(err error) error {
	bad, ok := errors.AsType[*gate.Error](err)
	if !ok {
		return err
	}
	details := slices.Clone(bad.Details)
	if len(details) == 0 {
		details = []gate.Finding{{Severity: gate.SeverityError, Message: bad.Message}}
	}
	for i := range details {
		details[i].Path = "transcript" + details[i].Path
	}
	return &gate.Error{Code: bad.Code, Message: bad.Message, Details: details, Err: bad}
}

// temporary is the view of a spool that ends with it.
func (s *Store) temporary(sp *spool) *view {
	return s.newView(&view{path: sp.file.Name(), file: sp.file, size: sp.index.bytes,
		known: sp.index.index(), temporary: true, asText: sp.asText})
}

// attachSession opens the session's own transcript; nil if it has none. Of a
// host's session file the event's answer is the last message.
func (s *Store) attachSession(ctx context.Context, k key, ev *gate.Event) (*view, error) {
	if err := s.freshen(ctx, k); err != nil {
		return nil, fmt.Errorf("the session's transcript could not be read: %w", err)
	}
	if ev.TranscriptMark != nil {
		return s.sessionUpTo(ctx, k, ev)
	}
	if v, err := s.viewUpload(ctx, k, ev.FinalOutput); err != nil || v != nil {
		return v, err
	}
	v, err := s.viewSession(k)
	if err != nil || v == nil || !v.grown() {
		return v, err
	}
	// Either a writer is at it, or one was killed and its bytes would be read
	// by scripts as if they counted. After our turn as a writer it is clean.
	v.Close()
	unlock, err := s.writer(ctx, k)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if v, err = s.viewSession(k); err != nil || v == nil {
		return v, err
	}
	if err := os.Truncate(v.path, v.size); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// viewSession opens what is committed. The view's path is a link of its own, so
// that a Replace meanwhile changes nothing for those who read by path.
func (s *Store) viewSession(k key) (*view, error) {
	dir := s.sessionDir(k)
	for {
		f, m, err := openCommitted(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the session's transcript could not be read: %w", err)
		}
		known := m.readIndex(dir)
		path := s.tempName()
		err = os.Link(filepath.Join(dir, m.View), path)
		if err != nil {
			f.Close()
			if errors.Is(err, fs.ErrNotExist) {
				if _, err := os.Stat(s.tmp); err == nil {
					continue // replaced or erased just now
				}
			}
			return nil, fmt.Errorf("the session's transcript could not be read: %w", err)
		}
		raw := ""
		if m.Plain {
			raw = path
		}
		return s.newView(&view{path: path, raw: raw, file: f, size: m.Bytes, known: known, temporary: true, asText: m.AsText || m.Plain, mark: markOf(f, m.Bytes)}), nil
	}
}

// Formats of a named transcript.
const (
	formatSniff  = ""       // {role, content} lines if it looks like them, else text
	formatText   = "text"   // as it is
	formatNDJSON = "ndjson" // {role, content} lines
)

func (s *Store) attachNamed(ctx context.Context, ev *gate.Event) (*view, error) {
	f, path, head, err := s.openConversation(ev)
	if err != nil {
		return nil, unreadable(path, err)
	}
	st, err := f.Stat()
	size := int64(0)
	if err == nil {
		size, err = upTo(ev.TranscriptMark, f, st.Size())
	}
	if err != nil {
		f.Close()
		return nil, unreadable(path, err)
	}
	format := ev.TranscriptFormat
	if format == formatSniff {
		format = s.sniff(io.NewSectionReader(f, 0, size))
	}
	if format == formatText && ev.TranscriptMark != nil {
		defer f.Close()
		return s.copyUpTo(ctx, f, size, meta{Plain: true})
	}
	if format == formatText {
		path = filepath.Clean(path) // as it was opened; the kernel takes a/.. otherwise
		return s.newView(&view{path: path, raw: path, file: f, size: size, asText: true, mark: markOf(f, size)}), nil
	}
	defer f.Close()
	var rendered *view
	if format == formatNDJSON {
		var sp *spool
		sp, err = s.spoolView(false, func(out *bufio.Writer) error { return s.renderHostFile(ctx, io.NewSectionReader(f, 0, size), out) })
		if err == nil {
			rendered = s.temporary(sp)
		}
	} else {
		of := hostViewKey{path: path, format: format, head: head}
		if ev.Session != "" && ev.TranscriptMark == nil { // what was is no step to what will be
			of.session = keyOf(ev.Session)
		}
		rendered, err = s.viewHostFile(ctx, of, f, size, ev.FinalOutput)
	}
	if failure, ok := errors.AsType[*gate.Failure](err); ok {
		return nil, failure
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	rendered.raw, rendered.original, rendered.mark = path, st, markOf(f, size)
	if ev.TranscriptMark != nil {
		if err := s.copyRaw(ctx, rendered, f, size); err != nil {
			rendered.Close()
			return nil, unreadable(path, err)
		}
	}
	return rendered, nil
}

// openConversation opens the file of an event's conversation, and gives its path
// and what its view begins with. Inside a sub-agent of Claude Code the event may
// name the parent's file: then the sub-agent's own is read, and until that is
// written the parent's, which the view says.
func (s *Store) openConversation(ev *gate.Event) (f *os.File, path, head string, err error) {
	path = ev.TranscriptPath
	if ev.TranscriptFormat == formatClaudeCode && !ev.MainAgent() && !ofSubAgent(path) {
		if own, ok := subAgentFile(path, ev.SubAgent); ok {
			f, err := s.openNamed(own)
			if err == nil || !errors.Is(err, fs.ErrNotExist) {
				return f, own, "", err
			}
		}
		head = parentsFileLine
	}
	f, err = s.openNamed(path)
	return f, path, head, err
}

// newHostFile is a session file's first size bytes.
func newHostFile(f io.ReaderAt, size int64, format string) (*hostFile, error) {
	read, ok := newHostFormat(format)
	if !ok {
		return nil, &gate.Failure{Code: gate.TranscriptUnreadable, Message: fmt.Sprintf("there is no reader for transcripts of the format %q", short(format))}
	}
	return &hostFile{host: format, format: read, masks: asItComes{}, file: f, size: size, most: maxHostLine}, nil
}

func unreadable(path string, err error) error {
	if e, ok := errors.AsType[*gate.Error](err); ok && e.Code == gate.CodeValidation {
		return e
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("the transcript %q could not be read: %w", short(path), err)
}

// sniff tells messages from text by the first lines: hosts leave broken and
// empty lines anywhere, so one message among them is enough.
func (s *Store) sniff(r io.Reader) string {
	const lines = 20
	in := lineReader{r: bufio.NewReaderSize(r, block), most: s.maxMessage}
	for range lines {
		line, err := in.next()
		if errors.Is(err, errLongLine) {
			continue
		}
		if err != nil {
			break
		}
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
			continue
		}
		if _, err := parseMessage(line); err == nil {
			return formatNDJSON
		}
	}
	return formatText
}

// renderHostFile renders a file that an agent host writes. Hosts are killed in
// the middle of a line and write entries of their own, so what is no message is
// left out and counted in the view's last line.
func (s *Store) renderHostFile(ctx context.Context, r io.Reader, out *bufio.Writer) error {
	in := lineReader{r: bufio.NewReaderSize(r, block), most: s.maxMessage}
	var buf []byte
	var skipped int64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			if skipped > 0 {
				_, err := out.WriteString(skippedLine(skipped))
				return err
			}
			return nil
		case errors.Is(err, errLongLine):
			skipped++
			continue
		case err != nil:
			return err
		}
		buf, err = s.message(buf[:0], line)
		if err != nil {
			skipped++
			continue
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
}
