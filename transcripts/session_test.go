package transcripts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

const (
	text   = "text/plain"
	ndjson = "application/x-ndjson"
	array  = "application/json"
)

func TestUploads(t *testing.T) {
	type upload struct{ how, kind, body string }
	for _, tc := range []struct {
		name    string
		uploads []upload
		want    string
	}{
		{"text", []upload{{"replace", text, "a\nb"}}, "a\nb"},
		{"text in UTF-8 by name", []upload{{"replace", "text/plain; charset=UTF-8", "ä\n"}}, "ä\n"},
		{"text is kept byte by byte", []upload{{"replace", text, "a\xff\r\n\x00b"}}, "a\xff\r\n\x00b"},
		{"empty", []upload{{"replace", text, ""}}, ""},
		{"messages by line", []upload{{"replace", ndjson, `{"role":"user","content":"a"}` + "\n\n" + `{"role":"user","content":"b"}`}}, "=== user ===\na\n=== user ===\nb\n"},
		{"no messages", []upload{{"replace", ndjson, "\n"}}, ""},
		{"array", []upload{{"replace", array, ` [ {"role":"user","content":"a"} , {"role":"b"}] `}}, "=== user ===\na\n=== b ===\n"},
		{"empty array", []upload{{"replace", array, `[]`}}, ""},
		{"string", []upload{{"replace", array, `"a\nb"`}}, "a\nb"},
		{"a second upload replaces", []upload{{"replace", text, "long text\n"}, {"replace", text, "x"}}, "x"},
		{"append begins", []upload{{"append", text, "a\n"}}, "a\n"},
		{"append adds", []upload{{"append", text, "a\n"}, {"append", text, "b\n"}}, "a\nb\n"},
		{"text goes on within a line", []upload{{"replace", text, "a"}, {"append", text, "b\n"}}, "ab\n"},
		{"a message begins a line", []upload{{"replace", text, "a"}, {"append", ndjson, `{"role":"user"}`}}, "a\n=== user ===\n"},
		{"append to an empty one", []upload{{"replace", text, ""}, {"append", array, `[{"role":"user"}]`}}, "=== user ===\n"},
		{"replace after append", []upload{{"append", text, "a"}, {"replace", text, "b"}, {"append", text, "c"}}, "bc"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := openStore(t, Options{})
			var size Size
			for _, u := range tc.uploads {
				store := s.Replace
				if u.how == "append" {
					store = s.Append
				}
				var err error
				if size, err = store(t.Context(), "s", 0, u.kind, strings.NewReader(u.body)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, readAll(t, s, "s")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			want := Size{Bytes: int64(len(tc.want)), Lines: countLines(tc.want)}
			if size != want {
				t.Errorf("the upload's size is %+v, want %+v", size, want)
			}
			if stat, ok, err := s.Stat(t.Context(), "s"); stat != want || !ok || err != nil {
				t.Errorf("Stat is %+v, %v, %v; want %+v", stat, ok, err, want)
			}
		})
	}
}

// What is wrong with an upload is said, and changes nothing.
func TestRefusedUploads(t *testing.T) {
	for _, tc := range []struct {
		name, kind, body string
		code             gate.Code
		says             string
	}{
		{"unknown content type", "text/html", "", gate.CodeUnsupportedMediaType, "text/html"},
		{"no content type", "", "", gate.CodeUnsupportedMediaType, "text/plain"},
		{"other charset", "text/plain; charset=latin1", "", gate.CodeUnsupportedMediaType, "UTF-8"},
		{"broken line", ndjson, `{"role":"user"}` + "\n" + `{"role":`, gate.CodeInvalidJSON, "line 2"},
		{"line that is no object", ndjson, "\n\n[1]", gate.CodeValidation, "line 3: a message must be an object"},
		{"no role", ndjson, `{"content":"x"}`, gate.CodeValidation, "no role"},
		{"content of a wrong type", ndjson, `{"role":"user","content":5}`, gate.CodeValidation, "content must be"},
		{"part of a wrong type", ndjson, `{"role":"user","content":[5]}`, gate.CodeValidation, "part of content"},
		{"role of a wrong type", ndjson, `{"role":5}`, gate.CodeValidation, "role must not be a JSON number"},
		{"long line", ndjson, `{"role":"` + strings.Repeat("x", 3000) + `"}`, gate.CodeBodyTooLarge, "line 1 is larger than 2000"},
		{"too much", text, strings.Repeat("x", 5001), gate.CodeBodyTooLarge, "5000"},
		{"too much when rendered", ndjson, strings.Repeat(`{"role":"u"}`+"\n", 350) + `{"role":"u","content":"` + strings.Repeat(`\n`, 1000-100) + `"}`, gate.CodeBodyTooLarge, "5000"},
		{"broken array", array, `[{"role":"user"},{]`, gate.CodeInvalidJSON, "message 2"},
		{"array that ends early", array, `[{"role":"user"}`, gate.CodeInvalidJSON, "ends too early"},
		{"more than one value", array, `[] []`, gate.CodeInvalidJSON, "more after"},
		{"no message in an array", array, `[{"role":"user"},"x"]`, gate.CodeValidation, "message 2"},
		{"object", array, `{"role":"user"}`, gate.CodeValidation, "not an object"},
		{"number", array, `7`, gate.CodeValidation, "not 7"},
		{"nothing", array, ``, gate.CodeInvalidJSON, "ends too early"},
		{"long message in an array", array, `[{"role":"u","content":"` + strings.Repeat("x", 3000) + `"}]`, gate.CodeBodyTooLarge, "message 1 is larger than 2000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := openStore(t, Options{MaxBytes: 5000, MaxMessageBytes: 2000})
			replace(t, s, "s", "old\n")
			for _, store := range []func(context.Context, string, gate.Erasure, string, io.Reader) (Size, error){s.Replace, s.Append} {
				_, err := store(t.Context(), "s", 0, tc.kind, strings.NewReader(tc.body))
				if gate.CodeOf(err) != tc.code || !strings.Contains(fmt.Sprint(err), tc.says) {
					t.Errorf("the error is %s: %v; want %s with %q", gate.CodeOf(err), err, tc.code, tc.says)
				}
				if got := readAll(t, s, "s"); got != "old\n" {
					t.Errorf("the transcript is now %.100q", got)
				}
			}
			if left := tempFiles(t, s); len(left) > 0 {
				t.Errorf("temporary files are left: %q", left)
			}
		})
	}
	t.Run("appended beyond the limit", func(t *testing.T) {
		s := openStore(t, Options{MaxBytes: 10})
		replace(t, s, "s", "123456")
		if _, err := s.Append(t.Context(), "s", 0, text, strings.NewReader("12345")); gate.CodeOf(err) != gate.CodeBodyTooLarge {
			t.Errorf("the error is %v", err)
		}
		if _, err := s.Append(t.Context(), "s", 0, text, strings.NewReader("1234")); err != nil {
			t.Errorf("just enough is refused: %v", err)
		}
	})
	t.Run("the client goes away", func(t *testing.T) {
		s := openStore(t, Options{})
		replace(t, s, "s", "old\n")
		gone := errors.New("connection reset")
		for _, store := range []func(context.Context, string, gate.Erasure, string, io.Reader) (Size, error){s.Replace, s.Append} {
			for _, kind := range []string{text, ndjson, array} {
				body := io.MultiReader(strings.NewReader(`[`), &failingReader{gone})
				if _, err := store(t.Context(), "s", 0, kind, body); !errors.Is(err, gone) {
					t.Errorf("%s: the error is %v", kind, err)
				}
			}
		}
		if got := readAll(t, s, "s"); got != "old\n" {
			t.Errorf("the transcript is now %.100q", got)
		}
	})
	t.Run("no session", func(t *testing.T) {
		_, err := openStore(t, Options{}).Replace(t.Context(), "", 0, text, strings.NewReader("x"))
		if gate.CodeOf(err) != gate.CodeValidation {
			t.Errorf("the error is %v", err)
		}
	})
}

