package export

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func linesOf(from, to int) (lines [][]byte) {
	for n := from; n < to; n++ {
		lines = append(lines, fmt.Appendf(nil, "{\"n\":%04d}\n", n)) // 11 bytes
	}
	return lines
}

// written is what stands in the files that were put aside, and in the file.
func written(t *testing.T, path string) (files []string) {
	t.Helper()
	aside, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(aside)
	for _, name := range append(aside, path) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(text))
	}
	return files
}

func text(lines [][]byte) string {
	var b strings.Builder
	for _, l := range lines {
		b.Write(l)
	}
	return b.String()
}

func TestFile(t *testing.T) {
	for _, c := range []struct {
		name   string
		max    int64
		keep   int
		before string // what is there already
		sends  [][]([]byte)
		want   []string
	}{
		{"one", 0, 0, "", [][][]byte{linesOf(0, 3), linesOf(3, 4)}, []string{text(linesOf(0, 4))}},
		{"behind what is there", 0, 0, "old\n", [][][]byte{linesOf(0, 1)}, []string{"old\n" + text(linesOf(0, 1))}},
		{"half a line of one who was killed", 0, 0, "old\n{\"n\":", [][][]byte{linesOf(0, 1)}, []string{"old\n" + text(linesOf(0, 1))}},
		{"half a line alone", 0, 0, strings.Repeat("x", 200_000), [][][]byte{linesOf(0, 1)}, []string{text(linesOf(0, 1))}},
		{"half a line that is long", 0, 0, "old\n" + strings.Repeat("x", 200_000), [][][]byte{linesOf(0, 1)}, []string{"old\n" + text(linesOf(0, 1))}},
		{"put aside", 33, 0, "", [][][]byte{linesOf(0, 7)}, []string{text(linesOf(0, 3)), text(linesOf(3, 6)), text(linesOf(6, 7))}},
		{"put aside when it is time, not before", 33, 0, "", [][][]byte{linesOf(0, 3)}, []string{text(linesOf(0, 3))}},
		{"a line that is larger is a file of its own", 5, 0, "", [][][]byte{linesOf(0, 2)}, []string{text(linesOf(0, 1)), text(linesOf(1, 2))}},
		{"so many are kept", 11, 2, "", [][][]byte{linesOf(0, 9)}, []string{text(linesOf(6, 7)), text(linesOf(7, 8)), text(linesOf(8, 9))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "records.ndjson")
			if c.before != "" {
				if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f, err := NewFile(FileOptions{Path: path, MaxBytes: c.max, Keep: c.keep})
			if err != nil {
				t.Fatal(err)
			}
			for _, lines := range c.sends {
				if err := f.Send(t.Context(), nil, lines); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, written(t, path)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			about, err := os.Stat(path)
			if err != nil || about.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", about.Mode(), err)
			}
		})
	}
}

// TestFileKeepsWhatIsNotItsOwn: only files that it put aside itself are removed.
func TestFileKeepsWhatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r")
	others := []string{"r.gz", "r.2026", "r.20260101T000000.000000000Z.gz", "x.20260101T000000.000000000Z"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := NewFile(FileOptions{Path: path, MaxBytes: 1, Keep: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Send(t.Context(), nil, linesOf(0, 5)); err != nil {
		t.Fatal(err)
	}
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if aside, err := f.aside(); err != nil || len(aside) != 1 {
		t.Errorf("put aside: %v, %v", aside, err)
	}
}

// TestFileIsARegularFileOfOurs: what would hang, or be somebody else's, is an
// error at the start.
func TestFileIsARegularFileOfOurs(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := unix.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("target"), []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("target"), at("link")); err != nil {
		t.Fatal(err)
	}
	held, err := os.Create(at("held"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"pipe": "no regular file", "link": "symbolic link", "held": "another process", "no/such/directory": "no such file", "": "directory"} {
		if _, err := NewFile(FileOptions{Path: at(name)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	if b, err := os.ReadFile(at("target")); err != nil || string(b) != "theirs" {
		t.Errorf("the link's target: %q, %v", b, err)
	}
}

// TestFileOnADiskThatIsFull: nothing is confirmed, and half a line is taken back.
func TestFileOnADiskThatIsFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	f, err := NewFile(FileOptions{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Send(t.Context(), nil, linesOf(0, 1)); err != nil {
		t.Fatal(err)
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 16, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	err = f.Send(t.Context(), nil, linesOf(1, 3))
	if again := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); again != nil {
		t.Fatal(again)
	}
	if err == nil {
		t.Error("a write that did not fit is confirmed")
	}
	if err := f.Send(t.Context(), nil, linesOf(1, 3)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{text(linesOf(0, 3))}, written(t, path)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}
