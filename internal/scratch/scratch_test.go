package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// TestRemoveWhatWasClosed: a script may close its directories, the one that we
// gave it too, and a link may lead to where it is none of our business.
func TestRemoveWhatWasClosed(t *testing.T) {
	parent := asUser(t)
	elsewhere := write(t, parent, "elsewhere", "file")
	d, err := Make(parent)
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.Path(), "a", "b", "file")
	write(t, d.Path(), "c", "file")
	if err := os.Symlink(filepath.Dir(elsewhere), filepath.Join(d.Path(), "a", "link")); err != nil {
		t.Fatal(err)
	}
	for _, closed := range []string{"a/b", "a", "c", "", "../elsewhere"} {
		if err := os.Chmod(filepath.Join(d.Path(), closed), 0o100); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Remove(); err != nil || exists(d.Path()) {
		t.Errorf("not removed: %v", err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(elsewhere), 0o700) })
	if info, err := os.Stat(filepath.Dir(elsewhere)); err != nil || info.Mode().Perm() != 0o100 {
		t.Errorf("elsewhere is %v, %v", info.Mode(), err)
	}
}

func TestSweep(t *testing.T) {
	parent := asUser(t)
	made := func() *Dir {
		d, err := Make(parent)
		if err != nil {
			t.Fatal(err)
		}
		write(t, d.Path(), "dir", "file")
		return d
	}
	living, dead := made(), made()
	dead.lock.Close() // as the kernel does for a process that was killed
	elsewhere := write(t, parent, "elsewhere", "file")
	link := filepath.Join(parent, prefix+"1")
	if err := os.Symlink(filepath.Dir(elsewhere), link); err != nil {
		t.Fatal(err)
	}
	kept := []string{living.Path(), filepath.Join(living.Path(), "dir", "file"), elsewhere, link, write(t, parent, prefix+"2"),
		write(t, parent, prefix+"mine", "file"), write(t, parent, prefix+"3-mine", "file"), write(t, parent, "stopgate-4", "file")}

	Sweep(parent)
	if exists(dead.Path()) {
		t.Error("what a dead process left is still there")
	}
	for _, path := range kept {
		if !exists(path) {
			t.Errorf("%s was removed", path)
		}
	}
	if err := living.Remove(); err != nil || exists(living.Path()) {
		t.Errorf("not removed: %v", err)
	}
	if err := living.Remove(); err != nil {
		t.Errorf("a second time: %v", err)
	}
}
