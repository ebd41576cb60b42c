package transcripts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// block is how far apart the marks of an index are: to find a line at most this
// much is read in vain, and 1 GiB of text has 256 KiB of marks.
const block = 64 << 10

// mark says that line begins at off.
type mark struct{ line, off int64 }

const markBytes = 16

// index knows where lines begin: for each block of the text but the first that
// holds a newline, the line after the first one. So it depends on the text
// alone, not on the pieces in which it came, and a line that is longer than a
// block always has a mark right behind it.
type index struct {
	marks []mark
	size  Size
}

// before is the last mark at or before the line.
func (x *index) before(line int64) mark {
	i, found := slices.BinarySearchFunc(x.marks, line, func(m mark, line int64) int { return cmp.Compare(m.line, line) })
	return x.at(i, found)
}

// beforeOffset is the last mark at or before the offset.
func (x *index) beforeOffset(off int64) mark {
	i, found := slices.BinarySearchFunc(x.marks, off, func(m mark, off int64) int { return cmp.Compare(m.off, off) })
	return x.at(i, found)
}

func (x *index) at(i int, found bool) mark {
	switch {
	case found:
		return x.marks[i]
	case i == 0:
		return mark{line: 1}
	}
	return x.marks[i-1]
}

// indexer makes an index of what is written to it. The first block needs no
// mark, so it counts as marked.
type indexer struct {
	bytes, newlines int64
	open            bool  // the last line has no newline yet
	marked          int64 // the last block that has a mark
	marks           []mark
}

func (x *indexer) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		b := x.bytes / block
		part := p[:min(int64(len(p)), (b+1)*block-x.bytes)]
		if b != x.marked {
			if i := bytes.IndexByte(part, '\n'); i >= 0 {
				x.marks = append(x.marks, mark{line: x.newlines + 2, off: x.bytes + int64(i) + 1})
				x.marked = b
			}
		}
		x.newlines += int64(bytes.Count(part, []byte("\n")))
		x.bytes += int64(len(part))
		x.open = part[len(part)-1] != '\n'
		p = p[len(part):]
	}
	return written, nil
}

func (x *indexer) index() *index {
	return &index{marks: x.marks, size: meta{Bytes: x.bytes, Newlines: x.newlines, Open: x.open}.size()}
}

// buildIndex reads a whole text.
func buildIndex(ctx context.Context, r io.ReaderAt, size int64) (*index, error) {
	var x indexer
	buf := make([]byte, 4*block)
	for x.bytes < size {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := r.ReadAt(buf[:min(int64(len(buf)), size-x.bytes)], x.bytes)
		if n == 0 {
			return nil, cutShort(err)
		}
		_, _ = x.Write(buf[:n])
	}
	return x.index(), nil
}

// cutShort is the error of a read that gave nothing where there was text.
func cutShort(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return errors.New("the file has become shorter")
	}
	return err
}

const indexSuffix = ".idx"

// writeMarks adds marks to the index file and to the record's count and sum.
func (m *meta) writeMarks(dir string, marks []mark) error {
	if len(marks) == 0 {
		return nil // a text of one block needs no file
	}
	b := encodeMarks(marks)
	f, err := openOwn(filepath.Join(dir, m.View+indexSuffix), os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, m.Marks*markBytes)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	m.Marks += int64(len(marks))
	m.MarksCRC = crc32.Update(m.MarksCRC, crc32.IEEETable, b)
	return nil
}

// readIndex is the index that the record vouches for; nil if the file is
// missing or is not the one, so that it has to be built anew.
func (m meta) readIndex(dir string) *index {
	if m.Marks == 0 {
		return &index{size: m.size()}
	}
	f, err := openOwn(filepath.Join(dir, m.View+indexSuffix), os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() < m.Marks*markBytes {
		return nil
	}
	b := make([]byte, m.Marks*markBytes)
	if _, err := io.ReadFull(f, b); err != nil || crc32.ChecksumIEEE(b) != m.MarksCRC {
		return nil
	}
	return &index{marks: decodeMarks(b), size: m.size()}
}

func encodeMarks(marks []mark) []byte {
	b := make([]byte, 0, len(marks)*markBytes)
	for _, m := range marks {
		b = binary.LittleEndian.AppendUint64(b, uint64(m.line))
		b = binary.LittleEndian.AppendUint64(b, uint64(m.off))
	}
	return b
}

func decodeMarks(b []byte) []mark {
	marks := make([]mark, 0, len(b)/markBytes)
	for ; len(b) >= markBytes; b = b[markBytes:] {
		marks = append(marks, mark{
			line: int64(binary.LittleEndian.Uint64(b)),
			off:  int64(binary.LittleEndian.Uint64(b[8:])),
		})
	}
	return marks
}

// indexCache keeps the indexes of files that have none on disk: named ones, and
// uploads whose index was lost.
type indexCache struct {
	mu    sync.Mutex
	known []cachedIndex // the latest last
}

type cachedIndex struct {
	key fileKey
	*index
}

// fileKey is a file's content as far as the file system tells it apart.
type fileKey struct {
	dev, ino uint64
	size     int64 // how much of it is the view
	mtime    time.Time
}

// cachedIndexes bounds the cache: 64 indexes of 1 GiB each are 16 MiB.
const cachedIndexes = 64

// of is the index of the first size bytes of f, built if it is not known. Two
// callers may build the same one; both are right.
func (c *indexCache) of(ctx context.Context, f *os.File, r io.ReaderAt, size int64) (*index, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	k := fileKey{size: size, mtime: st.ModTime()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		k.dev, k.ino = uint64(sys.Dev), sys.Ino //nolint:unconvert // Dev is narrower on other systems
	}
	if x := c.find(k); x != nil {
		return x, nil
	}
	x, err := buildIndex(ctx, r, size)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) == cachedIndexes {
		c.known = c.known[1:]
	}
	c.known = append(c.known, cachedIndex{k, x})
	return x, nil
}

func (c *indexCache) find(k fileKey) *index {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, known := range c.known {
		if known.key == k {
			c.known = append(slices.Delete(c.known, i, i+1), known)
			return known.index
		}
	}
	return nil
}
