package transcripts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"unicode/utf8"

	"stopgate/gate"
)

// Bounds of one answer. A judge pays for every byte it reads.
const (
	defaultLines = 200
	maxLines     = 1000
	// maxAnswer bounds an answer in bytes. It stays below what a judge is given
	// of one result, so that the last line, which says what was left out, always
	// reaches it.
	maxAnswer    = 30 << 10
	maxLineRunes = 2000 // shown of one line
)

// view is a [gate.Transcript]: the first size bytes of a file.
type view struct {
	path, raw string
	file      *os.File
	text      io.ReaderAt // file; tests count what is read
	size      int64
	known     *index              // nil: to be built when it is needed
	temporary bool                // path is ours and goes with Close
	copied    bool                // so is raw
	original  os.FileInfo         // of the file at raw, where that is not path; nil: none
	host      string              // the format of the session file it was rendered from; empty: none
	version   string              // of the host, as that file names it
	mark      gate.TranscriptMark // zero: of no file that stays
	lent      *hostView           // which has the file at path, and is given back on Close; nil: none
	asText    bool                // some of it is as it was sent, so that its markers may be anybody's

	store    *Store
	building sync.Mutex
	close    sync.Once
}

var (
	_ gate.Transcript = (*view)(nil)
	_ gate.ByHost     = (*view)(nil)
	_ gate.Marked     = (*view)(nil)
	_ gate.Recalling  = (*view)(nil)
)

func (s *Store) newView(v *view) *view {
	v.store, v.text = s, v.file
	return v
}

func (v *view) Path() string    { return v.path }
func (v *view) RawPath() string { return v.raw }

// WrittenBy is the host of a session file, and its version; see [gate.ByHost].
func (v *view) WrittenBy() (host, version string) { return v.host, v.version }

// Is reports whether a file that was opened at Path or RawPath is the view's
// own: whoever owns the directory may have put another there since.
func (v *view) Is(path string, about os.FileInfo) bool {
	if path == v.raw && v.original != nil {
		return os.SameFile(v.original, about)
	}
	own, err := v.file.Stat()
	return err == nil && os.SameFile(own, about)
}

// Close gives the file back, and removes a temporary one that is not kept.
func (v *view) Close() error {
	var err error
	v.close.Do(func() {
		err = v.file.Close()
		switch {
		case v.lent != nil:
			v.store.hostViews.give(v.lent)
		case v.temporary:
			err = errors.Join(err, removed(v.path))
		}
		if v.copied {
			err = errors.Join(err, removed(v.raw))
		}
	})
	return err
}

// removed removes a file that may be gone.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// maxFingerprint is what is summed: a tenth of a second's work.
const maxFingerprint = 64 << 20

// Fingerprint is the sum of the view's text; see [gate.Transcript].
func (v *view) Fingerprint(ctx context.Context) (sum [sha256.Size]byte, ok bool) {
	if v.size > maxFingerprint {
		return sum, false
	}
	h := sha256.New()
	if n, err := io.Copy(h, io.NewSectionReader(v.text, 0, v.size)); err != nil || n != v.size || ctx.Err() != nil {
		return sum, false
	}
	return [sha256.Size]byte(h.Sum(nil)), true
}

// grown reports whether the file holds more than the view.
func (v *view) grown() bool {
	st, err := v.file.Stat()
	return err == nil && st.Size() > v.size
}

// index is where the view's lines begin.
func (v *view) index(ctx context.Context) (*index, error) {
	v.building.Lock()
	defer v.building.Unlock()
	if v.known == nil {
		x, err := v.store.indexes.of(ctx, v.file, v.text, v.size)
		if err != nil {
			return nil, v.lost(err)
		}
		v.known = x
	}
	return v.known, nil
}

func (v *view) lost(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &gate.Failure{Code: gate.TranscriptUnreadable, Message: "the transcript could not be read: " + err.Error()}
}

// ReadFile is limit lines from the line offset; see [gate.Transcript]. By
// default 200 lines from the first; at most 2,000 lines and 64 KiB. A line of
// more than 2,000 characters is cut. Reading costs what is shown, wherever it
// lies.
func (v *view) ReadFile(ctx context.Context, offset, limit int) (string, error) {
	first, count := int64(max(offset, 1)), int64(limit)
	if limit < 1 {
		count = defaultLines
	}
	count = min(count, maxLines)
	x, err := v.index(ctx)
	if err != nil {
		return "", err
	}
	total := x.size.Lines
	switch {
	case total == 0:
		return "(the transcript is empty)\n", nil
	case first > total:
		return fmt.Sprintf("(line %d is beyond the end: the transcript has %d lines)\n", first, total), nil
	}
	p := v.page()
	off, err := p.seek(ctx, x, first)
	if err != nil {
		return "", v.lost(err)
	}
	var out []byte
	n := first
	for ; n <= total && n < first+count && len(out) < maxAnswer-4*maxLineRunes; n++ {
		out = append(strconv.AppendInt(out, n, 10), '\t')
		var end int64
		if end, err = p.lineEnd(ctx, x, n, off); err != nil {
			return "", v.lost(err)
		}
		if out, err = p.appendLine(out, off, end, off); err != nil {
			return "", v.lost(err)
		}
		off = end + 1
	}
	return string(out) + leftOut(first, n-1, total), nil
}

