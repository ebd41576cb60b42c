package transcripts

import (
	"bufio"
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// hostView is the view of a session file, which stays from one event of its
// session to the next: what the host has written since is read and rendered
// behind it. It belongs to one event at a time.
type hostView struct {
	of     hostViewKey
	host   *hostFile
	spool  *spool
	sums   sums // of what was read
	shown  []extent
	points []point // in which it can be continued, the last ones

	source   state       // of the session file, when it was opened
	own      state       // of the view's, when it was done
	erasures int         // of the cache, when it was taken
	expiry   *time.Timer // since no event has it; nil: one always had
}

// hostViewKey is whose view it is. The session keeps what one may see from all
// others, even where they name the same file.
type hostViewKey struct {
	session key
	path    string // empty: it was uploaded
	format  string
	head    string // what the view begins with
}

// point is where a message of the view ends.
type point struct {
	progress
	text indexer
}

// state tells whether a file was touched: nobody can set back a change time.
type state struct {
	dev, ino uint64
	size     int64
	changed  unix.Timespec
}

func stateOf(f *os.File) (state, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return state{}, err
	}
	return state{dev: uint64(st.Dev), ino: st.Ino, size: st.Size, changed: st.Ctim}, nil //nolint:unconvert // Dev is narrower on other systems
}

// continues reports whether the view can go on with a file: the one it was made
// from, which has only grown, while nobody wrote to the view. That the size
// stayed and the file was written to means that it was rewritten in its place.
func (v *hostView) continues(f *os.File, source state) bool {
	if source.dev != v.source.dev || source.ino != v.source.ino ||
		source.size < v.source.size || source.size == v.source.size && source.changed != v.source.changed {
		return false
	}
	own, err := stateOf(v.spool.file)
	return err == nil && own == v.own && v.sums.match(f)
}

// resume takes the view back to the last point that the conversation has in
// common with what was shown; the start, if there is none.
func (v *hostView) resume(out *bufio.Writer, spans []extent) (progress, error) {
	same := 0
	for same < min(len(spans), len(v.shown)) && spans[same] == v.shown[same] {
		same++
	}
	for len(v.points) > 0 && v.points[len(v.points)-1].messages > same {
		v.points = v.points[:len(v.points)-1]
	}
	var at point
	if len(v.points) > 0 {
		at = v.points[len(v.points)-1].clone()
	}
	v.shown = slices.Clone(spans)
	v.spool.index = at.text
	if err := v.spool.file.Truncate(at.text.bytes); err != nil {
		return progress{}, err
	}
	if _, err := v.spool.file.Seek(at.text.bytes, 0); err != nil {
		return progress{}, err
	}
	if len(v.points) == 0 {
		if _, err := out.WriteString(v.of.head); err != nil {
			return progress{}, err
		}
	}
	return at.progress, nil
}

// reached keeps a point if it is one of those from which a view is likely to go
// on: its end, or a little before it, since hosts replace their last messages
// and people go back by some.
func (v *hostView) reached(out *bufio.Writer, p progress, messages int) error {
	const most = 8
	switch messages - p.messages {
	case 0, 1, 4, 16, 64:
	default:
		return nil
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if len(v.points) == most {
		v.points = slices.Delete(v.points, 0, 1)
	}
	v.points = append(v.points, point{p, v.spool.index}.clone())
	return nil
}

// clone is a point that shares nothing that changes.
func (p point) clone() point {
	p.calls, p.room = maps.Clone(p.calls), nil
	p.text.marks = slices.Clip(p.text.marks)
	return p
}

// memory is what is held of the view between two events, in bytes, about. Ids
// and names are foreign text of any length.
func (v *hostView) memory() int64 {
	const line, piece = 128, 16
	n := line*int64(v.host.format.held()+len(v.shown)) + piece*int64(cap(v.sums.pieces)) + markBytes*int64(cap(v.spool.index.marks))
	for _, p := range v.points {
		n += int64(len(p.open) + len(p.role))
		for id, c := range p.calls {
			n += line + int64(len(id)+len(c.name))
		}
	}
	return n
}

func (v *hostView) discard() {
	if v.expiry != nil {
		v.expiry.Stop()
	}
	v.spool.discard()
}

// viewHostFile is the view of the first size bytes of a session file, continued
// from the last one where there is one. Nothing is kept of a key without session,
// and of a file that does not end with a whole line or its beginning.
func (s *Store) viewHostFile(ctx context.Context, of hostViewKey, f *os.File, size int64, final string) (*view, error) {
	v, err := s.hostViewFor(of, f, size)
	if err != nil {
		return nil, err
	}
	h := v.host
	out := bufio.NewWriterSize(&boundedView{spool: v.spool, limit: s.maxBytes}, block)
	if err = h.render(ctx, out, final); err == nil {
		err = out.Flush()
	}
	if err != nil {
		v.discard()
		return nil, storing(err)
	}
	shown := s.temporary(v.spool)
	shown.host, shown.version = h.host, h.format.version()
	if of.session != (key{}) && !h.mixed {
		if err := v.lend(shown); err != nil {
			v.discard()
			return nil, storing(err)
		}
	}
	return shown, nil
}

// hostViewFor is the view to go on with, or a new one.
func (s *Store) hostViewFor(of hostViewKey, f *os.File, size int64) (*hostView, error) {
	source, err := stateOf(f)
	if err != nil {
		return nil, storing(err)
	}
	source.size = size
	v, erasures := s.hostViews.take(of)
	if v != nil && !v.continues(f, source) {
		v.discard()
		v = nil
	}
	if v == nil {
		h, err := newHostFile(f, size, of.format)
		if err != nil {
			return nil, err
		}
		file, err := s.temp()
		if err != nil {
			return nil, storing(err)
		}
		h.masks = s.masks
		v = &hostView{of: of, host: h, spool: &spool{file: file}}
		h.view = v
	}
	v.host.file, v.host.size, v.source, v.erasures = f, size, source, erasures
	return v, nil
}

// lend has a view give this one back when it is closed. It reads by a file of
// its own, since this one's stays open.
func (v *hostView) lend(to *view) (err error) {
	v.sums.cut()
	v.host.file, v.host.buf = nil, nil
	if v.own, err = stateOf(v.spool.file); err != nil {
		return err
	}
	own, err := openOwn(v.spool.file.Name(), os.O_RDONLY)
	if err != nil {
		return err
	}
	to.file, to.text, to.lent = own, own, v
	return nil
}
