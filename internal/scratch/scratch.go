// Package scratch makes temporary directories that do not stay behind for ever:
// [Dir.Remove] takes one away whatever lies in it, and [Sweep] those of
// processes that were killed before they could.
//
// A directory is locked (flock) for as long as its maker lives; the kernel takes
// the lock back however that ends. One whose lock is free is nobody's.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// prefix begins the names of all, and of nothing else: Sweep goes by it.
const prefix = "stopgate-scratch-"

// Dir is a directory of its maker's alone.
type Dir struct {
	path string
	lock *os.File // nil: the file system has no locks, and Sweep none to take
}

// Make makes a directory below parent; empty is the system's place for
// temporary files.
func Make(parent string) (*Dir, error) {
	for range 10 { // a Sweep may take it for a dead one's before it is locked
		path, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		d := &Dir{path: path}
		if d.lock, err = lockDir(path); err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) {
			return d, nil
		}
	}
	return nil, fmt.Errorf("temporary directory %q: swept away again and again", filepath.Join(parent, prefix+"*"))
}

// lockDir opens and locks a directory of ours. It is no link, and still what
// lies at the path.
func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = ours(f, path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func ours(f *os.File, path string) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if owner, ok := opened.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() || !os.SameFile(opened, named) {
		return fs.ErrNotExist
	}
	return nil
}

// Path is where the directory lies.
func (d *Dir) Path() string { return d.path }

// Remove takes the directory away with all that is in it, and tells what is
// left if something is. A second time does nothing.
func (d *Dir) Remove() error {
	err := remove(d.path)
	if d.lock != nil { // last, lest a Sweep works on it too
		d.lock.Close()
	}
	return err
}

// remove is os.RemoveAll for directories that a script has closed to their
// owner, too.
func remove(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer parent.Close()
	open(parent, filepath.Base(path))
	return os.RemoveAll(path)
}

// open makes a directory and all below it such that they can be emptied; that
// they cannot be shows in emptying them. A root does not follow a link out of
// itself.
func open(parent *os.Root, name string) {
	_ = parent.Chmod(name, 0o700)
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := fs.ReadDir(dir.FS(), ".")
	for _, entry := range entries {
		if entry.IsDir() {
			open(dir, entry.Name())
		}
	}
}

// Sweep removes the directories below parent that [Make] made for processes of
// this user that have died. What cannot be removed is left to the next.
func Sweep(parent string) {
	if parent == "" {
		parent = os.TempDir()
	}
	dir, err := os.Open(parent)
	if err != nil {
		return
	}
	defer dir.Close()
	for err == nil {
		var names []string
		names, err = dir.Readdirnames(1000)
		for _, name := range names {
			if number, ok := strings.CutPrefix(name, prefix); !ok || strings.Trim(number, "0123456789") != "" {
				continue
			}
			path := filepath.Join(parent, name)
			if lock, err := lockDir(path); err == nil {
				_ = remove(path)
				lock.Close()
			}
		}
	}
}
