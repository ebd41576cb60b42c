package transcripts

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
)

func runOf(t testing.TB, pattern string) (byteRun, bool) {
	t.Helper()
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	return newByteRun(tree.Simplify())
}

// What a pattern is looked for by: how many bytes, and whether that is all of it.
func TestByteRuns(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		size    int
		whole   bool
	}{
		{`[A-Z]{5} \d{3}`, 9, true},
		{`([A-Z]{5}) (?:\d{3})`, 9, true},
		{`(?i)[A-F]{4}-`, 5, true},
		{`\b[A-Z]{5} \d{3}$`, 9, false},
		{`[A-Z]{2,}[0-9]{3}`, 4, false}, // one or two of the letters stand before the digits
		{`[A-Z]+[0-9]{3}x?`, 4, false},
		{`[0-9]{4}-.*[A-Z]{4}[A-Z]`, 5, false},
		{`é[A-Z]{4}[é-ü][A-Z]{3}`, 4, false},
		{`(?i)[0-9]{4}s[0-9]{3}`, 4, false}, // ſ is an s
		{strings.Repeat(`[XYZ]`, 100), 64, false},
		{`[A-Z]{2}`, 0, false},
		{`[a-z]{5}`, 0, false}, // which every line has
		{`\d+:\d\d`, 4, false},
		{`[^a]{20}`, 0, false},
		{`[A-Z]{5}|[0-9]{5}`, 0, false},
		{`(?:[A-Z]{5})?`, 0, false},
	} {
		run, ok := runOf(t, tt.pattern)
		if ok != (tt.size > 0) || run.size != tt.size || run.whole != tt.whole {
			t.Errorf("%s: %d bytes, whole %t", tt.pattern, run.size, run.whole)
		}
	}
}

// FuzzByteRun: the run is found where the standard library finds it, whatever the
// bytes are.
func FuzzByteRun(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		sets, text := make([]byte, 1+rnd.IntN(70)), make([]byte, rnd.IntN(400))
		for i := range sets {
			sets[i] = byte(rnd.IntN(8))
		}
		for i := range text {
			text[i] = "abcd\n\xff"[rnd.IntN(6)]
		}
		f.Add(sets, text)
	}
	f.Fuzz(func(t *testing.T, sets, text []byte) {
		var pattern strings.Builder
		for _, s := range sets {
			pattern.WriteString([]string{"a", "b", "[ab]", "[a-c]", "[bd]", "[a-d]", "d", "[cd]"}[s%8])
		}
		tree, err := syntax.Parse(pattern.String(), syntax.Perl)
		if err != nil || len(sets) < minRun || len(sets) > maxRun {
			return
		}
		find := runFinder{exact: true}
		find.add(tree.Simplify())
		find.end()
		run := madeRun(find.best)
		want := -1
		if at := regexp.MustCompile(pattern.String()).FindIndex(text); at != nil {
			want = at[0]
		}
		if got := run.index(text, 0); got != want {
			t.Errorf("%s in %q: at %d, want %d", &pattern, text, got, want)
		}
		if want >= 0 && run.index(text, want+1) == want {
			t.Error("it is found before it is looked for")
		}
		if cut := bytes.TrimRight(text[:min(len(text), run.size-1)], ""); run.in(cut) {
			t.Errorf("%q is too short for it", cut)
		}
	})
}
