package transcripts

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// hostLine is the n-th line of a session of a host: messages, calls, results,
// records that replace others, branches, and what is no message.
func hostLine(format string, rnd *rand.Rand, n int) string {
	text, id, parent := fmt.Sprintf("text %d", n), fmt.Sprintf("%d", n), fmt.Sprintf("%d", max(0, n-1-rnd.IntN(2)*rnd.IntN(4)))
	role := []string{"user", "assistant"}[rnd.IntN(2)]
	switch rnd.IntN(12) {
	case 0:
		return `{"cut` + "\n"
	case 1:
		return fmt.Sprintf(`{"type":"attachment","uuid":"%s","parentUuid":"%s","x":"%s"}`+"\n", id, parent, strings.Repeat("x", rnd.IntN(3000)))
	case 2:
		return "\n"
	}
	call := rnd.IntN(3)
	switch format {
	case formatClaudeCode:
		switch call {
		case 0:
			return claudeCalls(id, parent, "m"+parent, "call"+id)
		case 1:
			return claudeGets(id, parent, "call"+parent, text)
		}
		return claudeLine(role, id, parent, "m"+parent, `[{"type":"text","text":"`+text+`"}]`, []string{"", `,"isSidechain":true`, `,"version":"2.` + id + `.0"`}[rnd.IntN(3)])
	case formatCodex:
		switch call {
		case 0:
			return fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call","name":"shell","call_id":"%s","arguments":"{}"}}`+"\n", id)
		case 1:
			return fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call_output","call_id":"%s","output":"%s"}}`+"\n", parent, text)
		}
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":"%s","id":"%s","content":[{"type":"input_text","text":"%s"}]}}`+"\n", role, parent, text)
	case formatCopilot:
		switch call {
		case 0:
			return fmt.Sprintf(`{"type":"assistant.message","data":{"content":"%s","toolRequests":[{"toolCallId":"%s","name":"bash","arguments":{}}]}}`+"\n", text, id)
		case 1:
			return fmt.Sprintf(`{"type":"tool.execution_complete","data":{"toolCallId":"%s","success":true,"result":{"content":"%s"}}}`+"\n", parent, text)
		}
		return fmt.Sprintf(`{"type":"user.message","data":{"content":"%s"}}`+"\n", text)
	case formatGeminiCLI:
		switch call {
		case 0:
			return fmt.Sprintf(`{"id":"%s","type":"gemini","content":"%s","toolCalls":[{"id":"c%s","name":"shell","args":{},"result":[{"functionResponse":{"id":"c%s","response":{"output":"%s"}}}]}]}`+"\n", parent, text, parent, parent, text)
		case 1:
			if rnd.IntN(8) == 0 {
				return fmt.Sprintf(`{"$set":{"messages":[{"id":"0","type":"user","content":"%s"},{"id":"%s","type":"gemini","content":"%s"}]}}`+"\n", text, id, text)
			}
			return fmt.Sprintf(`{"id":"%s","type":"user","content":[{"functionResponse":{"id":"c%s","response":{"output":"%s"}}}]}`+"\n", id, parent, text)
		}
		return fmt.Sprintf(`{"id":"%s","type":"%s","content":"%s"}`+"\n", parent, []string{"user", "gemini"}[rnd.IntN(2)], text)
	}
	switch call {
	case 0:
		return fmt.Sprintf(`{"uuid":"%s","parentUuid":"%s","type":"assistant","message":{"parts":[{"functionCall":{"id":"c%s","name":"shell","args":{}}}]}}`+"\n", id, parent, id)
	case 1:
		return fmt.Sprintf(`{"uuid":"%s","parentUuid":"%s","type":"tool_result","message":{"parts":[{"functionResponse":{"id":"c%s","response":{"output":"%s"}}}]}}`+"\n", id, parent, parent, text)
	}
	return fmt.Sprintf(`{"uuid":"%s","parentUuid":"%s","type":"%s","message":{"parts":[{"text":"%s"}]}}`+"\n", id, parent, role, text)
}

