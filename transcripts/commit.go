package transcripts

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"stopgate/gate"
)

const metaName = "meta.json"

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
	b, err := os.ReadFile(filepath.Join(dir, metaName))
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
		f, err := os.Open(filepath.Join(dir, m.View))
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

func longEnough(f *os.File, want int64) error {
	st, err := f.Stat()
	if err == nil && st.Size() < want {
		err = fmt.Errorf("its view has %d of %d bytes; upload it again", st.Size(), want)
	}
	return err
}

// commitReplace makes the spooled view the session's. The caller is the
// session's only writer.
func (s *Store) commitReplace(k key, sp *spool) (meta, error) {
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
	m := meta{View: rand.Text() + ".txt", Plain: sp.plain, AsText: sp.asText, Format: sp.format}
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
func (s *Store) commitAppend(k key, sp *spool) (meta, error) {
	dir := s.sessionDir(k)
	m, err := readMeta(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s.commitReplace(k, sp)
	}
	if err != nil {
		return meta{}, err
	}
	if m.Format != sp.format {
		return meta{}, gate.Errorf(gate.CodeConflict, "the session's transcript has another form: replace it, or add what is of the same")
	}
	if m.Bytes+sp.index.bytes > s.maxBytes {
		return meta{}, tooLarge(s.maxBytes)
	}
	f, err := os.OpenFile(filepath.Join(dir, m.View), os.O_RDWR, 0)
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
	next, err := m.extend(dir, f, sp)
	if err != nil {
		return meta{}, errors.Join(err, f.Truncate(m.Bytes))
	}
	return next, syncDir(dir)
}

// extend writes the spooled text behind what f holds, and commits.
func (m meta) extend(dir string, f *os.File, sp *spool) (meta, error) {
	if _, err := f.Seek(m.Bytes, io.SeekStart); err != nil {
		return meta{}, err
	}
	x := indexer{bytes: m.Bytes, newlines: m.Newlines, open: m.Open, marked: m.Marked}
	out := io.MultiWriter(f, &x)
	if m.Open && !sp.plain && sp.format == "" {
		if _, err := out.Write([]byte("\n")); err != nil {
			return meta{}, err
		}
	}
	if _, err := io.Copy(out, io.NewSectionReader(sp.file, 0, sp.index.bytes)); err != nil {
		return meta{}, err
	}
	if err := f.Sync(); err != nil {
		return meta{}, err
	}
	m.Plain, m.AsText = m.Plain && sp.plain, m.Plain || m.AsText || sp.asText
	return m, m.commit(dir, x)
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
