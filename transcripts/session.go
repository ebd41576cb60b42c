package transcripts

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"stopgate/gate"
)

// Replace makes r's content the session's transcript. contentType is
// text/plain, application/x-ndjson or application/json (an array of messages,
// or a string). seen is the session's last erasure from before anything was done
// for the upload, of which nothing is kept after a later one; 0: it was not looked
// up, and nothing is compared.
//
// Errors are *[gate.Error]: CodeUnsupportedMediaType, CodeInvalidJSON,
// CodeValidation, CodeBodyTooLarge, [gate.ErrErased], and CodeInternal where the
// disk, or the store of erasures, failed.
// After an error the old transcript is untouched.
func (s *Store) Replace(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader) (Size, error) {
	return s.store(ctx, session, seen, contentType, r, s.commitReplace)
}

// Append adds r's content to the session's transcript, which it begins if there
// is none. Text is added byte by byte; messages begin on a new line. Errors are
// those of [Store.Replace]; after one the transcript is as before.
func (s *Store) Append(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader) (Size, error) {
	return s.store(ctx, session, seen, contentType, r, s.commitAppend)
}

// committing makes what was spooled the session's, whose only writer the caller is.
type committing func(ctx context.Context, k key, seen gate.Erasure, sp *spool) (meta, error)

func (s *Store) store(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader, commit committing) (Size, error) {
	return s.storeSpool(ctx, session, seen, func() (*spool, error) { return s.spool(ctx, contentType, r) }, commit)
}

// storeSpool takes an upload in, and commits it as the session's only writer.
func (s *Store) storeSpool(ctx context.Context, session string, seen gate.Erasure, take func() (*spool, error), commit committing) (Size, error) {
	if session == "" {
		return Size{}, gate.Errorf(gate.CodeValidation, "the session is empty")
	}
	sp, err := take()
	if err != nil {
		return Size{}, err
	}
	defer sp.discard()
	k := keyOf(session)
	unlock, err := s.writer(ctx, k)
	if err != nil {
		return Size{}, err
	}
	defer unlock()
	if err := s.unerased(ctx, session, seen); err != nil {
		return Size{}, storing(err)
	}
	m, err := commit(ctx, k, seen, sp)
	if err != nil {
		return Size{}, storing(err)
	}
	return m.size(), nil
}

// Read is the session's view from its start, and the size of what was uploaded.
// CodeNotFound if there is none.
func (s *Store) Read(ctx context.Context, session string) (io.ReadCloser, Size, error) {
	if err := ctx.Err(); err != nil {
		return nil, Size{}, err
	}
	dir := s.sessionDir(keyOf(session))
	if err := s.freshen(ctx, keyOf(session)); err != nil {
		return nil, Size{}, gate.Errorf(gate.CodeInternal, "the transcript could not be read: %w", err)
	}
	f, m, err := openCommitted(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Size{}, gate.Errorf(gate.CodeNotFound, "session %q has no transcript", short(session))
	case err != nil:
		return nil, Size{}, gate.Errorf(gate.CodeInternal, "the transcript could not be read: %w", err)
	}
	if m.Format == "" {
		return readCloser{io.NewSectionReader(f, 0, m.Bytes), f}, m.size(), nil
	}
	f.Close()
	v, err := s.viewUpload(ctx, keyOf(session), "")
	if err == nil && v == nil {
		err = errors.New("it was replaced just now")
	}
	if err != nil {
		return nil, Size{}, gate.Errorf(gate.CodeInternal, "the transcript could not be read: %w", err)
	}
	return readCloser{io.NewSectionReader(v.file, 0, v.size), v}, m.size(), nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// Stat is the size of the session's transcript, and whether there is one.
func (s *Store) Stat(ctx context.Context, session string) (Size, bool, error) {
	if err := s.freshen(ctx, keyOf(session)); err != nil {
		return Size{}, false, gate.Errorf(gate.CodeInternal, "the transcript could not be read: %w", err)
	}
	m, err := readMeta(s.sessionDir(keyOf(session)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Size{}, false, nil
	case err != nil:
		return Size{}, false, gate.Errorf(gate.CodeInternal, "the transcript could not be read: %w", err)
	}
	return m.size(), true, nil
}

// Has reports whether the session has a transcript, wherever it is; no copy is
// made.
func (s *Store) Has(ctx context.Context, session string) (bool, error) {
	k := keyOf(session)
	if s.shared != nil {
		state, err := s.shared.TextState(ctx, k)
		return state.Generation != 0, err
	}
	_, err := readMeta(s.sessionDir(k))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Erase removes the session's transcript; it is no error if there is none. Copies
// that other replicas have are not read any more, and are removed soon.
func (s *Store) Erase(ctx context.Context, session string) error {
	k := keyOf(session)
	unlock, err := s.writer(ctx, k)
	if err != nil {
		return err
	}
	defer unlock()
	if s.shared != nil {
		err = s.shared.EraseText(ctx, k)
	}
	if err := errors.Join(err, s.remove(k)); err != nil {
		return gate.Errorf(gate.CodeInternal, "the transcript could not be erased: %w", err)
	}
	return nil
}

// unerased is [gate.ErrErased] if the session was erased since seen. The caller is
// its only writer: an erasure that is not seen here has the transcript removed after
// that. Of shared ones their store says it.
func (s *Store) unerased(ctx context.Context, session string, seen gate.Erasure) error {
	if seen == 0 || s.erasure == nil || s.shared != nil {
		return nil
	}
	last, err := s.erasure(ctx, session)
	if err == nil && last > seen {
		return gate.ErrErased
	}
	return err
}

// remove takes a session's files away. The caller is the session's only writer.
func (s *Store) remove(k key) error {
	s.hostViews.forget(k)
	dir := s.sessionDir(k)
	// The commit record first: what is left after a crash is then no transcript.
	if err := os.Remove(filepath.Join(dir, metaName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

// writer waits until the caller is the only writer of the session, here and in
// other processes. The slot comes first: however many wait, one thread at most
// blocks in flock, and that no longer than another process's commit takes.
func (s *Store) writer(ctx context.Context, k key) (unlock func(), err error) {
	slot := s.writers[k[0]]
	select {
	case slot <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f, err := flock(filepath.Join(s.dir, "locks", hex.EncodeToString(k[:1])))
	if err != nil {
		<-slot
		return nil, storing(err)
	}
	return func() {
		f.Close()
		<-slot
	}, nil
}

// storing words a failure of the disk. An error that says what is wrong with
// the input stays itself.
func storing(err error) error {
	if e, ok := errors.AsType[*gate.Error](err); ok {
		return e
	}
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		return &gate.Error{Code: gate.CodeInternal, Message: "the transcript could not be stored: " + cause.Err.Error(), Err: err}
	}
	return gate.Errorf(gate.CodeInternal, "the transcript could not be stored: %w", err)
}

// short cuts foreign text for a message.
func short(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:most], len(text))
}
