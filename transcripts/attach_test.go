package transcripts

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"stopgate/gate"
)

// Without a conversation there is no transcript: the context's execution_summary
// is then empty (spec/azure.md 27).
func TestAzure27NoTranscript(t *testing.T) {
	s := openStore(t, Options{})
	for _, ev := range []gate.Event{
		{},
		{Session: "unknown"},
		{InlineTranscript: json.RawMessage("null")},
		{InlineTranscript: json.RawMessage("null"), Session: "unknown"},
	} {
		if v, err := s.Attach(t.Context(), &ev); v != nil || err != nil {
			t.Errorf("%+v: got %v, %v; want nil, nil", ev, v, err)
		}
	}
	t.Run("fault G15: with one, its path can be read", func(t *testing.T) {
		replace(t, s, "s", "hello\n")
		v := attach(t, s, &gate.Event{Session: "s"})
		if got, err := os.ReadFile(v.Path()); string(got) != "hello\n" || err != nil {
			t.Errorf("the path %q holds %q, %v", v.Path(), got, err)
		}
	})
}

func contents(t *testing.T, v gate.Transcript) string {
	t.Helper()
	b, err := os.ReadFile(v.Path())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAttachInline(t *testing.T) {
	inline := json.RawMessage(` [{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"B","arguments":"{}"}}]}]`)
	const want = "=== user ===\nhi\n=== assistant calls B (1) ===\n{}\n"
	for _, tc := range []struct {
		name  string
		ev    gate.Event
		want  string
		keeps string // what the session's transcript is afterwards
	}{
		{"no session", gate.Event{InlineTranscript: inline}, want, "old\n"},
		{"string", gate.Event{InlineTranscript: json.RawMessage(`"a\nb"`)}, "a\nb", "old\n"},
		{"empty string", gate.Event{InlineTranscript: json.RawMessage(`""`)}, "", "old\n"},
		{"session", gate.Event{Session: "s", InlineTranscript: inline}, want, want},
		{"session and path: inline counts", gate.Event{Session: "s", InlineTranscript: inline, TranscriptPath: "/nowhere"}, want, want},
		{"dry run", gate.Event{Session: "s", Dry: true, InlineTranscript: inline}, want, "old\n"},
		{"sub-agent", gate.Event{Session: "s", SubAgent: "a1", InlineTranscript: inline}, want, "old\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := openStore(t, Options{})
			replace(t, s, "s", "old\n")
			v := attach(t, s, &tc.ev)
			if got := contents(t, v); got != tc.want {
				t.Errorf("the view is %q, want %q", got, tc.want)
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			if left := tempFiles(t, s); len(left) > 0 {
				t.Errorf("after Close %q are left", left)
			}
			if got := readAll(t, s, "s"); got != tc.keeps {
				t.Errorf("the session's transcript is %q, want %q", got, tc.keeps)
			}
		})
	}
	for bad, path := range map[string]string{`5`: "transcript", `{}`: "transcript", `[5]`: "transcript[0]", `[{"role":"u"},{"content":"x"}]`: "transcript[1]",
		`{"role":"user","content":"x"}`: "transcript", `["`: "transcript", `[] x`: "transcript"} {
		s := openStore(t, Options{})
		replace(t, s, "s", "old\n")
		v, err := s.Attach(t.Context(), &gate.Event{Session: "s", InlineTranscript: json.RawMessage(bad)})
		if v != nil || gate.CodeOf(err) != gate.CodeValidation {
			t.Errorf("inline %s: got %v, %v; want a validation failure", bad, v, err)
		}
		if wrong, ok := errors.AsType[*gate.Error](err); !ok || len(wrong.Details) != 1 || wrong.Details[0].Path != path {
			t.Errorf("inline %s: %#v, want the path %s", bad, err, path)
		}
		if got := readAll(t, s, "s"); got != "old\n" {
			t.Errorf("inline %s: the session's transcript is now %q", bad, got)
		}
	}
}

// write makes a file, with its directory, and returns its path.
func write(t *testing.T, content string, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// The tools, and the path that hooks get, show the one transcript and nothing
// else (spec/azure.md 29).
func TestAzure29OneTranscript(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	outside := write(t, "secret\n", dir, "outside", "secret.txt")
	inside := write(t, "inside\n", root, "a", "b.txt")
	link := func(target, name string) string {
		path := filepath.Join(root, name)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(root, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, Options{Roots: []string{root, filepath.Join(dir, "later"), "/dev"}})

	for _, tc := range []struct{ name, path, says string }{
		{"outside", outside, "transcripts.roots"},
		{"dots", root + "/a/../../outside/secret.txt", "transcripts.roots"},
		{"a sibling with the same beginning", write(t, "x", dir, "root2", "x"), "transcripts.roots"},
		{"proc", "/proc/self/environ", "transcripts.roots"},
		{"link to a file outside", link(outside, "out"), "transcripts.roots"},
		{"link to a directory outside", filepath.Join(link(filepath.Dir(outside), "outdir"), "secret.txt"), "transcripts.roots"},
		{"relative link outside", link("../outside/secret.txt", "rel"), "transcripts.roots"},
		{"link to proc", link("/proc/self/environ", "environ"), "transcripts.roots"},
		{"relative", "a/b.txt", "not absolute"},
		{"NUL", inside + "\x00.txt", "NUL"},
		{"directory", filepath.Join(root, "a"), "not a regular file"},
		{"the root", root, "not a regular file"},
		{"FIFO", fifo, "not a regular file"},
		{"link to a FIFO", link("fifo", "tofifo"), "not a regular file"},
		{"device", "/dev/zero", "not a regular file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, err := s.Attach(t.Context(), &gate.Event{TranscriptPath: tc.path})
			if v != nil || gate.CodeOf(err) != gate.CodeValidation || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, %v; want a validation failure with %q", v, err, tc.says)
			}
		})
	}
	for name, path := range map[string]string{
		"inside":                   inside,
		"dots that stay inside":    root + "/x/../a/b.txt",
		"link that stays inside":   link("a/b.txt", "in"),
		"in a root that came late": write(t, "inside\n", dir, "later", "x.txt"),
	} {
		t.Run(name, func(t *testing.T) {
			v := attach(t, s, &gate.Event{TranscriptPath: path})
			path := filepath.Clean(path)
			if v.Path() != path || v.RawPath() != path {
				t.Errorf("the paths are %q and %q; a text is its own view", v.Path(), v.RawPath())
			}
			if got, err := v.ReadFile(t.Context(), 0, 0); got != "1\tinside\n" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("Close took the host's file away: %v", err)
			}
		})
	}
	t.Run("through a link to the root", func(t *testing.T) {
		alias := filepath.Join(dir, "alias")
		if err := os.Symlink(root, alias); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, Options{Roots: []string{alias}})
		attach(t, s, &gate.Event{TranscriptPath: inside})
		attach(t, s, &gate.Event{TranscriptPath: filepath.Join(alias, "a", "b.txt")})
	})
	t.Run("no roots", func(t *testing.T) {
		_, err := openStore(t, Options{}).Attach(t.Context(), &gate.Event{TranscriptPath: inside})
		if gate.CodeOf(err) != gate.CodeValidation {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("fault G15: a missing file is an error", func(t *testing.T) {
		_, err := s.Attach(t.Context(), &gate.Event{TranscriptPath: filepath.Join(root, "missing"), Session: "s"})
		if failure, ok := errors.AsType[*gate.Failure](err); !ok || failure.Code != gate.TranscriptUnreadable {
			t.Errorf("the error is %v; want transcript_unreadable", err)
		}
	})
	t.Run("a format without a reader", func(t *testing.T) {
		_, err := s.Attach(t.Context(), &gate.Event{TranscriptPath: inside, TranscriptFormat: "protobuf"})
		if failure, ok := errors.AsType[*gate.Failure](err); !ok || failure.Code != gate.TranscriptUnreadable {
			t.Errorf("the error is %v; want transcript_unreadable", err)
		}
	})
	t.Run("relative root", func(t *testing.T) {
		if _, err := Open(Options{Dir: t.TempDir(), Roots: []string{"home"}}); err == nil || !strings.Contains(err.Error(), "transcripts.roots") {
			t.Errorf("the error is %v", err)
		}
	})
}

// Whoever swaps a file for a link while it is opened gains nothing.
func TestSymlinkRace(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	outside := write(t, "secret\n", dir, "outside", "t.txt")
	write(t, "inside\n", root, "real", "t.txt")
	write(t, "inside\n", root, "moving", "t.txt")
	moving := filepath.Join(root, "moving")
	s := openStore(t, Options{Roots: []string{root}})

	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.RemoveAll(moving)
			os.Symlink(filepath.Dir(outside), moving)
			os.Remove(moving)
			os.Symlink("real", moving)
		}
	})
	for range 300 {
		v, err := s.Attach(context.Background(), &gate.Event{TranscriptPath: filepath.Join(moving, "t.txt")})
		if err != nil {
			continue
		}
		got, err := v.ReadFile(context.Background(), 1, 1)
		if err != nil || strings.Contains(got, "secret") {
			t.Errorf("got %q, %v", got, err)
		}
		v.Close()
	}
	close(stop)
	swapping.Wait()
}

