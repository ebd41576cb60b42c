package transcripts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// root is a directory in which named transcripts may lie. It need not exist
// yet: an agent host makes its own when it first runs.
type root string

func cleanRoots(dirs []string) ([]root, error) {
	var roots []root
	for _, d := range dirs {
		if !filepath.IsAbs(d) {
			return nil, fmt.Errorf("transcripts.roots: %q is not an absolute path", d)
		}
		roots = append(roots, root(filepath.Clean(d)))
	}
	return roots, nil
}

// relative is path as seen from the root, as it is configured or as it really
// lies; false if it is not inside.
func (r root) relative(path string) (string, bool) {
	spellings := []string{string(r)}
	if real, err := filepath.EvalSymlinks(string(r)); err == nil && real != string(r) {
		spellings = append(spellings, real)
	}
	for _, dir := range spellings {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// openNamed opens a regular file under one of the roots. A path that may not be
// read is a *[gate.Error] with CodeValidation; one that cannot be is any other
// error.
func (s *Store) openNamed(path string) (*os.File, error) {
	switch {
	case strings.ContainsRune(path, 0):
		return nil, gate.Errorf(gate.CodeValidation, "the transcript's path %q contains a NUL", short(path))
	case !filepath.IsAbs(path):
		return nil, gate.Errorf(gate.CodeValidation, "the transcript's path %q is not absolute", short(path))
	}
	err := outsideRoots(path)
	for _, r := range s.roots {
		rel, inside := r.relative(filepath.Clean(path))
		if !inside {
			continue
		}
		var f *os.File
		if f, err = r.open(rel, s.maxBytes); err == nil {
			return f, nil
		}
		if escapes(err) {
			err = outsideRoots(path)
		}
	}
	return nil, err
}

func outsideRoots(path string) error {
	return gate.Errorf(gate.CodeValidation, "the transcript's path %q is outside the directories of the setting transcripts.roots", short(path))
}

// escapes reports whether os.Root refused to follow a path out of the root.
func escapes(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && strings.Contains(e.Err.Error(), "escapes") // os has no exported error for it
}

// open opens a regular file. os.Root keeps symlinks inside the root, whatever
// is renamed meanwhile; O_NONBLOCK keeps a FIFO from holding us up.
// A sparse file costs its owner nothing, so its size is bounded in bytes.
func (r root) open(rel string, most int64) (*os.File, error) {
	dir, err := os.OpenRoot(string(r))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	// Opening a device can do something already, so it is looked at first.
	st, err := dir.Stat(rel)
	if err != nil {
		return nil, err
	}
	if err := regular(st); err != nil {
		return nil, err
	}
	if st.Size() > most {
		return nil, fmt.Errorf("the transcript %q has %d bytes, more than transcripts.max_size", st.Name(), st.Size())
	}
	f, err := dir.OpenFile(rel, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err = f.Stat(); err == nil {
		err = regular(st)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func regular(st fs.FileInfo) error {
	if !st.Mode().IsRegular() {
		return gate.Errorf(gate.CodeValidation, "the transcript %q is not a regular file", st.Name())
	}
	return nil
}
