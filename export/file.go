package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// FileOptions of [NewFile]. Path is required.
type FileOptions struct {
	Path string // the file that is written to; its directory must be there
	// MaxBytes is how large it becomes before it is put aside as PATH.TIME; 0: it
	// is never. A record that is larger is a file of its own.
	MaxBytes int64
	// Keep is how many files that were put aside are kept, the newest; 0: all.
	Keep int
}

// File is a [Sink] of lines. A line that was confirmed is on the disk, and none
// is half there for longer than until the next is written.
type File struct {
	opt FileOptions
	dir string
}

var _ Sink = (*File)(nil)

// NewFile opens the file once, so that what is wrong with it is known at the
// start.
func NewFile(opt FileOptions) (*File, error) {
	f := &File{opt: opt, dir: filepath.Dir(opt.Path)}
	file, err := f.open()
	if err != nil {
		return nil, err
	}
	return f, file.Close()
}

// Close has nothing to do: no file stays open.
func (f *File) Close() error { return nil }

// Send writes the lines, and returns when the disk has them.
func (f *File) Send(ctx context.Context, _ []gate.Record, lines [][]byte) (err error) {
	for len(lines) > 0 && err == nil {
		if err = ctx.Err(); err == nil {
			lines, err = f.write(lines)
		}
	}
	return err
}

// write writes as many lines as the file has room for, and answers the rest.
func (f *File) write(lines [][]byte) (rest [][]byte, err error) {
	file, err := f.open()
	if err != nil {
		return lines, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := wholeLines(file)
	if err != nil {
		return lines, err
	}
	var text []byte
	for rest = lines; len(rest) > 0 && f.room(size+int64(len(text)), rest[0]); rest = rest[1:] {
		text = append(text, rest[0]...)
	}
	if len(text) == 0 {
		return lines, f.putAside()
	}
	if _, err := file.Write(text); err != nil {
		return lines, errors.Join(err, file.Truncate(size)) // else the next time
	}
	return rest, file.Sync()
}

// room reports whether a line fits behind so many bytes.
func (f *File) room(size int64, line []byte) bool {
	return size == 0 || f.opt.MaxBytes == 0 || size+int64(len(line)) <= f.opt.MaxBytes
}

// open opens the file, makes it if there is none, and locks it: two who write
// would each cut the other's last line.
func (f *File) open() (*os.File, error) {
	file, err := os.OpenFile(f.opt.Path, os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = os.OpenFile(f.opt.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if err == nil {
			err = syncDir(f.dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("export file: %w", errors.Join(err, closeIf(file)))
	}
	about, err := file.Stat()
	if err == nil && !about.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", f.opt.Path)
	}
	if err == nil && unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		err = fmt.Errorf("%s is being written by another process", f.opt.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("export file: %w", errors.Join(err, file.Close()))
	}
	return file, nil
}

func closeIf(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// wholeLines cuts what stands behind the last newline, which nobody was told of:
// the rest of a line whose writer was killed. It answers the size.
func wholeLines(file *os.File) (int64, error) {
	about, err := file.Stat()
	if err != nil {
		return 0, err
	}
	end := about.Size()
	block := make([]byte, 64<<10)
	for at := end; at > 0; {
		n := min(at, int64(len(block)))
		at -= n
		if _, err := file.ReadAt(block[:n], at); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			if whole := at + int64(i) + 1; whole < end {
				return whole, file.Truncate(whole)
			}
			return end, nil
		}
	}
	if end > 0 {
		return 0, file.Truncate(0)
	}
	return 0, nil
}

// asideForm is the time in the name of a file that was put aside.
const asideForm = "20060102T150405.000000000Z"

// putAside gives the file its last name, and removes the oldest of those that
// are too many.
func (f *File) putAside() error {
	to := f.opt.Path + "." + time.Now().UTC().Format(asideForm)
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("export file: %s is there already", to)
	}
	if err := errors.Join(os.Rename(f.opt.Path, to), syncDir(f.dir)); err != nil {
		return fmt.Errorf("export file: %w", err)
	}
	if f.opt.Keep == 0 {
		return nil
	}
	aside, err := f.aside()
	if err != nil {
		return fmt.Errorf("export file: %w", err)
	}
	for _, name := range aside[:max(0, len(aside)-f.opt.Keep)] {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
			return fmt.Errorf("export file: %w", err)
		}
	}
	return nil
}

// aside lists the files that were put aside, oldest first.
func (f *File) aside() (names []string, err error) {
	entries, err := os.ReadDir(f.dir)
	for _, e := range entries {
		if at, ours := strings.CutPrefix(e.Name(), filepath.Base(f.opt.Path)+"."); ours && e.Type().IsRegular() {
			if _, err := time.Parse(asideForm, at); err == nil {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return names, err
}

// syncDir makes a new name in a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
