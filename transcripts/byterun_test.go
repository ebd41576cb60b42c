package transcripts

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// runPatterns have a run, or all but have one.
var runPatterns = []string{
	`[A-Z]{5} \d{3}`, `\d{3}`, `\d+:\d\d`, `[a-c]`, `(?i)[a-j]x`, `(?i)e[l-r]`, `(?i)[a-z]d`, `(?i)[qk]e`, `^\d\d`, `\d{2}$`, `\b[a-z]{3}\b`, `\B\d`,
	`(?m)^[a-z]\d?$`, `[A-Z]+[a-z]+ \d+`, `(?:[a-e]+x)+\d`, `(?:(?:[ab]+[cd])+[ef])+`, `\d{2,4} [x-z]`, `[a-z]{0,3}\d[ab]?`, `(\d)([a-z])`, `\s[ab]`,
	`[^\x80-\x{10FFFF}]x`, `[^a]\d`, `\d.\d\d`, `\d|[a-c]x`, `[a-b]\n[ab]`, `[\n][ab]`, `\x00[\x00-\x7f]`, `[é][ab][xy]`, `[ab]é[xy]`, `\w\W\d`,
	`(?s)[0-2].[ab]`, `\D\d\D`, `[a-z]{70}`, `[a-z]{64}`, `[a-z]{65} \d`, `(?:x|y)[ab]`, `(?:^a)*\d\d`, `(?:\b[ab]+)\d`, `[ab]\b[ -/]`, `(?U)\d+[a-c]+`,
	`a(?i)b`, `(?i)1[s]`, `(?:\d[ab]?)+x`, `[ab]{2}(?:c|)`, `[[:upper:]]{2}`, `[\t ][[:punct:]]`, `\x{7f}[ab]`, `[\x7e-\x80]\d`,
}

// TestByteRunOf: what is looked for, and where nothing more need be asked.
func TestByteRunOf(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		length  int // 0: there is no run
		whole   bool
	}{
		{`[A-Z]{5} \d{3}`, 9, true},
		{`\d`, 1, true},
		{`\d+`, 1, true},
		{`[a-z]*\d+:\d\d+x?`, 5 - 1, true},
		{`^\d\d`, 2, false},
		{`^\d`, 0, false},
		{`\b\d\d`, 2, false},
		{`(?:^\d)+\d`, 2, false},
		{`\d.\d\d`, 2, false},
		{`(?i)[a-z]\d\d`, 2, false}, // the letters have ſ and K
		{`(?i)ab[c-e]`, 3, true},
		{`é\d`, 0, false},
		{`[^a]`, 0, false},
		{`[a-z]{64}`, 64, true},
		{`[a-z]{65}`, 64, false},
		{`\d\d|x`, 0, false},
	} {
		tree, err := syntax.Parse(tc.pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		r := byteRunOf(tree.Simplify())
		switch {
		case r == nil && tc.length > 0:
			t.Errorf("%s: no run", tc.pattern)
		case r != nil && (r.length != tc.length || r.whole != tc.whole):
			t.Errorf("%s: a run of %d, whole: %v; want %d, %v", tc.pattern, r.length, r.whole, tc.length, tc.whole)
		}
	}
}

// checkRun compares a pattern's run with the law, line by line: no line that matches
// is without one, none that holds one of a whole pattern does not match, and the run
// that index finds is the first, whichever way it looks.
func checkRun(t *testing.T, pattern string, text []byte) {
	t.Helper()
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || len(pattern) > maxPattern || gate.PatternCost(tree) > gate.MaxPatternCost {
		return
	}
	r := byteRunOf(tree.Simplify())
	if r == nil {
		return
	}
	law := regexp.MustCompile(pattern)
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		at, matches := r.index(line), law.Match(line)
		if matches && at < 0 || r.whole && !matches && at >= 0 {
			t.Fatalf("%q in %q: it matches: %v, and the run is at %d", pattern, line, matches, at)
		}
	}
	if found, plainly := r.index(text), r.plainly(text); found != plainly || r.forward(text) != plainly {
		t.Fatalf("%q in %q: index is %d, forward %d, want %d", pattern, text, found, r.forward(text), plainly)
	}
}

// plainly is index, made without a thought for speed.
func (r *byteRun) plainly(text []byte) int {
	for at := 0; at+r.length <= len(text); at++ {
		i := 0
		for i < r.length && r.sets[text[at+i]]>>(r.length-1-i)&1 == 1 {
			i++
		}
		if i == r.length {
			return at
		}
	}
	return -1
}

func TestByteRunAgreesWithTheLaw(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	pieces := []string{"a", "b", "c", "x", "1", "23", "ABCDE 123", ":", " ", "Ab", "é", "\xff", "\xc3", "\u212a", "ſ", "\n", "\n", "\x00", "\x7f", "k", "s",
		strings.Repeat("a", 63), strings.Repeat("ab", 700)}
	for range 40 {
		var text []byte
		for range rnd.IntN(300) {
			text = append(text, pieces[rnd.IntN(len(pieces))]...)
		}
		for _, pattern := range append(runPatterns, plans...) {
			checkRun(t, pattern, text)
		}
	}
}

func FuzzByteRun(f *testing.F) {
	for _, pattern := range append(runPatterns, plans...) {
		f.Add(pattern, []byte("ABCDE 123 a1\xffx 12:30\nk\u212aſ1 ab\n\xc3ab\x00x "+strings.Repeat("a", 70)+"b 1"))
	}
	f.Fuzz(checkRun)
}

// A search finds runs in lines that windows cut, and in lines that are held nowhere.
func TestRunsOverEdges(t *testing.T) {
	s := openStore(t, Options{})
	for _, before := range []int{window - 9, window - 5, window - 1, window, maxInPlace - 4, 2*maxInPlace - 5, 2*maxInPlace + window - 8} {
		for _, filler := range []string{"x", "Q", "x\n"} {
			text := strings.Repeat(filler, before/len(filler)) + "ABCDE 123" + strings.Repeat(filler, 100) + "\nlast"
			want := fmt.Sprintf("%d", strings.Count(text[:before], "\n")+1)
			v := viewOf(t, s, text)
			for _, pattern := range []string{`[A-Z]{5} \d{3}`, `(?:[A-Z]{5} \d{3}).?`, `[A-E]{5}\b.\d{3}`} {
				if got, err := matched(t, v, pattern); err != nil || fmt.Sprint(got) != "["+want+"]" {
					t.Errorf("%s after %d bytes of %q: lines %v, %v; want %s", pattern, before, filler, got, err, want)
				}
			}
		}
	}
}

// A text that is all but a run everywhere does not make a search slow: index would
// read every byte of it 63 times, did it not give way to forward.
func TestHostileRun(t *testing.T) {
	tree, err := syntax.Parse(`[a-z]{63}\d`, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	r := byteRunOf(tree.Simplify())
	text := bytes.Repeat([]byte("a"), 2<<20)
	quickest := func(search func([]byte) int) time.Duration {
		best := time.Hour
		for range 5 {
			began := time.Now()
			if search(text) >= 0 {
				t.Fatal("a run where there is none")
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	if index, forward := quickest(r.index), quickest(r.forward); index > 8*forward {
		t.Errorf("it took %v, and %v from the start on", index, forward)
	}
}
