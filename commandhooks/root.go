package commandhooks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// rootDir is a directory that hooks have as /.
type rootDir struct {
	path    string   // with symbolic links resolved
	entries []string // of it, that are shown
	unshown []string // why others are not
}

// maxEntries bounds what is mounted for one hook: every mount costs time.
const maxEntries = 256

// lookAt lists what lies in Options.Root; nil if there is none, or if it is this
// machine's own root.
func lookAt(dir string) (*rootDir, error) {
	if dir == "" {
		return nil, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox root: %w", err)
	}
	r := &rootDir{path: real}
	if real == "/" {
		return r, nil
	}
	f, err := os.Open(real)
	if err != nil {
		return nil, fmt.Errorf("sandbox root: %w", err)
	}
	defer f.Close()
	found, err := f.ReadDir(maxEntries + 1)
	switch {
	case len(found) > maxEntries:
		return nil, fmt.Errorf("sandbox root %q has more than %d entries", real, maxEntries)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("sandbox root: %w", err)
	}
	for _, e := range found {
		if what := unfit(e); what != "" {
			r.unshown = append(r.unshown, fmt.Sprintf("%q is %s", e.Name(), what))
		} else {
			r.entries = append(r.entries, e.Name())
		}
	}
	slices.Sort(r.entries)
	slices.Sort(r.unshown)
	return r, nil
}

// unfit says what an entry is that no sandbox shows: a socket, above all, would
// lead out of it. A symbolic link is one in there too, and leads to what lies
// there.
func unfit(e fs.DirEntry) string {
	switch e.Type() {
	case 0, fs.ModeDir, fs.ModeSymlink:
		return ""
	case fs.ModeSocket:
		return "a socket"
	case fs.ModeNamedPipe:
		return "a named pipe"
	}
	return "no file and no directory"
}

// Unshown says of each entry of [Options.Root] that the sandbox does not show why
// it is so.
func (r *Runner) Unshown() []string {
	if r.root == nil {
		return nil
	}
	return slices.Clone(r.root.unshown)
}