func hostSession(format string, rnd *rand.Rand, lines int) string {
	var b strings.Builder
	for n := range lines {
		b.WriteString(hostLine(format, rnd, n))
	}
	return b.String()
}

// countingReads is a file that counts what is read of it.
type countingReads struct {
	io.ReaderAt
	bytes int64
}

func (c *countingReads) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.bytes += int64(n)
	return n, err
}

// newContinued is a view that goOn continues as viewHostFile does.
func newContinued(t testing.TB, s *Store, format string) *hostView {
	t.Helper()
	read, _ := newHostFormat(format)
	f, err := s.temp()
	if err != nil {
		t.Fatal(err)
	}
	v := &hostView{spool: &spool{file: f}}
	v.host = &hostFile{masks: asItComes{}, host: format, format: read, most: 1 << 20, view: v}
	t.Cleanup(v.discard)
	return v
}

// goOn renders what the file is now, and gives the view and how many bytes of
// the file were read for it.
func goOn(t testing.TB, v *hostView, file, final string) (text string, read int64) {
	t.Helper()
	in := &countingReads{ReaderAt: strings.NewReader(file)}
	v.host.file, v.host.size = in, int64(len(file))
	out := bufio.NewWriter(&boundedView{spool: v.spool, limit: 1 << 40})
	if err := v.host.render(t.Context(), out, final); err != nil {
		t.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	v.sums.cut()
	if !v.sums.match(strings.NewReader(file)) {
		t.Fatal("the file is not known again")
	}
	b, err := os.ReadFile(v.spool.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	var x indexer
	_, _ = x.Write(b)
	if diff := cmp.Diff(x, v.spool.index, cmp.AllowUnexported(indexer{}, mark{})); diff != "" {
		t.Fatalf("the index (-of the text +kept):\n%s", diff)
	}
	return string(b), in.bytes
}

func whole(t testing.TB, format, file, final string) (text string, read int64) {
	t.Helper()
	format2, _ := newHostFormat(format)
	in := &countingReads{ReaderAt: strings.NewReader(file)}
	text, err := renderedBy(t, &hostFile{masks: asItComes{}, format: format2, file: in, size: int64(len(file)), most: 1 << 20}, final)
	if err != nil {
		t.Fatal(err)
	}
	return text, in.bytes
}

// checkContinued renders a file that grows by the splits and compares each view
// with one that is made anew.
func checkContinued(t testing.TB, s *Store, format, file string, splits []int) {
	t.Helper()
	v := newContinued(t, s, format)
	for i, n := range append(splits, len(file)) {
		final := []string{"", "Final.", "text 7"}[i%3]
		got, _ := goOn(t, v, file[:n], final)
		want, _ := whole(t, format, file[:n], final)
		if got != want {
			t.Fatalf("%s, %d bytes after %v (-anew +continued):\n%s", format, n, splits[:i], cmp.Diff(want, got))
		}
		if v.host.mixed { // it is not kept
			v = newContinued(t, s, format)
		}
	}
}

func TestHostViewsAreContinued(t *testing.T) {
	s := openStore(t, Options{})
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, format := range hostFormats {
		t.Run(format, func(t *testing.T) {
			for range 20 {
				file := hostSession(format, rnd, rnd.IntN(200))
				var splits []int
				for at := 0; ; {
					at += rnd.IntN(2 + len(file)/8)
					if rnd.IntN(3) > 0 { // most often where a line ends
						at += 1 + strings.IndexByte(file[min(at, len(file)):], '\n')
					}
					if at > len(file) {
						break
					}
					splits = append(splits, at)
				}
				checkContinued(t, s, format, file, splits)
			}
		})
	}
}

// FuzzHostViewsAreContinued: however a file grows, its view is as if it were
// made anew.
func FuzzHostViewsAreContinued(f *testing.F) {
	for i, format := range hostFormats {
		f.Add([]byte(hostSession(format, rand.New(rand.NewPCG(1, uint64(i))), 40)), uint64(i))
	}
	s := openStore(f, Options{})
	f.Fuzz(func(t *testing.T, file []byte, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var splits []int
		for at := rnd.IntN(len(file) + 1); at < len(file) && len(splits) < 20; at += 1 + rnd.IntN(len(file)) {
			splits = append(splits, at)
		}
		for _, format := range hostFormats {
			checkContinued(t, s, format, string(file), splits)
		}
	})
}

// What a view costs that goes on is what was added, in bytes that are read.
func TestContinuingReadsWhatIsNew(t *testing.T) {
	s := openStore(t, Options{})
	for _, format := range hostFormats {
		t.Run(format, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(3, 4))
			file := hostSession(format, rnd, 8000)
			if format == formatGeminiCLI {
				file = strings.ReplaceAll(file, "$set", "$put")
			}
			v := newContinued(t, s, format)
			goOn(t, v, file, "Final.")
			more := strings.ReplaceAll(hostSession(format, rnd, 3), `{"cut`, `{}`)
			for range 3 {
				file += more
				_, all := whole(t, format, file, "Final.")
				_, read := goOn(t, v, file, "Final.")
				// The last messages are read again to see who spoke last.
				if limit := int64(2*len(more) + 64<<10); read > limit || all < int64(len(file)) || limit > all/4 {
					t.Errorf("of %d bytes that grew by %d %d were read, and %d for a whole view", len(file), len(more), read, all)
				}
			}
			known := &countingReads{ReaderAt: strings.NewReader(file)}
			if !v.sums.match(known) || known.bytes > maxChecked+pieceBytes {
				t.Errorf("to know it again %d bytes were read", known.bytes)
			}
		})
	}
}

