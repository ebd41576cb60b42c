package transcripts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// moved is how many bytes this thread has read and written so far, by the
// kernel's count.
func moved(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/thread-self/io")
	if err != nil {
		t.Skip("the kernel does not count what a thread reads: ", err)
	}
	var read, written int64
	if _, err := fmt.Sscanf(string(b), "rchar: %d\nwchar: %d", &read, &written); err != nil {
		t.Fatal(err)
	}
	return read + written
}

// What is appended to a gigabyte costs what it does after nothing.
func TestAppendingCostsWhatIsAppended(t *testing.T) {
	const gigabyte = 1 << 30
	s := openStore(t, Options{})
	part := strings.Repeat("one line more\n", 5000)
	for _, tc := range []struct {
		name  string
		begin func() error
		more  func(at int64, after string) (Size, error)
	}{
		{"text", func() error {
			_, err := s.Replace(t.Context(), "text", 0, "text/plain", strings.NewReader("begin\n"))
			return err
		}, func(int64, string) (Size, error) {
			return s.Append(t.Context(), "text", 0, "text/plain", strings.NewReader(part))
		}},
		{"file", func() error {
			_, err := s.AppendFile(t.Context(), "file", 0, Part{Format: formatCodex}, strings.NewReader("begin\n"))
			return err
		}, func(at int64, after string) (Size, error) {
			return s.AppendFile(t.Context(), "file", 0, Part{Format: formatCodex, At: at, After: after}, strings.NewReader(part))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := tc.begin(); err != nil {
				t.Fatal(err)
			}
			at, after := enlarge(t, s, tc.name, gigabyte)
			before := moved(t)
			size, err := tc.more(at, after)
			cost := moved(t) - before
			if err != nil || size.Bytes != gigabyte+int64(len(part)) {
				t.Fatalf("%v, %v", size, err)
			}
			// It is spooled, read from there and written: three times.
			if most := int64(3*len(part) + 64<<10); cost < int64(2*len(part)) || cost > most {
				t.Errorf("%d bytes were appended, and %d read and written, more than %d", len(part), cost, most)
			}
		})
	}
}

// enlarge makes a session's transcript one of size bytes that hold nothing, and
// gives its end.
func enlarge(t *testing.T, s *Store, session string, size int64) (at int64, after string) {
	t.Helper()
	dir := s.sessionDir(keyOf(session))
	m, err := readMeta(dir)
	if err != nil {
		t.Fatal(err)
	}
	view := filepath.Join(dir, m.View)
	if err := os.Truncate(view, size); err != nil {
		t.Fatal(err)
	}
	m.Bytes, m.Open, m.Marked = size, true, (size-1)/block
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, metaName), b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(view)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	after, err = Tail(f, size)
	if err != nil {
		t.Fatal(err)
	}
	return size, after
}
