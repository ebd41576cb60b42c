package transcripts

import (
	"bufio"
	"context"
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
// at the byte at; from 0 on it replaces what was there.
//
// Errors are those of [Store.Replace], and CodeConflict if something else than
// at bytes of this format are there: then the file is to be sent from its start.
func (s *Store) AppendFile(ctx context.Context, session, format string, at int64, r io.Reader) (Size, error) {
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
	return s.storeSpool(ctx, session, take, func(k key, sp *spool) (meta, error) {
		if at == 0 {
			return s.commitReplace(k, sp)
		}
		m, err := readMeta(s.sessionDir(k))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return meta{}, err
		}
		if m.Format != format || m.Bytes != at {
			return meta{}, gate.Errorf(gate.CodeConflict, "%d bytes of this file are here, not %d: send it from its start", m.Bytes, at)
		}
		return s.commitAppend(k, sp)
	})
}

// viewUpload renders the host's session file that was uploaded for a session;
// nil if it has none.
func (s *Store) viewUpload(ctx context.Context, k key, final string) (*view, error) {
	f, h, err := s.openUpload(k)
	if err != nil || h == nil {
		return nil, err
	}
	defer f.Close()
	sp, err := s.spoolView(false, func(out *bufio.Writer) error { return h.render(ctx, out, final) })
	if err != nil {
		return nil, err
	}
	return s.temporary(sp, ""), nil
}

// openUpload opens the host's session file of a session; nil if it has none.
func (s *Store) openUpload(k key) (*os.File, *hostFile, error) {
	f, m, err := openCommitted(s.sessionDir(k))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if m.Format == "" {
		f.Close()
		return nil, nil, nil
	}
	h, err := newHostFile(f, m.Bytes, m.Format)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, h, nil
}

// UploadedAnswer is [Store.Answer] of a session file that was uploaded. It waits
// for nothing: who uploads sends the file when it is complete.
func (s *Store) UploadedAnswer(ctx context.Context, session string, since time.Time) (string, error) {
	f, h, err := s.openUpload(keyOf(session))
	if err == nil && h == nil {
		err = errNoAnswer
	}
	if err != nil {
		return "", attaching(err)
	}
	defer f.Close()
	text, err := h.answerSince(ctx, since)
	if err != nil {
		return "", attaching(err)
	}
	return text, nil
}
