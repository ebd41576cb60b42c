package transcripts

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"stopgate/gate"
)

// Part is a part of a host's session file.
type Part struct {
	Format string // the host's protocol
	At     int64  // the byte of the file that it begins at
	After  string // the [Tail] before that
	// Then is the [Tail] before its end, by which the next part is known to fit where
	// secrets are hidden. Empty: it is not said, and where it cannot be known otherwise
	// the next part is refused.
	Then string
}

// AppendFile adds a part of a host's session file, byte by byte, to what the
// session has of it, and answers the size of that. The file is kept as it is
// and rendered for each event. From 0 on it replaces what was there.
//
// Where secrets are hidden (see [Masks]) only whole lines are taken, and the size says
// how far: a last line without its newline is left for the next part, unless it is an
// object already.
//
// Errors are those of [Store.Replace], and CodeConflict if something else than
// that is there: then the file is to be sent from its start.
func (s *Store) AppendFile(ctx context.Context, session string, seen gate.Erasure, p Part, r io.Reader) (Size, error) {
	if _, ok := newHostFormat(p.Format); !ok {
		return Size{}, gate.Errorf(gate.CodeValidation, "there is no reader for transcripts of the format %q", short(p.Format))
	}
	if p.At < 0 {
		return Size{}, gate.Errorf(gate.CodeValidation, "the part begins at byte %d", p.At)
	}
	var sent ending
	take := func() (*spool, error) {
		sp, err := s.spoolView(false, func(out *bufio.Writer) error {
			if s.masked() {
				return s.copyLines(s.bounded(ctx, r), out, true, &sent)
			}
			return s.copyText(s.bounded(ctx, r), out)
		})
		if err == nil {
			sp.format = p.Format
		}
		return sp, err
	}
	return s.storeSpool(ctx, session, seen, take, func(ctx context.Context, k key, seen gate.Erasure, sp *spool) (meta, error) {
		if p.At == 0 {
			if s.masked() {
				sp.sent = sent.sum()
			}
			return s.commitReplace(ctx, k, seen, sp)
		}
		return s.commitFitting(ctx, k, seen, sp, func(m meta) (err error) {
			if m.Format != p.Format || m.Bytes != p.At {
				return gate.Errorf(gate.CodeConflict, "%d bytes of this file are here, not %d: send it from its start", m.Bytes, p.At)
			}
			switch {
			case s.masked() != (m.Sent != ""):
				return gate.Errorf(gate.CodeConflict, "the file was kept before it was said whether secrets are: send it from its start")
			case s.masked():
				sp.sent, err = s.sentThen(k, m, p, &sent)
				return err
			}
			return s.endsWith(k, p.At, p.After)
		})
	})
}

// errOtherFile: two files of one session would become one that nobody wrote.
func errOtherFile() *gate.Error {
	return gate.Errorf(gate.CodeConflict, "another file is here: send it from its start")
}

// endsWith reports, as an error, that the session's file has another tail.
func (s *Store) endsWith(k key, size int64, tail string) error {
	f, _, err := openCommitted(s.sessionDir(k))
	if err != nil {
		return err
	}
	defer f.Close()
	if have, err := Tail(f, size); err != nil || have != tail {
		return errors.Join(err, errOtherFile())
	}
	return nil
}

// notKnown is a sum that no file has.
const notKnown = "not known"

// sentThen is what meta.Sent is after a part, if that goes on where the file ends as
// it was sent. The file here has other bytes than that; but where its end has no
// secret it has the same, which the sum shows.
func (s *Store) sentThen(k key, m meta, p Part, sent *ending) (string, error) {
	if m.Sent != p.After {
		return "", errOtherFile()
	}
	if len(sent.text) == 0 {
		return m.Sent, nil
	}
	if len(sent.text) == tailBytes {
		return sent.sum(), nil
	}
	before, err := s.storedEnd(k, m.Bytes, tailBytes)
	if err != nil {
		return "", err
	}
	stored := ending{text: before}
	switch {
	case stored.sum() == m.Sent:
		stored.add(sent.text)
		return stored.sum(), nil
	case !sent.left && len(p.Then) == len(m.Sent):
		return p.Then, nil
	}
	return notKnown, nil
}

// ending is what a file ends with, as far as its [Tail] goes.
type ending struct {
	text []byte
	left bool // more was sent, and not taken
}

func (e *ending) add(p []byte) {
	if len(p) >= tailBytes {
		e.text = append(e.text[:0], p[len(p)-tailBytes:]...)
		return
	}
	e.text = append(e.text, p...)
	if over := len(e.text) - tailBytes; over > 0 {
		e.text = append(e.text[:0], e.text[over:]...)
	}
}

func (e *ending) sum() string {
	sum := sha256.Sum256(e.text)
	return hex.EncodeToString(sum[:])
}

// tailBytes are enough to tell two files apart: their last messages.
const tailBytes = 4 << 10

// Tail is the sum, as hexadecimal digits, of the last 4 KiB before the byte size
// of a file.
func Tail(f io.ReaderAt, size int64) (string, error) {
	from := max(size-tailBytes, 0)
	h := sha256.New()
	if n, err := io.Copy(h, io.NewSectionReader(f, from, size-from)); err != nil || n != size-from {
		return "", errors.Join(err, io.ErrUnexpectedEOF)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// viewUpload renders the host's session file that was uploaded for a session;
// nil if it has none.
func (s *Store) viewUpload(ctx context.Context, k key, final string) (*view, error) {
	f, m, err := s.openUpload(k)
	if err != nil || f == nil {
		return nil, err
	}
	defer f.Close()
	v, err := s.viewHostFile(ctx, hostViewKey{session: k, format: m.Format}, f, m.Bytes, final)
	if err == nil {
		v.mark = markOf(f, m.Bytes)
	}
	return v, err
}

// openUpload opens the host's session file of a session; nil if it has none.
func (s *Store) openUpload(k key) (*os.File, meta, error) {
	f, m, err := openCommitted(s.sessionDir(k))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, meta{}, nil
	}
	if err != nil {
		return nil, meta{}, err
	}
	if m.Format == "" {
		f.Close()
		return nil, meta{}, nil
	}
	return f, m, nil
}

// UploadedAnswer is [Store.Answer] of a session file that was uploaded. It waits
// for nothing: who uploads sends the file when it is complete.
func (s *Store) UploadedAnswer(ctx context.Context, session string, since time.Time) (string, error) {
	if err := s.freshen(ctx, keyOf(session)); err != nil {
		return "", attaching(err)
	}
	f, m, err := s.openUpload(keyOf(session))
	if err == nil && f == nil {
		err = errNoAnswer
	}
	if err != nil {
		return "", attaching(err)
	}
	defer f.Close()
	h, err := newHostFile(f, m.Bytes, m.Format)
	if err != nil {
		return "", attaching(err)
	}
	text, err := h.answerSince(ctx, since)
	if err != nil {
		return "", attaching(err)
	}
	return text, nil
}
