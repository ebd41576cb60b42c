package transcripts

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"stopgate/gate"
)

// form is what is kept of a record beside the shared text itself.
type form struct {
	Plain  bool   `json:"plain,omitempty"`
	AsText bool   `json:"as_text,omitempty"`
	Format string `json:"format,omitempty"`
	Sent   string `json:"sent,omitempty"`
}

func (m meta) form() string {
	b, _ := json.Marshal(form{m.Plain, m.AsText, m.Format, m.Sent}) // cannot fail
	return string(b)
}

// freshen brings the session's copy up to date, where transcripts are shared.
func (s *Store) freshen(ctx context.Context, k key) error {
	if s.shared == nil {
		return nil
	}
	state, err := s.shared.TextState(ctx, k)
	if err != nil {
		return err
	}
	m, err := readMeta(s.sessionDir(k))
	if state.Generation == 0 && errors.Is(err, fs.ErrNotExist) || err == nil && s.copies(k, m, state) {
		return nil
	}
	return s.update(ctx, k)
}

// update is freshen for a copy that is known to be behind.
func (s *Store) update(ctx context.Context, k key) error {
	unlock, err := s.writer(ctx, k)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = s.current(ctx, k)
	return err
}

// current is the session's record, up to date; the zero value if it has none.
// The caller is the session's only writer.
func (s *Store) current(ctx context.Context, k key) (meta, error) {
	m, err := readMeta(s.sessionDir(k))
	if errors.Is(err, fs.ErrNotExist) {
		m, err = meta{}, nil
	}
	if s.shared == nil {
		return m, err
	}
	if err != nil {
		m = meta{} // a copy that is damaged is made anew
	}
	for {
		state, err := s.shared.TextState(ctx, k)
		switch {
		case err != nil:
			return meta{}, err
		case state.Generation == 0:
			return meta{}, s.remove(k)
		case s.copies(k, m, state):
			return m, nil
		}
		known := gate.TextState{Generation: m.Generation, Bytes: m.Bytes}
		if state.Generation != m.Generation || state.Bytes <= m.Bytes || !s.intact(k, m) {
			m, known = meta{}, gate.TextState{Generation: state.Generation}
		}
		next, err := s.fetch(ctx, k, m, known)
		if !errors.Is(err, gate.ErrTextChanged) { // else it was replaced or erased just now
			return next, err
		}
	}
}

// copies reports whether a session's files are what is shared.
func (s *Store) copies(k key, m meta, state gate.TextState) bool {
	return m.Generation == state.Generation && m.Bytes == state.Bytes && m.form() == state.Form && s.intact(k, m)
}

// intact reports whether the view has all that its record says.
func (s *Store) intact(k key, m meta) bool {
	about, err := os.Stat(filepath.Join(s.sessionDir(k), m.View))
	return err == nil && about.Mode().IsRegular() && about.Size() >= m.Bytes
}

// fetch adds to the copy what it lacks; m's zero value: all of it.
func (s *Store) fetch(ctx context.Context, k key, m meta, known gate.TextState) (meta, error) {
	f, err := s.temp()
	if err != nil {
		return meta{}, err
	}
	sp := &spool{file: f}
	defer sp.discard()
	// What another replica took in is within its limits.
	out := bufio.NewWriterSize(&boundedView{spool: sp, limit: math.MaxInt64}, block)
	state, err := s.shared.ReadText(ctx, k, known, out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return meta{}, err
	}
	var about form
	if err := json.Unmarshal([]byte(state.Form), &about); err != nil {
		return meta{}, fmt.Errorf("its form is not known here: %w", err)
	}
	next := m
	next.Generation, next.Plain, next.AsText, next.Format, next.Sent = state.Generation, about.Plain, about.AsText, about.Format, about.Sent
	return s.extend(k, m, next, "", sp)
}

// gapped is a text with something before it.
type gapped struct {
	gap  string
	text io.ReaderAt
}

func (g gapped) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(g.gap)) {
		return g.text.ReadAt(p, off-int64(len(g.gap)))
	}
	n := copy(p, g.gap[off:])
	if n == len(p) {
		return n, nil
	}
	more, err := g.text.ReadAt(p[n:], 0)
	return n + more, err
}

const (
	// sweepErasedEvery is how long the copy of a session that was erased on
	// another replica may stay on this one's disk.
	sweepErasedEvery = time.Minute
	// askedAtOnce is how many copies are asked about in one question.
	askedAtOnce = 1000
)

// sweepingErased removes copies of what was erased, until the store is closed.
// What fails is tried again.
func (s *Store) sweepingErased() {
	s.every(sweepErasedEvery, func(ctx context.Context) { _ = s.sweepErased(ctx) })
}

func (s *Store) sweepErased(ctx context.Context) error {
	dir, err := os.Open(s.sessions)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(askedAtOnce)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var keys [][32]byte
		for _, name := range names {
			if b, err := hex.DecodeString(name); err == nil && len(b) == len(key{}) {
				keys = append(keys, [32]byte(b))
			}
		}
		known, err := s.shared.KnownTexts(ctx, keys)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if known[k] {
				continue
			}
			if err := s.update(ctx, k); err != nil {
				return err
			}
		}
	}
}
