package transcripts

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"stopgate/gate"
)

// committed is the file of a session's view.
func committed(t *testing.T, s *Store, session string) string {
	t.Helper()
	dir := s.sessionDir(keyOf(session))
	m, err := readMeta(dir)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, m.View)
}

func addTail(t *testing.T, path, tail string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(tail); err != nil {
		t.Fatal(err)
	}
}

// A writer that was killed between writing and committing leaves bytes that do
// not count.
func TestTornTail(t *testing.T) {
	s := openStore(t, Options{})
	replace(t, s, "s", "kept\n")
	torn := func() {
		addTail(t, committed(t, s, "s"), "never acknowled")
		addTail(t, committed(t, s, "s")+indexSuffix, "half a mark")
	}
	torn()
	if got := readAll(t, s, "s"); got != "kept\n" {
		t.Errorf("Read gives %q", got)
	}
	v := attach(t, s, &gate.Event{Session: "s"})
	if got, err := os.ReadFile(v.Path()); string(got) != "kept\n" || err != nil {
		t.Errorf("a script would read %q, %v", got, err)
	}
	torn()
	add(t, s, "s", "added\n")
	if got := readAll(t, s, "s"); got != "kept\nadded\n" {
		t.Errorf("after an append it is %q", got)
	}
	if got, err := os.ReadFile(committed(t, s, "s")); string(got) != "kept\nadded\n" || err != nil {
		t.Errorf("after an append the file holds %q, %v", got, err)
	}
}

// A writer that was killed before its Replace counted leaves files that the next
// one removes.
func TestTornReplace(t *testing.T) {
	s := openStore(t, Options{})
	replace(t, s, "s", "kept\n")
	dir := s.sessionDir(keyOf("s"))
	addTail(t, filepath.Join(dir, "OTHER.txt"), "half a view")
	addTail(t, filepath.Join(dir, "OTHER.txt"+indexSuffix), "x")
	addTail(t, filepath.Join(dir, metaName+".new"), `{"view":"OTH`)
	if got := readAll(t, s, "s"); got != "kept\n" {
		t.Errorf("Read gives %q", got)
	}
	replace(t, s, "s", "new\n")
	if got := readAll(t, s, "s"); got != "new\n" {
		t.Errorf("after a replace it is %q", got)
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 { // record and view; so short a text has no index
		t.Errorf("left are %v", files)
	}
}

// A lost or wrong index costs a scan, nothing else, also when the text goes on.
func TestIndexIsRebuilt(t *testing.T) {
	long := strings.Repeat("a line of text\n", 20000)
	for _, tc := range []struct {
		name   string
		damage func(path string) error
	}{
		{"missing", os.Remove},
		{"short", func(path string) error { return os.Truncate(path, markBytes-1) }},
		{"wrong", func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b[markBytes]++
			return os.WriteFile(path, b, 0o600)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := openStore(t, Options{})
			replace(t, s, "s", long)
			if err := tc.damage(committed(t, s, "s") + indexSuffix); err != nil {
				t.Fatal(err)
			}
			add(t, s, "s", long+"the end\n")
			v := attach(t, s, &gate.Event{Session: "s"})
			if v.(*view).known != nil {
				t.Fatal("the damage was not seen")
			}
			got, err := v.ReadFile(t.Context(), 40001, 5)
			if want := "40001\tthe end\n(lines 1–40000 of 40001 not shown)\n"; got != want || err != nil {
				t.Errorf("ReadFile gives %q, %v; want %q", got, err, want)
			}
		})
	}
}