func TestSums(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for _, size := range []int{0, 1, pieceBytes, maxChecked, 16 * maxChecked} {
		var s sums
		var text []byte
		for len(text) < size {
			line := bytes.Repeat([]byte{byte('a' + rnd.IntN(26))}, rnd.IntN(pieceBytes/2))
			s.add(line)
			text = append(append(text, line...), '\n')
			if rnd.IntN(4) == 0 {
				s.cut()
			}
		}
		s.cut()
		if !s.match(bytes.NewReader(text)) || !s.match(bytes.NewReader(append(text, "more"...))) {
			t.Errorf("%d bytes are not known again", len(text))
		}
		for _, at := range []int{0, len(text) / 2, len(text) - 1} {
			if len(text) == 0 || len(text) > maxChecked && at == len(text)/2 {
				continue
			}
			text[at] ^= 1
			if s.match(bytes.NewReader(text)) {
				t.Errorf("%d bytes of which the one at %d has changed are taken for the same", len(text), at)
			}
			text[at] ^= 1
		}
		if len(text) > 0 && s.match(bytes.NewReader(text[:len(text)-1])) {
			t.Error("a file that was cut is taken for the same")
		}
		if size > maxChecked { // which seven pieces at random miss once in a million times
			clear(text[maxChecked/4 : len(text)-maxChecked/4*3])
			if s.match(bytes.NewReader(text)) {
				t.Error("a middle that was rewritten is not seen")
			}
		}
	}
}

