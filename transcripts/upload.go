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

// AppendFile adds a part of a host's session file, byte by byte, to what the
// session has of it, and answers the size of that. The file is kept as it is
// and rendered for each event. format is the host's protocol. The part begins
// at the byte at, and after is the [Tail] before it; from 0 on it replaces what
// was there.
//
// Errors are those of [Store.Replace], and CodeConflict if something else than
// that is there: then the file is to be sent from its start.
func (s *Store) AppendFile(ctx context.Context, session string, seen gate.Erasure, format string, at int64, after string, r io.Reader) (Size, error) {
	if _, ok := newHostFormat(format); !ok {
		return Size{}, gate.Errorf(gate.CodeValidation, "there is no reader for transcripts of the format %q", short(format))
	}
	if at < 0 {
		return Size{}, gate.Errorf(gate.CodeValidation, "the part begins at byte %d", at)
	}
	take := func() (*spool, error) {
		sp, err := s.spoolView(false, func(out *bufio.Writer) error {
			return copyText(&input{ctx: ctx, r: r, left: s.maxBytes, limit: s.maxBytes}, out)
		})
		if err == nil {
			sp.format = format
		}
		return sp, err
	}
	return s.storeSpool(ctx, session, seen, take, func(ctx context.Context, k key, seen gate.Erasure, sp *spool) (meta, error) {
		if at == 0 {
			return s.commitReplace(ctx, k, seen, sp)
		}
		return s.commitFitting(ctx, k, seen, sp, func(m meta) error {
			if m.Format != format || m.Bytes != at {
				return gate.Errorf(gate.CodeConflict, "%d bytes of this file are here, not %d: send it from its start", m.Bytes, at)
			}
			return s.endsWith(k, at, after)
		})
	})
}

// endsWith reports, as an error, that the session's file has another tail: two
// files of one session would become one that nobody wrote.
func (s *Store) endsWith(k key, size int64, tail string) error {
	f, _, err := openCommitted(s.sessionDir(k))
	if err != nil {
		return err
	}
	defer f.Close()
	if have, err := Tail(f, size); err != nil || have != tail {
		return errors.Join(err, gate.Errorf(gate.CodeConflict, "another file is here: send it from its start"))
	}
	return nil
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
