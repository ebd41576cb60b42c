package transcripts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"stopgate/gate"
)

// texts is a gate.SharedTexts in memory.
type texts struct {
	mu          sync.Mutex
	generations int64
	held        map[[32]byte]*sharedText
	down        error
	read        int          // bytes that were asked for
	appended    func()       // after each append
	erased      gate.Erasure // the last of every session
}

type sharedText struct {
	state gate.TextState
	bytes []byte
}

func newTexts() *texts { return &texts{held: map[[32]byte]*sharedText{}} }

func (x *texts) TextState(_ context.Context, key [32]byte) (gate.TextState, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.held[key]; t != nil {
		return t.state, x.down
	}
	return gate.TextState{}, x.down
}

func (x *texts) ReplaceText(_ context.Context, key [32]byte, seen gate.Erasure, form string, r io.ReaderAt, n int64) (gate.TextState, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if seen != 0 && x.erased > seen {
		return gate.TextState{}, gate.ErrErased
	}
	return x.begin(key, form, r, n)
}

func (x *texts) begin(key [32]byte, form string, r io.ReaderAt, n int64) (gate.TextState, error) {
	x.generations++
	t := &sharedText{state: gate.TextState{Generation: x.generations, Bytes: n, Form: form}, bytes: make([]byte, n)}
	if _, err := r.ReadAt(t.bytes, 0); err != nil && !errors.Is(err, io.EOF) || x.down != nil {
		return gate.TextState{}, errors.Join(err, x.down)
	}
	x.held[key] = t
	return t.state, nil
}

func (x *texts) AppendText(_ context.Context, key [32]byte, seen gate.Erasure, state gate.TextState, form string, r io.ReaderAt, n int64) (gate.TextState, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if seen != 0 && x.erased > seen {
		return gate.TextState{}, gate.ErrErased
	}
	t := x.held[key]
	if t == nil && state.Generation == 0 {
		return x.begin(key, form, r, n)
	}
	if x.down != nil {
		return gate.TextState{}, x.down
	}
	if t == nil || t.state.Generation != state.Generation || t.state.Bytes != state.Bytes {
		return gate.TextState{}, gate.ErrTextChanged
	}
	more := make([]byte, n)
	if _, err := r.ReadAt(more, 0); err != nil && !errors.Is(err, io.EOF) {
		return gate.TextState{}, err
	}
	t.bytes = append(t.bytes, more...)
	t.state.Bytes, t.state.Form = t.state.Bytes+n, form
	if x.appended != nil {
		x.appended()
	}
	return t.state, nil
}

func (x *texts) ReadText(_ context.Context, key [32]byte, state gate.TextState, w io.Writer) (gate.TextState, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.held[key]
	if t == nil || t.state.Generation != state.Generation {
		return state, gate.ErrTextChanged
	}
	x.read += len(t.bytes) - int(state.Bytes)
	_, err := w.Write(t.bytes[state.Bytes:])
	return t.state, err
}

func (x *texts) EraseText(_ context.Context, key [32]byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.held, key)
	return x.down
}

func (x *texts) KnownTexts(_ context.Context, keys [][32]byte) (map[[32]byte]bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	known := map[[32]byte]bool{}
	for _, k := range keys {
		known[k] = x.held[k] != nil
	}
	return known, x.down
}

// fail has every call answer an error; nil: none any more.
func (x *texts) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.down = err
}

// taken is how much was read since it was asked last.
func (x *texts) taken() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.read
	x.read = 0
	return n
}

func sharing(t *testing.T) (x *texts, one, two *Store) {
	x = newTexts()
	return x, openStore(t, Options{Shared: x}), openStore(t, Options{Shared: x})
}

// TestSharedUploads: what one replica takes in every replica has, and takes over
// only what it lacks.
func TestSharedUploads(t *testing.T) {
	x, one, two := sharing(t)
	want := func(s *Store, text string, taken int) {
		t.Helper()
		if got := readAll(t, s, "s"); got != text {
			t.Errorf("it reads %q, want %q", got, text)
		}
		v := attach(t, s, &gate.Event{Session: "s"})
		if got, err := os.ReadFile(v.Path()); string(got) != text || err != nil {
			t.Errorf("a script reads %q (%v), want %q", got, err, text)
		}
		size, ok, err := s.Stat(t.Context(), "s")
		if err != nil || !ok || size.Bytes != int64(len(text)) || size.Lines != int64(strings.Count(text+"\n", "\n")) {
			t.Errorf("size is %+v, %t, %v", size, ok, err)
		}
		if n := x.taken(); n != taken {
			t.Errorf("%d bytes were taken over, want %d", n, taken)
		}
	}
	replace(t, one, "s", "first")
	want(one, "first", 0)
	want(two, "first", 5)
	add(t, two, "s", " and more")
	want(two, "first and more", 0)
	want(one, "first and more", 9)
	replace(t, two, "s", "other")
	want(one, "other", 5)
	// Another form than text is told too: messages begin on a new line.
	if _, err := one.Append(t.Context(), "s", 0, "application/x-ndjson", strings.NewReader(`{"role":"user","content":"hello"}`)); err != nil {
		t.Fatal(err)
	}
	text := readAll(t, one, "s")
	if !strings.HasPrefix(text, "other\n") {
		t.Errorf("it reads %q", text)
	}
	if got := readAll(t, two, "s"); got != text {
		t.Errorf("the other replica reads %q, want %q", got, text)
	}
	for _, s := range []*Store{one, two} {
		if v := attach(t, s, &gate.Event{Session: "s"}); v.RawPath() != "" {
			t.Error("a view that was rendered in part calls itself raw")
		}
	}
}