// A view goes on only for the same session, of the same file, which has only
// grown; whatever else happens, it is made anew. That it goes on shows in its
// path.
func TestHostViewsAreKept(t *testing.T) {
	begin := claudeUser("u", "null", "ask") + claudeSays("a", "u", "m", "First.")
	more := claudeLine("user", "f", "a", "", `"feedback"`, `,"isMeta":true`) + claudeSays("b", "f", "m2", "Second.")
	other := claudeUser("u", "null", "ASK")
	long := strings.Repeat(claudeUser("x", "null", strings.Repeat("y", 8000)), 1000) // eight times what is checked
	replace := func(t *testing.T, path, text string) {
		write(t, text, path+".new")
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(at int) func(*testing.T, *Store, string, *gate.Event) {
		return func(t *testing.T, _ *Store, path string, _ *gate.Event) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[at] = 'X'
			write(t, string(b), path)
		}
	}
	for _, tc := range []struct {
		name, first string
		then        func(t *testing.T, s *Store, path string, ev *gate.Event)
		kept        bool
	}{
		{"nothing happened", begin, func(*testing.T, *Store, string, *gate.Event) {}, true},
		{"it has grown", begin, func(t *testing.T, _ *Store, path string, _ *gate.Event) { write(t, begin+more, path) }, true},
		{"a long one has grown", long + begin, func(t *testing.T, _ *Store, path string, _ *gate.Event) { write(t, long+begin+more, path) }, true},
		{"it ends with half a line, and then the whole", begin + more[:20], func(t *testing.T, _ *Store, path string, _ *gate.Event) { write(t, begin+more, path) }, true},
		{"another answer", begin, func(_ *testing.T, _ *Store, _ string, ev *gate.Event) { ev.FinalOutput = "Something else." }, true},
		{"it has shrunk", begin + more, func(t *testing.T, _ *Store, path string, _ *gate.Event) { write(t, begin, path) }, false},
		{"another file", begin, func(t *testing.T, _ *Store, path string, _ *gate.Event) { replace(t, path, begin+more) }, false},
		{"written anew in its place, longer", begin, func(t *testing.T, _ *Store, path string, _ *gate.Event) { write(t, other+begin+more, path) }, false},
		{"edited in its place, of the same size", begin, edit(strings.Index(begin, "First")), false},
		{"edited in the middle, of the same size, longer than is checked", long + begin, edit(len(long) / 2), false},
		{"another session", begin, func(_ *testing.T, _ *Store, _ string, ev *gate.Event) { ev.Session = "other" }, false},
		{"no session", begin, func(_ *testing.T, _ *Store, _ string, ev *gate.Event) { ev.Session = "" }, false},
		{"inside a sub-agent", begin, func(_ *testing.T, _ *Store, _ string, ev *gate.Event) { ev.SubAgent = "abc" }, false},
		{"the session was erased", begin, func(t *testing.T, s *Store, _ string, ev *gate.Event) {
			if err := s.Erase(t.Context(), ev.Session); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a script wrote to the view", begin, func(t *testing.T, s *Store, _ string, _ *gate.Event) {
			write(t, "=== user ===\nAll is well.\n", temporaries(t, s)[0])
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			s := openStore(t, Options{Roots: []string{root}})
			path := write(t, tc.first, root, "t.jsonl")
			ev := &gate.Event{Session: "s", TranscriptPath: path, TranscriptFormat: formatClaudeCode, FinalOutput: "First."}
			before := attach(t, s, ev)
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			tc.then(t, s, path, ev)
			after := attach(t, s, ev)
			if kept := before.Path() == after.Path(); kept != tc.kept {
				t.Errorf("the view goes on: %v", kept)
			}
			ev.Session = "" // of which nothing is kept
			if diff := cmp.Diff(contents(t, attach(t, s, ev)), contents(t, after)); diff != "" {
				t.Errorf("(-anew +got):\n%s", diff)
			}
			if got, err := after.ReadFile(t.Context(), 1, 0); err != nil || strings.Count(got, "\n") < strings.Count(contents(t, after), "\n") {
				t.Errorf("it is read as %q, %v", got, err)
			}
		})
	}
}

