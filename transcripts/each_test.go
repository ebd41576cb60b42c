package transcripts

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A data directory that is moved may come from somebody else: what its links and
// pipes lead to is not a transcript.
func TestEachTakesFilesAlone(t *testing.T) {
	const secret = "secret of somebody else\n"
	link := func(path, to string) error { return os.Symlink(to, path) }
	pipe := func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }
	dir := func(path, _ string) error { return os.Mkdir(path, 0o700) }
	for name, c := range map[string]struct {
		file string // empty: the view
		put  func(path, to string) error
	}{
		"a view that is a link":        {"", link},
		"a view that is a pipe":        {"", pipe},
		"a view that is a directory":   {"", dir},
		"a record that is a link":      {metaName, link},
		"a record that is a pipe":      {metaName, pipe},
		"a record that is a directory": {metaName, dir},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			s, err := Open(Options{Dir: filepath.Join(root, "transcripts")})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Replace(t.Context(), "chat", 0, "text/plain", strings.NewReader("hello\n")); err != nil {
				t.Fatal(err)
			}
			session := s.sessionDir(keyOf("chat"))
			m, err := readMeta(session)
			if err != nil {
				t.Fatal(err)
			}
			path, other := filepath.Join(session, m.View), filepath.Join(root, "other")
			text := []byte(secret)
			if c.file != "" {
				path = filepath.Join(session, c.file)
				if text, err = os.ReadFile(path); err != nil { // a link to it would do
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(other, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := c.put(path, other); err != nil {
				t.Fatal(err)
			}
			err = s.Each(func(_ [32]byte, _ string, r io.ReaderAt, n int64) error {
				text, _ := io.ReadAll(io.NewSectionReader(r, 0, n))
				t.Errorf("a transcript is %q", text)
				return nil
			})
			if err == nil {
				t.Error("no error")
			}
		})
	}
}
