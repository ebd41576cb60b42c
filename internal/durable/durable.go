// Package durable makes directories that survive a power cut.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// MakeDir makes a directory, and what is missing above it, with mode 0700, and
// syncs each new entry: what is synced inside a directory is lost with the
// directory's own entry. One that is there already is left as it is.
func MakeDir(path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := MakeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
