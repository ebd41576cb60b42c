// Package regular opens files that somebody names and somebody else may have put
// there: a named pipe or a device in the place of one is an error, not a wait.
package regular

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// Open opens a regular file for reading, links followed. Its errors name the
// path.
func Open(path string) (*os.File, error) { return Check(os.OpenFile(path, How, 0)) }

// How opens a file so that a named pipe does not wait for its writer.
const How = os.O_RDONLY | syscall.O_NONBLOCK

// Check takes what opening a file with [How] gave, and closes one that is not
// regular.
func Check(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	about, err := f.Stat()
	if err == nil && !about.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", f.Name())
	}
	if err != nil {
		_ = f.Close() // nothing was read
		return nil, err
	}
	return f, nil
}

// Read reads a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// ReadAll reads what is left of an open file, at most limit bytes.
func ReadAll(f *os.File, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %s", f.Name(), size(limit))
	}
	return data, nil
}

func size(n int64) string {
	const ki, mi = 1 << 10, 1 << 20
	switch {
	case n%mi == 0:
		return fmt.Sprintf("%d MiB", n/mi)
	case n%ki == 0:
		return fmt.Sprintf("%d KiB", n/ki)
	}
	return fmt.Sprintf("%d bytes", n)
}
