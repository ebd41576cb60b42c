package transcripts

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"stopgate/gate"
)

const metaName = "meta.json"

// maxMeta is more bytes than a commit record has.
const maxMeta = 64 << 10

// meta is the commit record of a session: which file is its view and how much
// of it counts. It is replaced as a whole, by rename.
type meta struct {
	View     string `json:"view"`
	Bytes    int64  `json:"bytes"`
	Newlines int64  `json:"newlines"`
	Open     bool   `json:"open"`  // the last line has no newline yet
	Marks    int64  `json:"marks"` // how many marks of the index count
	MarksCRC uint32 `json:"marks_crc"`
	Marked   int64  `json:"marked"`            // the last block that has a mark
	Plain    bool   `json:"plain"`             // all of it came as text, so the view is what was sent
	AsText   bool   `json:"as_text,omitempty"` // some of it was not rendered
	// Format of a host's session file, which is kept as it is and rendered for
	// each event; empty: the view is rendered already.
	Format string `json:"format,omitempty"`
	// Sent is of such a file whose secrets are hidden here: the [Tail] of what was sent.
	// Empty: it is kept as it was sent.
	Sent string `json:"sent,omitempty"`
	// Generation of the shared text that this is a copy of; 0: of none.
	Generation int64 `json:"generation,omitempty"`
}

func (m meta) size() Size {
	size := Size{Bytes: m.Bytes, Lines: m.Newlines}
	if m.Open {
		size.Lines++
	}
	return size
}

// readMeta is the session's commit record; fs.ErrNotExist if there is none.
func readMeta(dir string) (meta, error) {
	f, err := openOwn(filepath.Join(dir, metaName), os.O_RDONLY)
	if err != nil {
		return meta{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxMeta))
	if err != nil {
		return meta{}, err
	}
	var m meta
	if err := json.Unmarshal(b, &m); err != nil || m.View != filepath.Base(m.View) || m.Bytes < 0 || m.Marks < 0 || m.Marks > m.Bytes {
		return meta{}, errors.New("its commit record is damaged; upload it again")
	}
	return m, nil
}

// openCommitted opens the session's view as the commit record has it. A Replace
// may take the file away between the two steps; then the record is read again.
func openCommitted(dir string) (*os.File, meta, error) {
	for {
		m, err := readMeta(dir)
		if err != nil {
			return nil, meta{}, err
		}
		f, err := openOwn(filepath.Join(dir, m.View), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			if now, again := readMeta(dir); again != nil || now.View != m.View {
				continue
			}
			return nil, meta{}, errors.New("its view is missing; upload it again")
		}
		if err != nil {
			return nil, meta{}, err
		}
		if err := longEnough(f, m.Bytes); err != nil {
			f.Close()
			return nil, meta{}, err
		}
		return f, m, nil
	}
}

// openOwn opens a file of a session, which is none that a link leads to and no
// device: a directory that was moved here may be somebody else's work.
func openOwn(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%q is a link, not a file", path)
	}
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%q is not a file", path), err, f.Close())
	}
	return f, nil
}

func longEnough(f *os.File, want int64) error {
	st, err := f.Stat()
	if err == nil && st.Size() < want {
		err = fmt.Errorf("its view has %d of %d bytes; upload it again", st.Size(), want)
	}
	return err
}

// commitReplace makes the spooled view the session's. The caller is the
// session's only writer.
func (s *Store) commitReplace(ctx context.Context, k key, seen gate.Erasure, sp *spool) (meta, error) {
	m := meta{Plain: sp.plain, AsText: sp.asText, Format: sp.format, Sent: sp.sent}
	if s.shared != nil {
		state, err := s.shared.ReplaceText(ctx, k, seen, m.form(), sp.file, sp.index.bytes)
		if err != nil {
			return meta{}, err
		}
		m.Generation = state.Generation
	}
	return s.kept(m.grown("", sp), func() (meta, error) { return s.keep(k, m, sp) })
}

// kept is the session's record once it was kept here. Where it is shared, it is
// stored whatever becomes of the copy here, which is behind then: who is told of
// an error would send it again. Such a record has no View.
func (s *Store) kept(shared meta, keep func() (meta, error)) (meta, error) {
	m, err := keep()
	if err != nil && s.shared != nil {
		shared.View = ""
		return shared, nil
	}
	return m, err
}

