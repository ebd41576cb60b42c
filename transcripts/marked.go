package transcripts

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"stopgate/gate"
)

var _ gate.Marker = (*Store)(nil)

// Mark is how much of its file the view is; see [gate.Marked].
func (v *view) Mark() (gate.TranscriptMark, bool) { return v.mark, v.mark != gate.TranscriptMark{} }

// markOf knows the first size bytes of a file again. What cannot be read has a
// mark that nothing fits.
func markOf(f io.ReaderAt, size int64) gate.TranscriptMark {
	tail, _ := Tail(f, size)
	return gate.TranscriptMark{Bytes: size, Tail: tail}
}

// Mark is where the conversation of an event ends now, without reading it; see
// [gate.Marker]. Shared texts are not looked for: what is here may be an old copy.
func (s *Store) Mark(ev *gate.Event) (*gate.TranscriptMark, error) {
	session := cmp.Or(ev.TranscriptSession, ev.Session)
	var f *os.File
	var size int64
	var err error
	switch {
	case ev.TranscriptSession == "" && ev.TranscriptPath != "":
		if f, _, _, err = s.openConversation(ev); err == nil {
			defer f.Close()
			size, err = f.Seek(0, io.SeekEnd)
		}
	case session == "":
		return nil, nil
	case s.shared != nil:
		return nil, errors.New("transcripts: shared texts are not looked for")
	default:
		var m meta
		if f, m, err = openCommitted(s.sessionDir(keyOf(session))); err == nil {
			defer f.Close()
			size = m.Bytes
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, attaching(err)
	}
	mark := markOf(f, size)
	return &mark, nil
}

// errOther is a conversation that is not the one of then.
var errOther = errors.New("it is no longer what it was when this was judged: it has been shortened, or written anew")

// upTo is how much of a file that has now bytes is to be read: all of it, or what
// a mark says, if that is there as it was.
func upTo(mark *gate.TranscriptMark, f io.ReaderAt, now int64) (int64, error) {
	if mark == nil {
		return now, nil
	}
	if mark.Bytes < 0 || mark.Bytes > now {
		return 0, errOther
	}
	if tail, err := Tail(f, mark.Bytes); err != nil || tail != mark.Tail {
		return 0, errors.Join(err, errOther)
	}
	return mark.Bytes, nil
}

// sessionUpTo is as much of the session's own transcript as the event's mark says,
// in a file of its own: others go on adding to the session's.
func (s *Store) sessionUpTo(ctx context.Context, k key, ev *gate.Event) (*view, error) {
	f, m, err := openCommitted(s.sessionDir(k))
	if err != nil {
		return nil, errors.Join(errOther, err)
	}
	defer f.Close()
	size, err := upTo(ev.TranscriptMark, f, m.Bytes)
	if err != nil {
		return nil, err
	}
	if m.Format == "" {
		return s.copyUpTo(ctx, f, size, m)
	}
	return s.viewHostFile(ctx, hostViewKey{format: m.Format}, f, size, ev.FinalOutput)
}

// copyUpTo is a view of the first size bytes of another.
func (s *Store) copyUpTo(ctx context.Context, f io.ReaderAt, size int64, m meta) (*view, error) {
	in := s.bounded(ctx, io.NewSectionReader(f, 0, size))
	sp, err := s.spoolView(m.Plain, func(out *bufio.Writer) error { return s.copyText(in, out) })
	if err != nil {
		return nil, err
	}
	sp.asText = m.Plain || m.AsText
	v := s.temporary(sp)
	if m.Plain {
		v.raw = v.path
	}
	return v, nil
}

// copyRaw gives a rendered view the first size bytes of its host's file as they
// were, but for secrets that are hidden, for scripts that read them: the file itself
// holds more by now.
func (s *Store) copyRaw(ctx context.Context, v *view, f io.ReaderAt, size int64) error {
	in := s.bounded(ctx, io.NewSectionReader(f, 0, size))
	sp, err := s.spoolView(false, func(out *bufio.Writer) error {
		if s.masked() {
			return s.copyLines(in, out, false, &ending{})
		}
		return s.copyText(in, out)
	})
	if err != nil {
		return err
	}
	v.raw, v.copied = sp.file.Name(), true
	v.original, err = sp.file.Stat()
	return errors.Join(err, sp.file.Close())
}

// ReadMarked is the text of what an event's hooks could read of an uploaded
// conversation, up to the event's mark, and whether some of it is as it was sent
// (see [Store.View]). CodeNotFound: the mark, or the conversation, is not there;
// CodeConflict: it is no longer what it was.
func (s *Store) ReadMarked(ctx context.Context, ev *gate.Event) (text io.ReadCloser, asText bool, err error) {
	session := cmp.Or(ev.TranscriptSession, ev.Session)
	if ev.TranscriptMark == nil || session == "" {
		return nil, false, gate.Errorf(gate.CodeNotFound, "no conversation that was uploaded is known of this evaluation")
	}
	v, err := s.attachSession(ctx, keyOf(session), ev)
	if errors.Is(err, errOther) {
		code := gate.CodeConflict
		if errors.Is(err, fs.ErrNotExist) {
			code = gate.CodeNotFound
		}
		return nil, false, gate.Errorf(code, "the conversation of this evaluation is not there: %w", err)
	}
	if err != nil {
		return nil, false, gate.Errorf(gate.CodeInternal, "the transcript could not be read: %w", err)
	}
	return readCloser{io.NewSectionReader(v.file, 0, v.size), v}, v.asText, nil
}

// View is a conversation that another store has rendered, for one use. asText says
// that some of it is as it was sent, so that its markers may be anybody's.
func (s *Store) View(ctx context.Context, r io.Reader, asText bool) (gate.Transcript, error) {
	sp, err := s.spoolView(false, func(out *bufio.Writer) error { return s.copyText(s.bounded(ctx, r), out) })
	if err != nil {
		return nil, attaching(err)
	}
	sp.asText = asText
	return s.temporary(sp), nil
}

// AnswerMarked is [Store.Answer], or [Store.UploadedAnswer], of the conversation
// up to the event's mark, which is not waited for.
func (s *Store) AnswerMarked(ctx context.Context, ev *gate.Event, since time.Time) (string, error) {
	var f *os.File
	var err error
	format, now := ev.TranscriptFormat, int64(0)
	if session := ev.TranscriptSession; session != "" {
		var m meta
		f, m, err = openCommitted(s.sessionDir(keyOf(session)))
		format, now = m.Format, m.Bytes
	} else if f, err = s.openNamed(ev.TranscriptPath); err == nil {
		now, err = f.Seek(0, io.SeekEnd)
	}
	if f != nil {
		defer f.Close()
	}
	if err != nil {
		return "", attaching(err)
	}
	size, err := upTo(ev.TranscriptMark, f, now)
	if err != nil {
		return "", attaching(err)
	}
	h, err := newHostFile(f, size, format)
	if err != nil {
		return "", err
	}
	text, err := h.answerSince(ctx, since)
	if err != nil {
		err = attaching(err)
	}
	return text, err
}