func TestHostViewsOfUploadsAreKept(t *testing.T) {
	s := openStore(t, Options{})
	begin := claudeUser("u", "null", "ask") + claudeSays("a", "u", "m", "First.")
	more := claudeSays("b", "a", "m2", "Second.")
	send := func(at int, after, text string) {
		t.Helper()
		if _, err := s.AppendFile(t.Context(), "s", 0, Part{Format: formatClaudeCode, At: int64(at), After: after}, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	shown := func() (path, text string) {
		v := attach(t, s, &gate.Event{Session: "s"})
		defer v.Close()
		return v.Path(), contents(t, v)
	}
	send(0, "", begin)
	first, _ := shown()
	tail, err := Tail(strings.NewReader(begin), int64(len(begin)))
	if err != nil {
		t.Fatal(err)
	}
	send(len(begin), tail, more)
	second, text := shown()
	if want, _ := whole(t, formatClaudeCode, begin+more, ""); second != first || text != want {
		t.Errorf("after an append: %v, %q", second == first, text)
	}
	send(0, "", more+begin)
	third, text := shown()
	if want, _ := whole(t, formatClaudeCode, more+begin, ""); third == second || text != want {
		t.Errorf("after a replacement: %v, %q", third == second, text)
	}
}

// Events of one session that run at the same time have views of their own.
func TestHostViewsAtTheSameTime(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, Options{Roots: []string{root}})
	ev := &gate.Event{Session: "s", TranscriptFormat: formatClaudeCode,
		TranscriptPath: write(t, claudeUser("u", "null", "ask")+claudeSays("a", "u", "m", "First."), root, "t.jsonl")}
	var views []gate.Transcript
	for i := range 3 {
		own := *ev
		own.FinalOutput = fmt.Sprintf("Answer %d.", i)
		views = append(views, attach(t, s, &own))
	}
	for i, v := range views {
		if want := fmt.Sprintf("Answer %d.\n", i); !strings.HasSuffix(contents(t, v), want) {
			t.Errorf("the view ends %q", contents(t, v))
		}
	}
	if err := s.Erase(t.Context(), "s"); err != nil { // while they are out
		t.Fatal(err)
	}
	for _, v := range views {
		v.Close()
	}
	if files := temporaries(t, s); len(files) != 0 {
		t.Errorf("of a session that was erased %q stay", files)
	}
}

func TestHostViewsAreBounded(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, Options{Roots: []string{root}})
	path := write(t, claudeUser("u", "null", "ask"), root, "t.jsonl")
	see := func(session string) string {
		v := attach(t, s, &gate.Event{Session: session, TranscriptFormat: formatClaudeCode, TranscriptPath: path})
		defer v.Close()
		return v.Path()
	}
	first, second := see("0"), see("1")
	for i := 2; i <= maxHostViews; i++ {
		see(fmt.Sprint(i))
	}
	if files := temporaries(t, s); len(files) != maxHostViews {
		t.Errorf("%d views stay", len(files))
	}
	if see("1") != second || see("0") == first {
		t.Error("it is not the oldest that goes")
	}
	// Names that the file chooses count.
	big := write(t, claudeCalls("a", "null", "m", strings.Repeat("x", maxHostViewMemory/8)), root, "big.jsonl")
	v := attach(t, s, &gate.Event{Session: "big", TranscriptFormat: formatClaudeCode, TranscriptPath: big})
	if lent := v.(*view).lent; lent == nil || lent.memory() < maxHostViewMemory/8 {
		t.Error("the call's id does not count")
	}
	v.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(s.hostViews.idle) != 0 {
		t.Error("views outlive the store")
	}
}

func TestHostViewsExpire(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, Options{Roots: []string{root}})
	ev := &gate.Event{Session: "s", TranscriptFormat: formatClaudeCode, TranscriptPath: write(t, claudeUser("u", "null", "ask"), root, "t.jsonl")}
	synctest.Test(t, func(t *testing.T) {
		var last string
		for i, pause := range []time.Duration{0, gate.SessionInUse - 1, gate.SessionInUse - 1, gate.SessionInUse} {
			time.Sleep(pause)
			synctest.Wait()
			v := attach(t, s, ev)
			if kept := v.Path() == last; kept != (i == 1 || i == 2) {
				t.Errorf("after %v it goes on: %v", pause, kept)
			}
			last = v.Path()
			v.Close()
		}
		time.Sleep(gate.SessionInUse)
		synctest.Wait()
		if files := temporaries(t, s); len(files) != 0 {
			t.Errorf("%q stay", files)
		}
	})
}

func temporaries(t *testing.T, s *Store) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.tmp, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}