func TestNamedMessages(t *testing.T) {
	user := `{"role":"user","content":"hi"}` + "\n"
	const rendered = "=== user ===\nhi\n"
	for _, tc := range []struct{ name, format, file, want string }{
		{"messages", "", user + user, rendered + rendered},
		{"text", "", "just text\n" + user[:10], "just text\n" + user[:10]},
		{"other JSON lines are text", "", `{"type":"x"}` + "\n", `{"type":"x"}` + "\n"},
		{"said to be text", "text", user, user},
		{"said to be messages", "ndjson", "", ""},
		{"fault transcript-06: only the user has spoken", "", user, rendered},
		{"fault transcript-06: empty file", "", "", ""},
		{"fault transcript-14: a cut line", "", user + `{"role":"user","cont` + "\n" + strings.Repeat(user, 50),
			strings.Repeat(rendered, 51) + skippedLine(1)},
		{"fault transcript-15: cut, empty and other lines", "", `{"role":"us` + "\n\n[1]\n" + user + `"text"` + "\n" + `{"role":"assistant","content":"torn`,
			rendered + skippedLine(5)},
		{"fault transcript-20: raw U+2028", "", "{\"role\":\"user\",\"content\":\"a\u2028b\u2029c\"}\n", "=== user ===\na␤b␤c\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			path := write(t, tc.file, root, "t.jsonl")
			s := openStore(t, Options{Roots: []string{root}})
			v := attach(t, s, &gate.Event{TranscriptPath: path, TranscriptFormat: tc.format})
			if got := contents(t, v); got != tc.want {
				t.Errorf("the view is %q, want %q", got, tc.want)
			}
			if v.RawPath() != path {
				t.Errorf("the raw path is %q", v.RawPath())
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			if left := tempFiles(t, s); len(left) > 0 {
				t.Errorf("after Close %q are left", left)
			}
		})
	}
	t.Run("a line that is too long is left out", func(t *testing.T) {
		root := t.TempDir()
		path := write(t, user+`{"role":"user","content":"`+strings.Repeat("x", 2000)+`"}`+"\n"+user, root, "t.jsonl")
		s := openStore(t, Options{Roots: []string{root}, MaxMessageBytes: 1000})
		if got := contents(t, attach(t, s, &gate.Event{TranscriptPath: path})); got != rendered+rendered+skippedLine(1) {
			t.Errorf("the view is %q", got)
		}
	})
}

func TestRawPath(t *testing.T) {
	s := openStore(t, Options{})
	replace(t, s, "s", "a\n")
	if v := attach(t, s, &gate.Event{Session: "s"}); v.RawPath() != v.Path() {
		t.Errorf("a text's raw path is %q, its path %q", v.RawPath(), v.Path())
	}
	if _, err := s.Append(t.Context(), "s", 0, ndjson, strings.NewReader(`{"role":"user"}`)); err != nil {
		t.Fatal(err)
	}
	if v := attach(t, s, &gate.Event{Session: "s"}); v.RawPath() != "" {
		t.Errorf("rendered messages have the raw path %q", v.RawPath())
	}
}

func TestClosedStoreFailsPlainly(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	replace(t, s, "s", "x")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attach(t.Context(), &gate.Event{Session: "s"}); err == nil {
		t.Error("Attach after Close gives no error")
	}
	if _, err := s.Replace(t.Context(), "s", 0, text, strings.NewReader("y")); err == nil {
		t.Error("Replace after Close gives no error")
	}
}