type failingReader struct{ err error }

func (r *failingReader) Read([]byte) (int, error) { return 0, r.err }

func replace(t testing.TB, s *Store, session, content string) {
	t.Helper()
	if _, err := s.Replace(t.Context(), session, 0, text, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

func add(t testing.TB, s *Store, session, content string) {
	t.Helper()
	if _, err := s.Append(t.Context(), session, 0, text, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

func tempFiles(t testing.TB, s *Store) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.tmp, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestErase(t *testing.T) {
	s := openStore(t, Options{})
	replace(t, s, "s", "secret")
	if err := s.Erase(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Stat(t.Context(), "s"); ok || err != nil {
		t.Errorf("Stat says %v, %v", ok, err)
	}
	if _, _, err := s.Read(t.Context(), "s"); gate.CodeOf(err) != gate.CodeNotFound {
		t.Errorf("Read's error is %v", err)
	}
	if v, err := s.Attach(t.Context(), &gate.Event{Session: "s"}); v != nil || err != nil {
		t.Errorf("Attach gives %v, %v", v, err)
	}
	if err := s.Erase(t.Context(), "s"); err != nil {
		t.Errorf("erasing nothing: %v", err)
	}
	left, _ := os.ReadDir(filepath.Join(s.dir, "sessions"))
	if len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	add(t, s, "s", "new")
	if got := readAll(t, s, "s"); got != "new" {
		t.Errorf("a new transcript is %q", got)
	}
}

// Session ids are names of nothing on disk.
func TestHostileSessions(t *testing.T) {
	s := openStore(t, Options{})
	sessions := []string{"../../etc/passwd", "..", ".", "/", "a/b", "a\x00b", "a", strings.Repeat("x", 10<<10), "\xff\xfe", "CON", "-rf", " "}
	for i, session := range sessions {
		replace(t, s, session, fmt.Sprint(i))
	}
	for i, session := range sessions {
		if got := readAll(t, s, session); got != fmt.Sprint(i) {
			t.Errorf("session %.20q reads %q, want %d", session, got, i)
		}
	}
	dirs, err := os.ReadDir(filepath.Join(s.dir, "sessions"))
	if err != nil || len(dirs) != len(sessions) {
		t.Errorf("%d directories for %d sessions, %v", len(dirs), len(sessions), err)
	}
}

func TestModes(t *testing.T) {
	s := openStore(t, Options{})
	replace(t, s, "s", "x")
	attach(t, s, &gate.Event{Session: "s"})
	err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == s.dir {
			return err
		}
		st, err := d.Info()
		if err == nil && st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, st.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Appends of one session take turns, over all processes; whoever reads meanwhile sees whole
// appends, and as many of them as its size says.
func TestConcurrentAppends(t *testing.T) {
	s := openStore(t, Options{})
	stores := []*Store{s, openStore(t, Options{Dir: s.dir})} // as two processes have them
	const writers, each = 8, 10
	line := func(w int) string { return strings.Repeat(fmt.Sprint(w), 5000) + "\n" }
	replace(t, s, "s", "")
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for range each {
				if _, err := stores[w%2].Append(context.Background(), "s", 0, text, strings.NewReader(line(w))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range 20 {
			got := readAll(t, s, "s")
			for l := range strings.Lines(got) {
				if l != line(int(l[0]-'0')) {
					t.Errorf("a torn line of %d bytes", len(l))
				}
			}
		}
	})
	all.Wait()
	size, _, err := s.Stat(t.Context(), "s")
	if want := (Size{Bytes: writers * each * 5001, Lines: writers * each}); size != want || err != nil {
		t.Errorf("the size is %+v, %v; want %+v", size, err, want)
	}
}

// An open view stays as it was, by file and by path, whatever happens to the
// session.
func TestOpenViewStays(t *testing.T) {
	s := openStore(t, Options{})
	replace(t, s, "s", "old\n")
	v := attach(t, s, &gate.Event{Session: "s"})
	check := func(what string) {
		t.Helper()
		if got, err := v.ReadFile(t.Context(), 0, 0); got != "1\told\n" || err != nil {
			t.Errorf("after %s ReadFile gives %q, %v", what, got, err)
		}
		if got, err := os.ReadFile(v.Path()); !strings.HasPrefix(string(got), "old\n") || err != nil {
			t.Errorf("after %s the path holds %q, %v", what, got, err)
		}
	}
	add(t, s, "s", "more\n")
	check("an append")
	replace(t, s, "s", "new\n")
	check("a replace")
	if err := s.Erase(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	check("an erase")
	path := v.Path()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close the path is still there: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestReplaceLeavesOneView(t *testing.T) {
	s := openStore(t, Options{})
	for range 3 {
		replace(t, s, "s", lines(10000))
	}
	files, err := os.ReadDir(s.sessionDir(keyOf("s")))
	if err != nil || len(files) != 3 {
		t.Errorf("the session has the files %v, %v; want record, view and index", files, err)
	}
}

// TestHas looks where the transcript is, and makes no copy of it.
func TestHas(t *testing.T) {
	shared := newTexts()
	for name, opt := range map[string]Options{"own": {}, "shared": {Shared: shared}} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, opt)
			want := func(of *Store, want bool) {
				t.Helper()
				if got, err := of.Has(t.Context(), "s"); err != nil || got != want {
					t.Errorf("%v, %v; want %v", got, err, want)
				}
			}
			want(s, false)
			if _, err := s.Replace(t.Context(), "s", 0, text, strings.NewReader("a\n")); err != nil {
				t.Fatal(err)
			}
			want(s, true)
			if opt.Shared != nil {
				want(openStore(t, opt), true) // of another replica
				if shared.read > 0 {
					t.Errorf("%d bytes were read", shared.read)
				}
			}
			if err := s.Erase(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
			want(s, false)
		})
	}
	shared.down = errors.New("down")
	if _, err := openStore(t, Options{Shared: shared}).Has(t.Context(), "s"); err == nil {
		t.Error("nobody can say, and it says so")
	}
}
