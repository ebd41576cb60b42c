package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"stopgate/internal/regular"
)

// maxHostFile bounds what is read of a host's settings; people's have a few KB.
const maxHostFile = 1 << 20

// hostFile is a file of an agent host's, which its user and the host write too.
type hostFile struct {
	path    string // as it is spoken of
	target  string // what is written: path with every link followed
	linked  bool   // path is a link
	content []byte // nil: there is none
	mode    fs.FileMode
}

// readHostFile reads a host's file; where there is none, content is nil. Only
// a regular file is read. within, if it is not empty, is a directory that the
// file must lie in once links are followed: a project's files are whatever its
// authors made them, and must not lead the pen elsewhere.
func readHostFile(path, within string) (hostFile, error) {
	f := hostFile{path: path, mode: 0o644}
	if about, err := os.Lstat(path); err == nil {
		f.linked = about.Mode()&fs.ModeSymlink != 0
	}
	var err error
	if f.target, err = followed(path); err != nil {
		return f, err
	}
	if within != "" {
		root, err := filepath.EvalSymlinks(within)
		if err != nil {
			return f, err
		}
		if !inside(root, f.target) {
			return f, fmt.Errorf("%s leads out of the project, to %s: edit that file yourself, or take the link away", path, f.target)
		}
	}
	f.content, f.mode, err = readRegular(f.target)
	if errors.Is(err, fs.ErrNotExist) {
		if f.linked {
			return f, fmt.Errorf("%s is a link to nothing", path)
		}
		f.mode, err = 0o644, nil
	}
	return f, err
}

// inside reports whether a path lies in a directory; neither has a link in it.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// readRegular reads a regular file of bounded size, and its mode.
func readRegular(path string) ([]byte, fs.FileMode, error) {
	file, err := regular.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	content, err := regular.ReadAll(file, maxHostFile)
	if content == nil {
		content = []byte{}
	}
	return content, about.Mode().Perm(), err
}

// followed is the path with every link followed, as far as it exists.
func followed(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path, nil
	}
	if dir, err = followed(dir); err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// write replaces the file as a whole, or not at all: its mode stays, links to
// it stay links, and a change that somebody else made since it was read is not
// overwritten.
func (f hostFile) write(content []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(f.target), 0o755); err != nil {
		return err
	}
	temporary := fmt.Sprintf("%s.%d.tmp", f.target, os.Getpid())
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary) // it is of no use to anybody
		}
	}()
	_, err = file.Write(content)
	if f.content != nil {
		err = errors.Join(err, file.Chmod(f.mode), f.keepOwner(file)) // whatever the umask says
	}
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := f.unchanged(); err != nil {
		return err
	}
	return os.Rename(temporary, f.target)
}

// keepOwner gives the new file to the old one's owner, which only root has to.
func (f hostFile) keepOwner(file *os.File) error {
	about, err := os.Stat(f.target)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	if owner, ok := about.Sys().(*syscall.Stat_t); ok {
		return file.Chown(int(owner.Uid), int(owner.Gid))
	}
	return nil
}

// remove takes the file away, and of the folders, the innermost first, those
// that are empty without it.
func (f hostFile) remove(folders []string) error {
	if err := f.unchanged(); err != nil {
		return err
	}
	if err := os.Remove(f.target); err != nil {
		return err
	}
	for _, dir := range folders {
		_ = syscall.Rmdir(dir) // it fails on one that is not empty, and on a link, which os.Remove would take away
	}
	return nil
}

func (f hostFile) unchanged() error {
	now, _, err := readRegular(f.target)
	if errors.Is(err, fs.ErrNotExist) && f.content == nil {
		return nil
	}
	if err == nil && (f.content == nil || !bytes.Equal(now, f.content)) {
		err = fmt.Errorf("%s has changed meanwhile: nothing was written, try again", f.path)
	}
	return err
}
