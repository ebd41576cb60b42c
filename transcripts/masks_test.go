package transcripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stopgate/gate"
)

// hashes are masks of what begins with "KEY-", in JSON also where that is escaped.
type hashes struct{}

var key1 = regexp.MustCompile(`KEY-[a-z]{4,}`)

func (hashes) Text(text []byte) []byte {
	return key1.ReplaceAllFunc(text, func(found []byte) []byte { return bytes.Repeat([]byte{'#'}, len(found)) })
}

func (h hashes) Behind(before, text []byte) []byte {
	return h.Text(append(bytes.Clone(before), text...))[len(before):]
}

func (h hashes) JSON(doc []byte) []byte {
	if !json.Valid(doc) {
		return h.Text(doc)
	}
	return bytes.ReplaceAll(h.Text(doc), []byte(`KEY\u002dlong`), []byte(`#############`))
}

func (h hashes) Reader(r io.Reader) io.Reader {
	text, err := io.ReadAll(r)
	return io.MultiReader(bytes.NewReader(h.Text(text)), errReader{err})
}

func (hashes) Overlap() int { return 64 }

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) {
	if r.err == nil {
		return 0, io.EOF
	}
	return 0, r.err
}

// noSecretIn fails the test where a file below a directory has part of a secret. It
// answers how many files there are.
func noSecretIn(t *testing.T, dir, when string) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, part := range []string{"KEY-", "KEY\\u002d", "long"} {
			if bytes.Contains(b, []byte(part)) {
				t.Errorf("%s: %s has %q in %.200q", when, filepath.Base(path), part, b)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// searching is a body that the directory is searched for while it is read.
func searching(t *testing.T, s *Store, body string) io.Reader {
	if !s.masked() {
		return strings.NewReader(body)
	}
	return io.MultiReader(strings.NewReader(body), readFunc(func() { noSecretIn(t, s.dir, "on its way") }))
}

type readFunc func()

func (f readFunc) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

const asMessages = `{"role":"user","content":"the KEY-long one"}
{"role":"assistant","content":[{"type":"text","text":"use KEY-long"},{"type":"tool_use","name":"B","input":{"a":"KEY\u002dlong","b":"` + "x" + `"}}]}
`

// However a conversation comes, its secrets are written nowhere: not while it comes,
// not while it is seen, not afterwards. What is seen is as it would be, but for them.
func TestNothingIsWrittenUnmasked(t *testing.T) {
	root := t.TempDir()
	host := claudeUser("u", "null", "the KEY-long one") + claudeSays("a", "u", "m", `use KEY\u002dlong`)
	array := "[" + strings.Join(strings.Split(strings.TrimSpace(asMessages), "\n"), ",") + "]"
	write := func(name, content string) string {
		path := filepath.Join(root, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	upload := func(s *Store, kind, body string) error {
		_, err := s.Replace(t.Context(), "s", 0, kind, searching(t, s, body))
		return err
	}
	ofSession := func(*Store) gate.Event { return gate.Event{Session: "s"} }
	for name, c := range map[string]struct {
		send func(s *Store) error
		ev   func(s *Store) gate.Event
	}{
		"text":     {func(s *Store) error { return upload(s, "text/plain", "the KEY-long one\n") }, ofSession},
		"messages": {func(s *Store) error { return upload(s, "application/x-ndjson", asMessages) }, ofSession},
		"array":    {func(s *Store) error { return upload(s, "application/json", array) }, ofSession},
		"string":   {func(s *Store) error { return upload(s, "application/json", `"the KEY\u002dlong one"`) }, ofSession},
		"inline":   {nil, func(*Store) gate.Event { return gate.Event{Session: "s", InlineTranscript: []byte(array)} }},
		"inline text": {nil, func(*Store) gate.Event {
			return gate.Event{Session: "s", InlineTranscript: []byte(`"the KEY-long one"`)}
		}},
		"inline, dry": {nil, func(*Store) gate.Event { return gate.Event{Session: "s", Dry: true, InlineTranscript: []byte(array)} }},
		"file of a host": {nil, func(*Store) gate.Event {
			return gate.Event{Session: "s", TranscriptPath: write("h.jsonl", host), TranscriptFormat: formatClaudeCode, FinalOutput: "at last KEY-long"}
		}},
		"file, messages": {nil, func(*Store) gate.Event { return gate.Event{Session: "s", TranscriptPath: write("m.jsonl", asMessages)} }},
		"host's upload": {func(s *Store) error {
			_, err := s.AppendFile(t.Context(), "s", 0, Part{Format: formatClaudeCode}, searching(t, s, host))
			return err
		}, func(*Store) gate.Event { return gate.Event{Session: "s"} }},
		"file as it was": {nil, func(s *Store) gate.Event {
			return marked(t, s, gate.Event{TranscriptPath: write("h2.jsonl", host), TranscriptFormat: formatClaudeCode})
		}},
		"text as it was": {nil, func(s *Store) gate.Event {
			return marked(t, s, gate.Event{TranscriptPath: write("t.txt", "the KEY-long one\n")})
		}},
		"upload, earlier": {func(s *Store) error { return upload(s, "text/plain", "the KEY-long one\n") }, func(s *Store) gate.Event { return marked(t, s, gate.Event{Session: "s"}) }},
	} {
		t.Run(name, func(t *testing.T) {
			var seen [2]string
			for i, masks := range []Masks{nil, hashes{}} {
				s := openStore(t, Options{Roots: []string{root}, Masks: masks})
				if c.send != nil {
					if err := c.send(s); err != nil {
						t.Fatal(err)
					}
				}
				ev := c.ev(s)
				v := attach(t, s, &ev)
				seen[i] = viewText(t, v)
				if masks == nil {
					continue
				}
				if noSecretIn(t, s.dir, "while it is seen") < 2 {
					t.Error("nothing is written: the test shows nothing")
				}
				if err := v.Close(); err != nil {
					t.Error(err)
				}
				noSecretIn(t, s.dir, "afterwards")
			}
			want := strings.NewReplacer("KEY-long", "#", `KEY\u002dlong`, "#").Replace(seen[0])
			if got := regexp.MustCompile(`#+`).ReplaceAllString(seen[1], "#"); got != want || !strings.Contains(want, "#") {
				t.Errorf("it reads\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// marked is an event of an evaluation that is judged again.
func marked(t *testing.T, s *Store, ev gate.Event) gate.Event {
	t.Helper()
	var err error
	if ev.TranscriptMark, err = s.Mark(&ev); err != nil || ev.TranscriptMark == nil {
		t.Fatalf("mark %v, %v", ev.TranscriptMark, err)
	}
	return ev
}

// Scripts read a host's file as it was then with its secrets masked; it is still the
// host's JSON.
func TestRawCopyIsMasked(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "h.jsonl")
	content := claudeUser("u", "null", "KEY-long") + "no JSON with KEY-long\n\n" + `{"KEY-long":`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, Options{Roots: []string{root}, Masks: hashes{}})
	ev := marked(t, s, gate.Event{TranscriptPath: path, TranscriptFormat: formatClaudeCode})
	raw, err := os.ReadFile(attach(t, s, &ev).RawPath())
	want := strings.ReplaceAll(claudeUser("u", "null", "KEY-long"), "KEY-long", "########") + strings.Repeat("*", 21) + "\n\n" + strings.Repeat("*", 12)
	if err != nil || string(raw) != want {
		t.Errorf("%q, %v, want %q", raw, err, want)
	}
}

// Text that is sent in pieces has the size that was sent. A secret in two pieces:
// the second is masked, and what comes between two words is not.
func TestAppendTextMasked(t *testing.T) {
	s := openStore(t, Options{Masks: hashes{}})
	sent := 0
	for _, piece := range []string{"a KEY-lo", "ng b", "\nKEY", "-abcdef c", " KEY-abcd", strings.Repeat(" d", 40) + " KEY-abcdefgh\n", ""} {
		sent += len(piece)
		size, err := s.Append(t.Context(), "s", 0, text, strings.NewReader(piece))
		if err != nil || size.Bytes != int64(sent) {
			t.Fatalf("%q: %+v, %v; %d bytes were sent", piece, size, err, sent)
		}
	}
	want := "a KEY-lo## b\nKEY####### c ########" + strings.Repeat(" d", 40) + " ############\n"
	if got := readAll(t, s, "s"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// copilotLine is a line of a host.
func copilotLine(n int, says string) string {
	return fmt.Sprintf(`{"type":"user.message","data":{"content":"%d %s"}}`+"\n", n, says)
}

// A host's file goes on where it ended as its host has it: what is compared is what was
// sent, and not what is kept of it.
func TestAppendFileMaskedGoesOn(t *testing.T) {
	secret, plain, long := copilotLine(1, "KEY-long"), copilotLine(2, "nothing"), copilotLine(3, strings.Repeat("much ", 1000))
	for _, c := range []struct {
		name     string
		parts    []string
		unsaid   bool // clients that do not say what the part ends with
		conflict int  // the part that is refused; 0: none
	}{
		{"with a secret, and said", []string{secret, plain, secret, plain, plain}, false, 0},
		{"with a secret, and not said", []string{secret, plain, plain}, true, 2},
		{"with a secret far back", []string{secret, long, plain, plain}, true, 0},
		{"without one", []string{plain, plain, plain}, true, 0},
		{"with a secret now", []string{plain, plain + secret, long}, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t, Options{Masks: hashes{}})
			whole := ""
			for i, text := range c.parts {
				p := Part{Format: formatCopilot, At: int64(len(whole)), After: tailOf(t, whole)}
				if !c.unsaid {
					p.Then = tailOf(t, whole+text)
				}
				size, err := s.AppendFile(t.Context(), "s", 0, p, strings.NewReader(text))
				if c.conflict > 0 && i == c.conflict {
					if gate.CodeOf(err) != gate.CodeConflict {
						t.Fatalf("part %d: %v, want a conflict", i, err)
					}
					p, text = Part{Format: formatCopilot}, whole+text // as the client then does
					whole = ""
					size, err = s.AppendFile(t.Context(), "s", 0, p, strings.NewReader(text))
				}
				if err != nil {
					t.Fatalf("part %d: %v", i, err)
				}
				if whole += text; size.Bytes != int64(len(whole)) || size.Lines != int64(strings.Count(whole, "\n")) {
					t.Errorf("part %d: %+v of %d bytes", i, size, len(whole))
				}
			}
			stored, err := os.ReadFile(committed(t, s, "s"))
			if want := strings.ReplaceAll(whole, "KEY-long", "########"); err != nil || string(stored) != want {
				t.Errorf("%q, %v, want %q", stored, err, want)
			}
			other := strings.Replace(whole, "nothing", "NOTHING", 1)
			for _, after := range []string{tailOf(t, other), tailOf(t, string(stored)), "", notKnown} {
				if after == tailOf(t, whole) {
					continue // nothing of it is hidden
				}
				_, err := s.AppendFile(t.Context(), "s", 0, Part{Format: formatCopilot, At: int64(len(whole)), After: after}, strings.NewReader(plain))
				if gate.CodeOf(err) != gate.CodeConflict {
					t.Errorf("after %.20s: %v, want a conflict", after, err)
				}
			}
		})
	}
}

func tailOf(t *testing.T, text string) string {
	t.Helper()
	tail, err := Tail(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	return tail
}

// Only whole lines are taken, so that each is looked into as a whole: wherever a part
// is cut, the rest comes with the next. What is no line of a host, or a longer one than
// there may be, is not kept.
func TestAppendFileMaskedTakesWholeLines(t *testing.T) {
	file := "\ufeff" + copilotLine(1, `KEY\u002dlong`) + "\r\n\n" + copilotLine(2, "é KEY-long") + `["KEY-long"]` + "\nno JSON, KEY-long\n" +
		copilotLine(3, strings.Repeat("KEY-long", 40)) + strings.TrimSpace(copilotLine(4, "KEY-long"))
	want := "\ufeff" + strings.Replace(copilotLine(1, `KEY\u002dlong`), `KEY\u002dlong`, "#############", 1) + "\r\n\n" + strings.Replace(copilotLine(2, "é KEY-long"), "KEY-long", "########", 1) +
		strings.Repeat("*", 12) + "\n" + strings.Repeat("*", 17) + "\n" + strings.Repeat("*", len(copilotLine(3, strings.Repeat("KEY-long", 40)))-1) + "\n" +
		strings.TrimSpace(strings.Replace(copilotLine(4, "KEY-long"), "KEY-long", "########", 1))
	for _, part := range []int{1 << 20, 500, 300, 97, 7} {
		s := openStore(t, Options{Masks: hashes{}, MaxMessageBytes: 200})
		for at, n := int64(0), part; at < int64(len(file)); {
			text := file[at:min(int(at)+n, len(file))]
			if i := strings.LastIndexByte(text, '\n'); i >= 0 {
				text = text[:i+1]
			}
			p := Part{Format: formatCopilot, At: at, After: tailOf(t, file[:at]), Then: tailOf(t, file[:int(at)+len(text)])}
			size, err := s.AppendFile(t.Context(), "s", 0, p, searching(t, s, text))
			if err != nil {
				t.Fatalf("in parts of %d, at %d: %v", part, at, err)
			}
			if n *= 2; size.Bytes > at { // as clients do, see hookclient
				at, n = size.Bytes, part
			} else if int(at)+len(text) == len(file) {
				t.Fatalf("in parts of %d: %q is left", part, text)
			}
		}
		if stored, err := os.ReadFile(committed(t, s, "s")); err != nil || string(stored) != want {
			t.Errorf("in parts of %d: %q, %v, want %q", part, stored, err, want)
		}
		if text := readUpload(t, s, "s"); !strings.Contains(text, "1 #############\n") || !strings.Contains(text, "é ########\n") || !strings.Contains(text, "4 ########\n") {
			t.Errorf("in parts of %d: %s", part, text)
		}
	}
}

// A file that was kept in the other way is not gone on with: it is sent anew, and
// then all of it is as it is to be.
func TestAppendFileMasksAreSwitched(t *testing.T) {
	dir := t.TempDir()
	first, second := copilotLine(1, "KEY-long"), copilotLine(2, "KEY-long")
	for i, masks := range []Masks{nil, hashes{}, nil} {
		s := openStore(t, Options{Dir: dir, Masks: masks})
		p := Part{Format: formatCopilot, At: int64(len(first)), After: tailOf(t, first), Then: tailOf(t, first+second)}
		if _, err := s.AppendFile(t.Context(), "s", 0, p, strings.NewReader(second)); gate.CodeOf(err) != gate.CodeConflict {
			t.Errorf("%d: %v, want a conflict", i, err)
		}
		if _, err := s.AppendFile(t.Context(), "s", 0, Part{Format: formatCopilot}, strings.NewReader(first)); err != nil {
			t.Fatal(err)
		}
		if stored, err := os.ReadFile(committed(t, s, "s")); err != nil || bytes.Contains(stored, []byte("KEY-")) != (masks == nil) {
			t.Errorf("%d: %q, %v", i, stored, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The parts of a host's file may go to several replicas, which know what was sent.
func TestSharedTextsAreMasked(t *testing.T) {
	x := newTexts()
	whole := ""
	for i := range 6 {
		s := openStore(t, Options{Shared: x, Masks: hashes{}})
		part := copilotLine(i, "KEY-long")
		p := Part{Format: formatCopilot, At: int64(len(whole)), After: tailOf(t, whole), Then: tailOf(t, whole+part)}
		if _, err := s.AppendFile(t.Context(), "s", 0, p, strings.NewReader(part)); err != nil {
			t.Fatalf("part %d: %v", i, err)
		}
		whole += part
		piece := []string{"a KEY-lo", "ng\n"}[i%2]
		if _, err := s.Append(t.Context(), "text", 0, text, strings.NewReader(piece)); err != nil {
			t.Fatal(err)
		}
	}
	want := map[key]string{keyOf("s"): strings.ReplaceAll(whole, "KEY-long", "########"), keyOf("text"): strings.Repeat("a KEY-lo##\n", 3)}
	for k, text := range want {
		if got := string(x.held[k].bytes); got != text {
			t.Errorf("shared %q, want %q", got, text)
		}
	}
}

// The answer of a Stop is still found, and stands in the view once, where the file
// and the payload say the same.
func TestClaudeCode10MaskedUpload(t *testing.T) {
	s := openStore(t, Options{Masks: hashes{}})
	file := claudeUser("u", "null", "ask") + claudeSays("a", "u", "m", "use KEY-long")
	if _, err := s.AppendFile(t.Context(), "s", 0, Part{Format: formatClaudeCode}, strings.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	ev := gate.Event{Session: "s", FinalOutput: "use KEY-long"}
	if text := viewText(t, attach(t, s, &ev)); strings.Count(text, "use ########") != 1 || strings.Count(text, "=== assistant") != 1 {
		t.Errorf("%s", text)
	}
}
