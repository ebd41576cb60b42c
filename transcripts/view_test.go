package transcripts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// viewOf is a view of a text, without a session.
func viewOf(t testing.TB, s *Store, content string) *view {
	t.Helper()
	sp, err := s.spool(t.Context(), text, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	v := s.temporary(sp)
	t.Cleanup(func() { v.Close() })
	return v
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestReadFile(t *testing.T) {
	for _, tc := range []struct {
		name          string
		text          string
		offset, limit int
		want          string
	}{
		{"all", "a\nb\n", 0, 0, "1\ta\n2\tb\n"},
		{"last line without newline", "a\nb", 0, 0, "1\ta\n2\tb\n"},
		{"empty lines", "\n\nx\n", 0, 0, "1\t\n2\t\n3\tx\n"},
		{"empty", "", 0, 0, "(the transcript is empty)\n"},
		{"from the middle", lines(5), 2, 2, "2\tline 2\n3\tline 3\n(lines 1 and 4–5 of 5 not shown)\n"},
		{"to the end", lines(5), 4, 9, "4\tline 4\n5\tline 5\n(lines 1–3 of 5 not shown)\n"},
		{"from the start", lines(5), 1, 3, "1\tline 1\n2\tline 2\n3\tline 3\n(lines 4–5 of 5 not shown)\n"},
		{"beyond the end", lines(5), 6, 1, "(line 6 is beyond the end: the transcript has 5 lines)\n"},
		{"negative means the defaults", "a\n", -5, -5, "1\ta\n"},
		{"bytes that are not UTF-8", "a\xffb\n\xc3", 0, 0, "1\ta\ufffdb\n2\t\ufffd\n"},
		{"control characters", "a\r\nb\x1b[0m\x00\n", 0, 0, "1\ta␍\n2\tb␛[0m␀\n"},
		{"fault transcript-20: U+2028 ends no line", "a\u2028b\nc", 0, 0, "1\ta␤b\n2\tc\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := viewOf(t, openStore(t, Options{}), tc.text).ReadFile(t.Context(), tc.offset, tc.limit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadFileBounds(t *testing.T) {
	s := openStore(t, Options{})
	t.Run("200 lines by default", func(t *testing.T) {
		got, err := viewOf(t, s, lines(5000)).ReadFile(t.Context(), 0, 0)
		if err != nil || !strings.HasSuffix(got, "200\tline 200\n(lines 201–5000 of 5000 not shown)\n") {
			t.Errorf("it ends with %q, %v", got[max(0, len(got)-100):], err)
		}
	})
	t.Run("1,000 lines at most", func(t *testing.T) {
		got, err := viewOf(t, s, lines(5000)).ReadFile(t.Context(), 0, 1<<40)
		if err != nil || !strings.HasSuffix(got, "1000\tline 1000\n(lines 1001–5000 of 5000 not shown)\n") {
			t.Errorf("it ends with %q, %v", got[max(0, len(got)-100):], err)
		}
	})
	t.Run("30 KiB at most, whatever the bytes", func(t *testing.T) {
		for _, c := range []string{"x", "ü", "🎉", "\xff", "\x00"} {
			got, err := viewOf(t, s, strings.Repeat(strings.Repeat(c, 1999)+"\n", 100)).ReadFile(t.Context(), 0, 100)
			if err != nil || len(got) > maxAnswer || len(got) < maxAnswer/2 || !strings.Contains(got, "of 100 not shown") {
				t.Errorf("%q: %d bytes, %v", c, len(got), err)
			}
		}
	})
	t.Run("fault G19: a line of several megabytes is cut", func(t *testing.T) {
		got, err := viewOf(t, s, "a\n"+strings.Repeat("é", 3<<20)+"\nb\n").ReadFile(t.Context(), 0, 0)
		want := "1\ta\n2\t" + strings.Repeat("é", 2000) + "[… cut: the line has 6291456 bytes]\n3\tb\n"
		if got != want || err != nil {
			t.Errorf("got %d bytes, %v; want %d", len(got), err, len(want))
		}
	})
	t.Run("2,000 characters are not cut", func(t *testing.T) {
		line := strings.Repeat("é", 2000)
		if got, err := viewOf(t, s, line).ReadFile(t.Context(), 0, 0); got != "1\t"+line+"\n" || err != nil {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	})
}

// hostile is a text of lines of all lengths, many over several blocks.
func hostile(rnd *rand.Rand, n int) []string {
	var out []string
	for i := range n {
		length := rnd.IntN(80)
		switch rnd.IntN(40) {
		case 0:
			length = rnd.IntN(4 * block)
		case 1:
			length = block - 1 - rnd.IntN(2)
		}
		out = append(out, fmt.Sprint(i+1, strings.Repeat("x", length)))
	}
	return out
}

// Any line is found by an index that was written in any pieces, by one that was
// built from the file, and by none.
func TestEveryLineIsFound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	all := hostile(rnd, 1500)
	content := strings.Join(all, "\n")
	root := t.TempDir()
	s := openStore(t, Options{Roots: []string{root}})
	for rest := content; rest != ""; {
		n := min(len(rest), 1+rnd.IntN(3*block))
		add(t, s, "s", rest[:n])
		rest = rest[n:]
	}
	uploaded := attach(t, s, &gate.Event{Session: "s"}).(*view)
	named := attach(t, s, &gate.Event{TranscriptPath: write(t, content, root, "t.txt"), TranscriptFormat: "text"}).(*view)

	built, err := buildIndex(t.Context(), named.file, named.size)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(built, uploaded.known, cmp.AllowUnexported(index{}, mark{})); diff != "" {
		t.Fatalf("the index depends on the pieces (-built +uploaded):\n%s", diff)
	}
	for _, v := range []*view{uploaded, named} {
		for n := 1; n <= len(all); n += 1 + rnd.IntN(5) {
			got, err := v.ReadFile(t.Context(), n, 1)
			if err != nil {
				t.Fatal(err)
			}
			want := all[n-1]
			if len(want) > maxLineRunes {
				want = fmt.Sprintf("%s[… cut: the line has %d bytes]", want[:maxLineRunes], len(want))
			}
			if first, _, _ := strings.Cut(got, "\n"); first != fmt.Sprintf("%d\t%s", n, want) {
				t.Fatalf("line %d is %.60q, want %.60q", n, first, want)
			}
		}
	}
}

// countingReader counts what is read of a view.
type countingReader struct {
	io.ReaderAt
	read atomic.Int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.read.Add(int64(n))
	return n, err
}

// ReadFile reads what it shows and a few blocks round it, wherever that is, and
// also when the lines before are huge.
func TestReadFileReadsLittle(t *testing.T) {
	s := openStore(t, Options{})
	r, w := io.Pipe()
	go func() {
		conversation(w, 30<<20)
		io.WriteString(w, strings.Repeat("x", 5<<20)+"\n")
		io.WriteString(w, strings.Repeat("x", 5<<20)+"\nthe end\n")
		w.Close()
	}()
	size, err := s.Replace(t.Context(), "s", 0, text, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{1, size.Lines / 2, size.Lines - 100, size.Lines - 1, size.Lines} {
		v := attach(t, s, &gate.Event{Session: "s"}).(*view)
		counter := &countingReader{ReaderAt: v.text}
		v.text = counter
		got, err := v.ReadFile(t.Context(), int(offset), 50)
		if err != nil || !strings.HasPrefix(got, fmt.Sprintf("%d\t", offset)) {
			t.Errorf("from line %d: %.60q, %v", offset, got, err)
		}
		if read := counter.read.Load(); read > 6*block {
			t.Errorf("from line %d: %d bytes were read", offset, read)
		}
	}
}

// A named file is scanned once, however often it is asked.
func TestNamedIndexIsCached(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, Options{Roots: []string{root}})
	path := write(t, lines(200000), root, "t.txt")
	ask := func() int64 {
		v := attach(t, s, &gate.Event{TranscriptPath: path}).(*view)
		counter := &countingReader{ReaderAt: v.text}
		v.text = counter
		if _, err := v.ReadFile(t.Context(), 199999, 1); err != nil {
			t.Fatal(err)
		}
		return counter.read.Load()
	}
	if first, second := ask(), ask(); first < 1<<20 || second > 4*block {
		t.Errorf("%d bytes were read, then %d", first, second)
	}
	add := []byte("one more\n")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Write(add)
	f.Close()
	v := attach(t, s, &gate.Event{TranscriptPath: path})
	if got, err := v.ReadFile(t.Context(), 200001, 1); !strings.HasPrefix(got, "200001\tone more\n") || err != nil {
		t.Errorf("after the file grew: %q, %v", got, err)
	}
	for i := range 2 * cachedIndexes {
		other := write(t, lines(i), root, "many", fmt.Sprint(i))
		if _, err := attach(t, s, &gate.Event{TranscriptPath: other}).ReadFile(t.Context(), 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.indexes.known); n > cachedIndexes {
		t.Errorf("%d indexes are kept", n)
	}
}

// A file that is cut while it is read is an error, not an empty answer.
func TestFileCutMeanwhile(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, Options{Roots: []string{root}})
	path := write(t, lines(1000), root, "t.txt")
	v := attach(t, s, &gate.Event{TranscriptPath: path})
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if got, err := v.ReadFile(t.Context(), 1, 1); err == nil {
		t.Errorf("ReadFile gives %q", got)
	}
	if got, err := v.GrepSearch(t.Context(), gate.Grep{Pattern: "line"}); err == nil {
		t.Errorf("GrepSearch gives %q", got)
	}
}

func TestReadFileEndsWithContext(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, Options{Roots: []string{root}})
	v := attach(t, s, &gate.Event{TranscriptPath: write(t, lines(10), root, "t.txt")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := v.ReadFile(ctx, 1, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v", got, err)
	}
}

// fault G16, fault G18: a huge transcript is neither an error nor cut: what is in
// its first hundredth is found, and what an answer leaves out is said.
func TestNeedleInHugeTranscript(t *testing.T) {
	s := openStore(t, Options{})
	path := filepath.Join(t.TempDir(), "t.txt")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, "=== user ===\nNever touch the production database.")
	conversation(f, 50<<20)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Replace(t.Context(), "s", 0, text, f); err != nil {
		t.Fatal(err)
	}
	v := attach(t, s, &gate.Event{Session: "s"})
	t.Run("fault G18: GrepSearch finds an early line", func(t *testing.T) {
		got, err := v.GrepSearch(t.Context(), gate.Grep{Pattern: "(?i)production DATABASE", Context: 1})
		if err != nil || !strings.HasPrefix(got, "1-=== user ===\n2:Never touch the production database.\n3-") {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("fault G16: an answer stays small and says so", func(t *testing.T) {
		got, err := v.ReadFile(t.Context(), 1, 100000)
		if err != nil || len(got) > maxAnswer || !strings.Contains(got[len(got)-60:], "not shown") {
			t.Errorf("got %d bytes that end with %q, %v", len(got), got[len(got)-60:], err)
		}
		got, err = v.GrepSearch(t.Context(), gate.Grep{Pattern: "INFO", Limit: 1000})
		if err != nil || len(got) > maxAnswer || !strings.Contains(got[len(got)-100:], "left out") {
			t.Errorf("got %d bytes that end with %q, %v", len(got), got[len(got)-100:], err)
		}
	})
}