// keep makes the spooled view the session's file. The caller is the session's
// only writer.
func (s *Store) keep(k key, m meta, sp *spool) (meta, error) {
	dir := s.sessionDir(k)
	if err := os.Mkdir(dir, 0o700); err == nil {
		err = syncDir(filepath.Dir(dir))
		if err != nil {
			return meta{}, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return meta{}, err
	}
	if err := sp.file.Sync(); err != nil {
		return meta{}, err
	}
	m.View = rand.Text() + ".txt"
	view := filepath.Join(dir, m.View)
	if err := os.Rename(sp.file.Name(), view); err != nil {
		return meta{}, err
	}
	if err := m.commit(dir, sp.index); err != nil {
		return meta{}, errors.Join(err, os.Remove(view))
	}
	sweep(dir, m)
	return m, syncDir(dir)
}

// commitAppend adds the spooled text to the session's view. The caller is the
// session's only writer.
func (s *Store) commitAppend(ctx context.Context, k key, seen gate.Erasure, sp *spool) (meta, error) {
	return s.commitFitting(ctx, k, seen, sp, func(meta) error { return nil })
}

// commitFitting is commitAppend to a view that fits says yes to; without one, to
// the zero value.
func (s *Store) commitFitting(ctx context.Context, k key, seen gate.Erasure, sp *spool, fits func(meta) error) (meta, error) {
	for {
		m, err := s.current(ctx, k)
		if err != nil {
			return meta{}, err
		}
		if err := fits(m); err != nil {
			return meta{}, err
		}
		if m.View == "" {
			m.Plain, m.Format = sp.plain, sp.format
		}
		if m.Format != sp.format {
			return meta{}, gate.Errorf(gate.CodeConflict, "the session's transcript has another form: replace it, or add what is of the same")
		}
		if err := s.behind(k, m, sp); err != nil {
			return meta{}, err
		}
		next, gap := m.with(sp)
		if m.Bytes+int64(len(gap))+sp.index.bytes > s.maxBytes {
			return meta{}, tooLarge(s.maxBytes)
		}
		if s.shared != nil {
			state := gate.TextState{Generation: m.Generation, Bytes: m.Bytes}
			now, err := s.shared.AppendText(ctx, k, seen, state, next.form(), gapped{gap, sp.file}, int64(len(gap))+sp.index.bytes)
			if errors.Is(err, gate.ErrTextChanged) {
				continue // another replica was quicker: after that
			}
			if err != nil {
				return meta{}, err
			}
			next.Generation = now.Generation
		}
		return s.kept(next.grown(gap, sp), func() (meta, error) { return s.extend(k, m, next, gap, sp) })
	}
}

// with is the session's record after the spooled text, but for its size, and
// what stands between the two: messages begin on a new line.
func (m meta) with(sp *spool) (next meta, gap string) {
	if m.Open && !sp.plain && sp.format == "" {
		gap = "\n"
	}
	next = m
	next.Plain, next.AsText, next.Sent = m.Plain && sp.plain, m.Plain || m.AsText || sp.asText, sp.sent
	return next, gap
}

// grown is the record's size after the spooled text.
func (m meta) grown(gap string, sp *spool) meta {
	m.Bytes += int64(len(gap)) + sp.index.bytes
	m.Newlines += int64(len(gap)) + sp.index.newlines
	if sp.index.bytes > 0 {
		m.Open = sp.index.open
	}
	return m
}

// extend writes the spooled text behind the session's view as m has it, and
// commits next.
func (s *Store) extend(k key, m, next meta, gap string, sp *spool) (meta, error) {
	if m.View == "" {
		return s.keep(k, next, sp)
	}
	dir := s.sessionDir(k)
	f, err := openOwn(filepath.Join(dir, m.View), os.O_RDWR)
	if err != nil {
		return meta{}, err
	}
	defer f.Close()
	if err := longEnough(f, m.Bytes); err != nil {
		return meta{}, err
	}
	// What a writer that was killed left behind its last commit goes first.
	if err := f.Truncate(m.Bytes); err != nil {
		return meta{}, err
	}
	x := indexer{bytes: m.Bytes, newlines: m.Newlines, open: m.Open, marked: m.Marked}
	err = writeBehind(f, &x, gap, sp)
	if err == nil {
		err = next.commit(dir, x)
	}
	if err != nil {
		return meta{}, errors.Join(err, f.Truncate(m.Bytes))
	}
	return next, syncDir(dir)
}

func writeBehind(f *os.File, x *indexer, gap string, sp *spool) error {
	if _, err := f.Seek(x.bytes, io.SeekStart); err != nil {
		return err
	}
	out := io.MultiWriter(f, x)
	if _, err := io.WriteString(out, gap); err != nil {
		return err
	}
	if _, err := io.Copy(out, io.NewSectionReader(sp.file, 0, sp.index.bytes)); err != nil {
		return err
	}
	return f.Sync()
}

// commit writes the new marks and then the record; with its rename the upload
// counts.
func (m *meta) commit(dir string, x indexer) error {
	m.Bytes, m.Newlines, m.Open, m.Marked = x.bytes, x.newlines, x.open, x.marked
	if err := m.writeMarks(dir, x.marks); err != nil {
		return err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(dir, metaName+".new"), b); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, metaName+".new"), filepath.Join(dir, metaName))
}

// sweep removes what no longer belongs to the session: the views it had, and
// what a writer that was killed left.
func sweep(dir string, m meta) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // the next Replace sweeps again
	}
	for _, e := range entries {
		switch e.Name() {
		case metaName, m.View, m.View + indexSuffix:
		default:
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func tooLarge(limit int64) *gate.Error {
	return gate.Errorf(gate.CodeBodyTooLarge, "the transcript is larger than %d bytes", limit)
}