// leftOut says which lines are not among first to last.
func leftOut(first, last, total int64) string {
	before, after := span(1, first-1), span(last+1, total)
	switch {
	case before == "" && after == "":
		return ""
	case before == "":
		return fmt.Sprintf("(lines %s of %d not shown)\n", after, total)
	case after == "":
		return fmt.Sprintf("(lines %s of %d not shown)\n", before, total)
	}
	return fmt.Sprintf("(lines %s and %s of %d not shown)\n", before, after, total)
}

func span(from, to int64) string {
	switch {
	case from > to:
		return ""
	case from == to:
		return strconv.FormatInt(from, 10)
	}
	return fmt.Sprintf("%d–%d", from, to)
}

// page is a window on a view's text, moved where it is needed. It belongs to
// one call.
type page struct {
	text io.ReaderAt
	size int64
	at   int64
	buf  []byte
}

func (v *view) page() *page { return &page{text: v.text, size: v.size} }

// bytes are the up to n bytes at off, n at most a block; fewer only at the end.
// They are valid until the next call.
func (p *page) bytes(off, n int64) ([]byte, error) {
	n = min(n, p.size-off)
	if n <= 0 {
		return nil, nil
	}
	if off < p.at || off+n > p.at+int64(len(p.buf)) {
		if p.buf == nil {
			p.buf = make([]byte, 0, block)
		}
		p.at, p.buf = off, p.buf[:min(block, p.size-off)]
		if got, err := p.text.ReadAt(p.buf, off); got < len(p.buf) {
			p.buf = p.buf[:0]
			return nil, cutShort(err)
		}
	}
	return p.buf[off-p.at:][:n], nil
}

// ready is how many bytes at off can be had without reading; a block if none.
func (p *page) ready(off int64) int64 {
	if n := p.at + int64(len(p.buf)) - off; off >= p.at && n > 0 {
		return n
	}
	return block
}

// seek is where the line begins.
func (p *page) seek(ctx context.Context, x *index, line int64) (int64, error) {
	m := x.before(line)
	for m.line < line {
		end, err := p.lineEnd(ctx, x, m.line, m.off)
		if err != nil {
			return 0, err
		}
		m = mark{line: m.line + 1, off: end + 1}
	}
	return m.off, nil
}

// lineEnd is where the newline of the line that begins at off is, or the text's
// end. A line longer than a block is not read: the next one has a mark.
func (p *page) lineEnd(ctx context.Context, x *index, line, off int64) (int64, error) {
	var text []byte
	var err error
	for _, n := range []int64{p.ready(off), block} {
		if text, err = p.bytes(off, n); err != nil {
			return 0, err
		}
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			return off + int64(i), nil
		}
	}
	if next := x.before(line + 1); next.line == line+1 {
		return next.off - 1, nil
	}
	return p.newlineAfter(ctx, off+int64(len(text)))
}

// newlineAfter is where the first newline at or after off is, or the text's end.
func (p *page) newlineAfter(ctx context.Context, off int64) (int64, error) {
	for off < p.size {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		text, err := p.bytes(off, p.ready(off))
		if err != nil {
			return 0, err
		}
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			return off + int64(i), nil
		}
		off += int64(len(text))
	}
	return p.size, nil
}

// appendLine appends the line from start to end as a judge sees it, with its
// newline: visible, and cut to maxLineRunes round the byte at focus.
func (p *page) appendLine(out []byte, start, end, focus int64) ([]byte, error) {
	// A third of what is shown stands before the focus.
	from := max(start, min(focus-maxLineRunes/3, end-maxLineRunes))
	text, err := p.bytes(from, min(end-from, maxLineRunes*utf8.UTFMax))
	if err != nil {
		return nil, err
	}
	if from > start {
		for n := 0; n < utf8.UTFMax-1 && len(text) > 0 && !utf8.RuneStart(text[0]); n++ {
			text = text[1:]
		}
		out = append(out, "[…]"...)
	}
	shown := firstRunes(text, maxLineRunes)
	out = appendVisible(out, shown)
	if from > start || from+int64(len(text)) < end || len(shown) < len(text) {
		out = fmt.Appendf(out, "[… cut: the line has %d bytes]", end-start)
	}
	return append(out, '\n'), nil
}

// firstRunes is the longest prefix of at most n characters.
func firstRunes(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return text[:at]
}