// TestSharedAppends: appends to one session on two replicas at once neither lose
// nor double a line, from the first on.
func TestSharedAppends(t *testing.T) {
	const each = 40
	_, one, two := sharing(t)
	var running sync.WaitGroup
	for name, s := range map[string]*Store{"one": one, "two": two} {
		for n := range each {
			running.Go(func() {
				if _, err := s.Append(context.Background(), "s", 0, "text/plain", strings.NewReader(fmt.Sprintf("%s %d\n", name, n))); err != nil {
					t.Errorf("append: %v", err)
				}
			})
		}
	}
	running.Wait()
	text := readAll(t, one, "s")
	if got := readAll(t, two, "s"); got != text {
		t.Errorf("the replicas differ:\n%s\n%s", text, got)
	}
	seen := map[string]int{}
	for line := range strings.Lines(text) {
		seen[line]++
	}
	for _, name := range []string{"one", "two"} {
		for n := range each {
			if line := fmt.Sprintf("%s %d\n", name, n); seen[line] != 1 {
				t.Errorf("line %q is there %d times", line, seen[line])
			}
		}
	}
}

// TestSharedFileParts: the parts of a host's file may go to several replicas, and
// each knows how far the file is (at=, after=).
func TestSharedFileParts(t *testing.T) {
	_, one, two := sharing(t)
	first := `{"type":"user","uuid":"1","message":{"role":"user","content":"hello"}}` + "\n"
	second := `{"type":"assistant","uuid":"2","parentUuid":"1","message":{"role":"assistant","content":"good day"}}` + "\n"
	part := func(s *Store, at int, after, text string) error {
		_, err := s.AppendFile(t.Context(), "s", 0, Part{Format: "claude-code", At: int64(at), After: after}, strings.NewReader(text))
		return err
	}
	tail := func(text string) string {
		sum, err := Tail(bytes.NewReader([]byte(text)), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if err := part(one, 0, "", first); err != nil {
		t.Fatal(err)
	}
	if err := part(two, len(first), tail("x"+first[1:]), second); gate.CodeOf(err) != gate.CodeConflict {
		t.Errorf("a part of another file: %v, want a conflict", err)
	}
	if err := part(two, len(first), tail(first), second); err != nil {
		t.Fatal(err)
	}
	if err := part(one, len(first), tail(first), second); gate.CodeOf(err) != gate.CodeConflict {
		t.Errorf("a part that is there already: %v, want a conflict", err)
	}
	for _, s := range []*Store{one, two} {
		if text := contents(t, attach(t, s, &gate.Event{Session: "s"})); strings.Count(text, "hello") != 1 || strings.Count(text, "good day") != 1 {
			t.Errorf("it reads %q", text)
		}
	}
}

// TestSharedErase: what one replica erases no replica reads, also from its copy,
// and the copy goes; a text that begins anew is not mixed with the old one.
func TestSharedErase(t *testing.T) {
	_, one, two := sharing(t)
	erased := func(s *Store) {
		t.Helper()
		if _, _, err := s.Read(t.Context(), "s"); gate.CodeOf(err) != gate.CodeNotFound {
			t.Errorf("read after the erasure: %v", err)
		}
		if _, err := os.Stat(s.sessionDir(keyOf("s"))); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the copy is still there: %v", err)
		}
	}
	replace(t, one, "s", "secret")
	replace(t, one, "kept", "kept")
	readAll(t, two, "s")
	if err := one.Erase(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	erased(one)
	erased(two)

	replace(t, one, "s", "secret")
	readAll(t, two, "s")
	readAll(t, two, "kept")
	if err := one.Erase(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if err := two.sweepErased(t.Context()); err != nil { // nobody asks for it there
		t.Fatal(err)
	}
	if _, err := os.Stat(two.sessionDir(keyOf("s"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is still there: %v", err)
	}
	if _, err := os.Stat(two.sessionDir(keyOf("kept"))); err != nil {
		t.Errorf("the copy of another session: %v", err)
	}

	replace(t, one, "s", "secret")
	readAll(t, two, "s")
	if err := one.Erase(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	add(t, one, "s", "public")
	if got := readAll(t, two, "s"); got != "public" {
		t.Errorf("the text that began anew reads %q", got)
	}
}

// TestSharedCopiesHeal: a copy that is damaged, or gone, is made anew.
func TestSharedCopiesHeal(t *testing.T) {
	for name, damage := range map[string]func(s *Store, dir, view string) error{
		"directory gone": func(_ *Store, dir, _ string) error { return os.RemoveAll(dir) },
		"view gone":      func(_ *Store, _, view string) error { return os.Remove(view) },
		"view cut":       func(_ *Store, _, view string) error { return os.Truncate(view, 2) },
		"record damaged": func(_ *Store, dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, metaName), []byte("{"), 0o600)
		},
		"record gone": func(_ *Store, dir, _ string) error { return os.Remove(filepath.Join(dir, metaName)) },
	} {
		t.Run(name, func(t *testing.T) {
			_, one, two := sharing(t)
			replace(t, one, "s", "first\n")
			readAll(t, two, "s")
			harm := func() {
				t.Helper()
				if err := damage(two, two.sessionDir(keyOf("s")), committed(t, two, "s")); err != nil {
					t.Fatal(err)
				}
			}
			harm()
			if got := readAll(t, two, "s"); got != "first\n" {
				t.Errorf("it reads %q", got)
			}
			harm()
			add(t, one, "s", "second\n")
			add(t, two, "s", "third\n")
			for _, s := range []*Store{one, two} {
				if got := readAll(t, s, "s"); got != "first\nsecond\nthird\n" {
					t.Errorf("it reads %q", got)
				}
			}
		})
	}
}

// TestSharedAppendWithoutCopy: what is stored for all is acknowledged, whatever
// becomes of the copy: who is told of an error sends it again.
func TestSharedAppendWithoutCopy(t *testing.T) {
	x, one, _ := sharing(t)
	replace(t, one, "s", "first")
	x.appended = func() { _ = os.RemoveAll(one.sessionDir(keyOf("s"))) }
	size, err := one.Append(t.Context(), "s", 0, "application/x-ndjson", strings.NewReader(`{"role":"user","content":"hello"}`))
	if err != nil {
		t.Fatal(err)
	}
	text := readAll(t, one, "s")
	if want := (Size{Bytes: int64(len(text)), Lines: int64(strings.Count(text, "\n"))}); size != want {
		t.Errorf("the size was %+v, want %+v", size, want)
	}
}

// TestSharedReplaceWithoutCopy is the same of a transcript as a whole; an event
// that brings one is not judged by an older.
func TestSharedReplaceWithoutCopy(t *testing.T) {
	_, one, two := sharing(t)
	replace(t, one, "s", "first")
	dir := one.sessionDir(keyOf("s"))
	hinder := func() { // a file in the directory's place
		t.Helper()
		if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	hinder()
	size, err := one.Replace(t.Context(), "s", 0, "text/plain", strings.NewReader("a\nb"))
	if want := (Size{Bytes: 3, Lines: 2}); err != nil || size != want {
		t.Errorf("replace: %+v, %v; want %+v", size, err, want)
	}
	if got := readAll(t, two, "s"); got != "a\nb" {
		t.Errorf("the other replica reads %q", got)
	}
	ev := &gate.Event{Session: "s", InlineTranscript: []byte(`"third"`)}
	if v, err := one.Attach(t.Context(), ev); err == nil {
		t.Errorf("an event is judged with %v", v)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, attach(t, one, &gate.Event{Session: "s"})); got != "third" {
		t.Errorf("it reads %q", got)
	}
}

// TestSharedStoreIsDown: nothing is read from a copy of which nobody knows
// whether it holds, and nothing is taken in.
func TestSharedStoreIsDown(t *testing.T) {
	x, one, _ := sharing(t)
	replace(t, one, "s", "first")
	x.fail(errors.New("gone"))
	if _, err := one.Attach(t.Context(), &gate.Event{Session: "s"}); err == nil {
		t.Error("attach worked")
	} else if e, ok := errors.AsType[*gate.Failure](err); !ok || e.Code != gate.TranscriptUnreadable {
		t.Errorf("attach: %v", err)
	}
	if _, err := one.Append(t.Context(), "s", 0, "text/plain", strings.NewReader("more")); gate.CodeOf(err) != gate.CodeInternal {
		t.Errorf("append: %v", err)
	}
	if _, err := one.Replace(t.Context(), "s", 0, "text/plain", strings.NewReader("more")); gate.CodeOf(err) != gate.CodeInternal {
		t.Errorf("replace: %v", err)
	}
	x.fail(nil)
	if got := readAll(t, one, "s"); got != "first" {
		t.Errorf("it reads %q", got)
	}
}

// TestSharedLeavesOwnTranscripts: what a data directory had before it was shared
// stays there.
func TestSharedLeavesOwnTranscripts(t *testing.T) {
	dir := t.TempDir()
	alone := openStore(t, Options{Dir: dir})
	replace(t, alone, "s", "mine")
	shared := openStore(t, Options{Dir: dir, Shared: newTexts()})
	if err := shared.sweepErased(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := shared.Read(t.Context(), "s"); gate.CodeOf(err) != gate.CodeNotFound {
		t.Errorf("read: %v", err)
	}
	if err := shared.Erase(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, alone, "s"); got != "mine" {
		t.Errorf("it reads %q", got)
	}
}