// TestKilledWriter kills a process that appends line after line, again and
// again. Every line that it was told of is there, whole and once.
func TestKilledWriter(t *testing.T) {
	const env = "STOPGATE_TEST_APPEND_TO"
	if dir := os.Getenv(env); dir != "" {
		s := openStore(t, Options{Dir: dir})
		for {
			size, err := s.Append(t.Context(), "s", 0, text, strings.NewReader(strings.Repeat("x", 20000)+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(os.Stderr, size.Lines)
		}
	}
	dir := t.TempDir()
	var acknowledged int64
	for round := range 3 {
		child := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
		child.Env = append(os.Environ(), env+"="+dir)
		acks, err := child.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(acks)
		for range 7 + round {
			if !in.Scan() {
				t.Fatal("the writer ended by itself")
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for in.Scan() { // what it still said
		}
		_ = child.Wait()

		s := openStore(t, Options{Dir: dir})
		acknowledged += int64(7 + round)
		for line := range strings.Lines(readAll(t, s, "s")) {
			if len(line) != 20001 {
				t.Errorf("round %d: a line of %d bytes", round, len(line))
			}
		}
		size, _, err := s.Stat(t.Context(), "s")
		if err != nil || size.Lines < acknowledged {
			t.Errorf("round %d: %d lines are there, %d were acknowledged, %v", round, size.Lines, acknowledged, err)
		}
		acknowledged = size.Lines
		if dirs, _ := os.ReadDir(filepath.Join(dir, "tmp")); len(dirs) != 1+round {
			t.Errorf("round %d: tmp holds %v", round, dirs)
		}
	}
}

func TestDamageIsSaid(t *testing.T) {
	for _, tc := range []struct {
		name, says string
		damage     func(view string) error
	}{
		{"view cut", "4 of 5 bytes", func(view string) error { return os.Truncate(view, 4) }},
		{"view missing", "missing", os.Remove},
		{"record cut", "damaged", func(view string) error { return os.Truncate(filepath.Join(filepath.Dir(view), metaName), 5) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := openStore(t, Options{})
			replace(t, s, "s", "kept\n")
			if err := tc.damage(committed(t, s, "s")); err != nil {
				t.Fatal(err)
			}
			_, err := s.Attach(t.Context(), &gate.Event{Session: "s"})
			failure, ok := errors.AsType[*gate.Failure](err)
			if !ok || failure.Code != gate.TranscriptUnreadable || !strings.Contains(failure.Message, tc.says) {
				t.Errorf("Attach's error is %v; want transcript_unreadable with %q", err, tc.says)
			}
			if _, _, err := s.Read(t.Context(), "s"); gate.CodeOf(err) != gate.CodeInternal || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Read's error is %v", err)
			}
			replace(t, s, "s", "new\n")
			if got := readAll(t, s, "s"); got != "new\n" {
				t.Errorf("after a replace it is %q", got)
			}
		})
	}
}

// TestFullDisk lets no file grow beyond a limit, which is what a full disk looks
// like to a writer. The limit holds for a whole process, so the test has one of
// its own.
func TestFullDisk(t *testing.T) {
	const env = "STOPGATE_TEST_FULL_DISK"
	if os.Getenv(env) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
		child.Env = append(os.Environ(), env+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	const limit = 64 << 10
	s := openStore(t, Options{})
	old := strings.Repeat("x", limit-1000) + "\n"
	replace(t, s, "s", old)

	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	_, replaced := s.Replace(t.Context(), "s", 0, text, strings.NewReader(strings.Repeat("y", 2*limit)))
	// The spool of the append fits; the view it would make does not.
	_, appended := s.Append(t.Context(), "s", 0, text, strings.NewReader(strings.Repeat("y", 2000)))
	_, inline := s.Attach(t.Context(), &gate.Event{InlineTranscript: []byte(`"` + strings.Repeat("y", 2*limit) + `"`)})
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}

	for what, err := range map[string]error{"replace": replaced, "append": appended} {
		if gate.CodeOf(err) != gate.CodeInternal || !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "could not be stored: file too large") {
			t.Errorf("the error of the %s is %v", what, err)
		}
	}
	if failure, ok := errors.AsType[*gate.Failure](inline); !ok || failure.Code != gate.TranscriptUnreadable {
		t.Errorf("the error of the inline transcript is %v", inline)
	}
	if got := readAll(t, s, "s"); got != old {
		t.Errorf("the transcript has now %d bytes", len(got))
	}
	if st, err := os.Stat(committed(t, s, "s")); err != nil || st.Size() != int64(len(old)) {
		t.Errorf("the file was not cut back: %v, %v", st.Size(), err)
	}
	if left := tempFiles(t, s); len(left) > 0 {
		t.Errorf("temporary files are left: %q", left)
	}
	add(t, s, "s", "goes on\n")
	if got := readAll(t, s, "s"); got != old+"goes on\n" {
		t.Errorf("after the next append it has %d bytes", len(got))
	}
}

// Open removes what dead processes left, and nothing of living ones.
func TestOpenSweeps(t *testing.T) {
	dir := t.TempDir()
	living := openStore(t, Options{Dir: dir})
	replace(t, living, "s", "kept\n")
	v := attach(t, living, &gate.Event{Session: "s"})
	dead := filepath.Join(dir, "tmp", "DEAD")
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	addTail(t, filepath.Join(dead, "lock"), "")
	addTail(t, filepath.Join(dead, "x.txt"), "half an upload")

	second := openStore(t, Options{Dir: dir})
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dead process's directory is still there: %v", err)
	}
	if _, err := os.Stat(v.Path()); err != nil {
		t.Errorf("the living process's view is gone: %v", err)
	}
	add(t, second, "s", "from another process\n")
	if got := readAll(t, living, "s"); got != "kept\nfrom another process\n" {
		t.Errorf("the first process reads %q", got)
	}
}
