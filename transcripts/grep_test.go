package transcripts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

func grep(t testing.TB, v *view, q gate.Grep) string {
	t.Helper()
	got, err := v.GrepSearch(t.Context(), q)
	if err != nil {
		t.Fatalf("%q: %v", q.Pattern, err)
	}
	return got
}

func TestGrepSearch(t *testing.T) {
	const abc = "a\nb\nc\nd\ne\nf\ng\n"
	for _, tc := range []struct {
		name string
		text string
		q    gate.Grep
		want string
	}{
		{"matches", "foo\nbar\nfoobar\n", gate.Grep{Pattern: "foo"}, "1:foo\n3:foobar\n(2 matching lines)\n"},
		{"one", "foo", gate.Grep{Pattern: "o"}, "1:foo\n(1 matching line)\n"},
		{"none", "foo\n", gate.Grep{Pattern: "bar"}, "(no line matches)\n"},
		{"empty text", "", gate.Grep{Pattern: ".*"}, "(no line matches)\n"},
		{"every line, the empty one too", "a\n\nb", gate.Grep{Pattern: ".*"}, "1:a\n2:\n3:b\n(3 matching lines)\n"},
		{"no line after the last newline", "a\n", gate.Grep{Pattern: "^"}, "1:a\n(1 matching line)\n"},
		{"end of a last line without newline", "0", gate.Grep{Pattern: "$"}, "1:0\n(1 matching line)\n"},
		{"empty lines", "\na\n\n", gate.Grep{Pattern: "^$"}, "1:\n3:\n(2 matching lines)\n"},
		{"anchors are a line's", "ab\nb\nba\n", gate.Grep{Pattern: `^b|\Ab$`}, "2:b\n3:ba\n(2 matching lines)\n"},
		{"nothing crosses lines", "a\nb\n", gate.Grep{Pattern: `(?s)a.b|a[^x]b|a\sb|a\nb`}, "(no line matches)\n"},
		{"context", abc, gate.Grep{Pattern: "[cf]", Context: 1}, "2-b\n3:c\n4-d\n5-e\n6:f\n7-g\n(2 matching lines)\n"},
		{"groups", abc, gate.Grep{Pattern: "[ag]", Context: 1}, "1:a\n2-b\n--\n6-f\n7:g\n(2 matching lines)\n"},
		{"groups that touch", abc, gate.Grep{Pattern: "[be]", Context: 1}, "1-a\n2:b\n3-c\n4-d\n5:e\n6-f\n(2 matching lines)\n"},
		{"matches in each other's context", abc, gate.Grep{Pattern: "[bcd]", Context: 2}, "1-a\n2:b\n3:c\n4:d\n5-e\n6-f\n(3 matching lines)\n"},
		{"negative context", abc, gate.Grep{Pattern: "c", Context: -1}, "3:c\n(1 matching line)\n"},
		{"limit", abc, gate.Grep{Pattern: "[a-f]", Limit: 2}, "1:a\n2:b\n(2 of 6 matching lines shown, 4 left out: use a narrower pattern)\n"},
		{"context stops at a match that is not shown", abc, gate.Grep{Pattern: "[ac]", Limit: 1, Context: 3}, "1:a\n2-b\n(1 of 2 matching lines shown, 1 left out: use a narrower pattern)\n"},
		{"after bytes that are not UTF-8", "x\xff\xfey foo\nfoo\xc3bar\n", gate.Grep{Pattern: "x.*foo|foo[^x]bar"}, "1:x\ufffd\ufffdy foo\n2:foo\ufffdbar\n(2 matching lines)\n"},
		{"fault transcript-20: U+2028", "a\u2028b\nc\n", gate.Grep{Pattern: "a.b"}, "1:a␤b\n(1 matching line)\n"},
		{"case", "ERROR\nError\nerr\n", gate.Grep{Pattern: "(?i)error"}, "1:ERROR\n2:Error\n(2 matching lines)\n"},
		{"case beyond ASCII", "\u212aelvin\nſet\nkelvin\n", gate.Grep{Pattern: "(?i)kelvin|SET"}, "1:\u212aelvin\n2:ſet\n3:kelvin\n(3 matching lines)\n"},
		{"Unicode", "ärger\n", gate.Grep{Pattern: `^\pL+$`}, "1:ärger\n(1 matching line)\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, grep(t, viewOf(t, openStore(t, Options{}), tc.text), tc.q)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGrepBounds(t *testing.T) {
	s := openStore(t, Options{})
	for _, tc := range []struct {
		name  string
		limit int
		want  int
	}{{"100 by default", 0, 100}, {"negative", -1, 100}, {"asked", 7, 7}, {"1,000 at most", 1 << 40, 1000}} {
		t.Run(tc.name, func(t *testing.T) {
			got := grep(t, viewOf(t, s, lines(3000)), gate.Grep{Pattern: "line", Limit: tc.limit})
			want := fmt.Sprintf("(%d of 3000 matching lines shown, %d left out: use a narrower pattern)\n", tc.want, 3000-tc.want)
			if strings.Count(got, "\n") != tc.want+1 || !strings.HasSuffix(got, want) {
				t.Errorf("%d lines that end with %.100q", strings.Count(got, "\n"), got[max(0, len(got)-100):])
			}
		})
	}
	t.Run("context is at most 20 lines", func(t *testing.T) {
		got := grep(t, viewOf(t, s, lines(100)), gate.Grep{Pattern: "line 50", Context: 1000})
		if strings.Count(got, "-") != 40 {
			t.Errorf("got %s", got)
		}
	})
	t.Run("64 KiB at most", func(t *testing.T) {
		for _, context := range []int{0, 20} {
			got := grep(t, viewOf(t, s, strings.Repeat(strings.Repeat("\x00", 1990)+"\n", 500)+strings.Repeat("needle\n", 50)),
				gate.Grep{Pattern: "\x00$|needle", Context: context})
			if len(got) > maxAnswer || !strings.Contains(got, "of 550 matching lines shown") {
				t.Errorf("%d bytes that end with %q", len(got), got[len(got)-100:])
			}
		}
	})
	t.Run("a long line is cut round its match", func(t *testing.T) {
		for _, size := range []int{5000, 100 << 10, 3 << 20} {
			for _, pattern := range []string{"needle", "ne{2}dle", `[m-o]eedl[e]`} {
				line := strings.Repeat("é", size/4) + "needle" + strings.Repeat("é", size/4)
				got := grep(t, viewOf(t, s, line), gate.Grep{Pattern: pattern})
				holds := strings.Contains(got, "needle") || (pattern == `[m-o]eedl[e]` && size > 128<<10)
				if !holds || len(got) > 4*maxLineRunes || !strings.Contains(got, fmt.Sprintf("cut: the line has %d bytes", len(line))) {
					t.Errorf("%d bytes, %s: got %d bytes, %.60q", size, pattern, len(got), got)
				}
			}
		}
	})
}

// A search that has to ask every line counts on for a while, and says where it
// does not know.
func TestCountingStops(t *testing.T) {
	s := openStore(t, Options{})
	s.countFurther = 1
	v := viewOf(t, s, strings.Repeat("a\n", window))
	const cut = "(1 matching lines shown, at least "
	if got := grep(t, v, gate.Grep{Pattern: "[a-cé]", Limit: 1}); !strings.Contains(got, cut) {
		t.Errorf("a class: %q", got)
	}
	if got := grep(t, v, gate.Grep{Pattern: ".*", Limit: 1}); !strings.Contains(got, fmt.Sprintf("(1 of %d matching lines", window)) {
		t.Errorf("every line: %q", got)
	}
	if got := grep(t, v, gate.Grep{Pattern: "[a-c]", Limit: 1}); !strings.Contains(got, fmt.Sprintf("(1 of %d matching lines", window)) {
		t.Errorf("a run: %q", got)
	}
	if got := grep(t, v, gate.Grep{Pattern: "[b-cé]", Limit: 1}); got != "(no line matches)\n" {
		t.Errorf("no match: %q", got)
	}
}

// What cannot run is said in words that help, and is no error of the transcript.
func TestRefusedPatterns(t *testing.T) {
	v := viewOf(t, openStore(t, Options{}), "x\n")
	for _, tc := range []struct{ name, pattern, says string }{
		{"empty", "", "empty"},
		{"too long", strings.Repeat("x", 1001), "1001 bytes"},
		{"look-ahead", "a(?=b)", "no look-ahead"},
		{"negative look-ahead", "a(?!b)", "no look-ahead"},
		{"look-behind", "(?<=a)b", "look-behind"},
		{"back-reference", `(a)\1`, "no back-references"},
		{"unclosed", "(a", "missing closing )"},
		{"repetition of a repetition", "(x{1000}){1000}", "invalid repeat count"},
		{"large program", strings.Repeat("x{1000}", 100), "too costly"},
		{"not UTF-8", "a\xff", "UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := v.GrepSearch(t.Context(), gate.Grep{Pattern: tc.pattern})
			failure, ok := errors.AsType[*gate.Failure](err)
			if !ok || failure.Code != gate.BadOutput || !strings.Contains(failure.Message, tc.says) {
				t.Errorf("got %q, %v; want bad_output with %q", got, err, tc.says)
			}
		})
	}
	if got := grep(t, v, gate.Grep{Pattern: "^x{1,1000}$"}); !strings.HasPrefix(got, "1:x") {
		t.Errorf("a large repetition gives %q", got)
	}
}

// lawfully is what GrepSearch has to find: the numbers of the lines that the
// standard library matches, each alone.
func lawfully(law *regexp.Regexp, text []byte) []int {
	var found []int
	if len(text) == 0 {
		return nil
	}
	for i, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		if law.Match(line) {
			found = append(found, i+1)
		}
	}
	return found
}

// matched is the numbers that a search finds, without a printer's limits.
func matched(t testing.TB, v *view, pattern string) ([]int, error) {
	t.Helper()
	got, err := v.GrepSearch(t.Context(), gate.Grep{Pattern: pattern, Limit: maxMatches})
	if err != nil {
		return nil, err
	}
	var found []int
	for line := range strings.Lines(got) {
		var n int
		if _, err := fmt.Sscanf(line, "%d:", &n); err == nil {
			found = append(found, n)
		}
	}
	return found, nil
}

// plans has patterns of every kind that is searched in a way of its own.
var plans = []string{
	"needle", "n", "needle.*end", ".*needle.*", "(?s)needle.*", "(needle)", "needle|end|[x]yz", "(?i)needle", "(?i)NEEDLE|end",
	"(?i)sky|kiss", "ne+dle", `\bneedle\b`, "^needle", "needle$", "^$", "^", "$", ".", ".*", "x*", "[^a]", `\s`, `\S+`, `\d+`, `[0-9]{2}`,
	"(?m)^end$", `\x{FFFD}`, "a.b", "a[^x]b", `a\sb`, "é.*ü", `[é-ü]`, `\pL\pN`, `(?i)É`, "(?:x|y|)z?", `\Aend\z`, `a\nb`, "(?s)a.end",
	"[^\\n]end", `e\b.`, "(?U)a+b", "é|", "end{0}", "(?i)straSSe|maß",
	`ne+dle\s+\d+ end`, `(?i)need.*(?:end|x) `, `\bneedle .*12`, "a.*a", "needle.*needle", `(?:needle|end) ?(?:12|é)`, "\r$", "[^\r]$",
}

func TestGrepAgreesWithTheLaw(t *testing.T) {
	s := openStore(t, Options{})
	rnd := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"needle", "NEEDLE", "end", "a", "b", "x", " ", "12", "é", "ü", "\xff", "\xc3", "\u212a", "ſ", "sky", "\n", "\n", "\n\n", "\ufffd", "\x00", "\r", "maß", "strasse"}
	for range 3 {
		var text []byte
		for range rnd.IntN(1500) {
			text = append(text, pieces[rnd.IntN(len(pieces))]...)
			if rnd.IntN(500) == 0 {
				text = append(text, bytes.Repeat([]byte("filler "), rnd.IntN(10000))...)
			}
		}
		v := viewOf(t, s, string(text))
		for _, pattern := range append(plans, runPatterns...) {
			checkLaw(t, v, pattern, text)
		}
	}
}

// checkLaw compares a search with the law, as far as the answer shows it.
func checkLaw(t *testing.T, v *view, pattern string, text []byte) {
	t.Helper()
	law, err := regexp.Compile(pattern)
	if err != nil {
		return
	}
	got, err := matched(t, v, pattern)
	if err != nil {
		if failure, ok := errors.AsType[*gate.Failure](err); ok && failure.Code == gate.BadOutput {
			return
		}
		t.Fatal(err)
	}
	want := lawfully(law, text)
	answer := grep(t, v, gate.Grep{Pattern: pattern, Limit: maxMatches})
	if len(got) < len(want) {
		if !strings.Contains(answer, fmt.Sprintf("(%d of %d matching", len(got), len(want))) {
			t.Fatalf("%q: the answer ends with %.100q; %d lines match", pattern, answer[max(0, len(answer)-100):], len(want))
		}
		want = want[:len(got)]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%q in %.200q (-law +got):\n%s", pattern, text, diff)
	}
}

// lawfulAnswer is what GrepSearch has to answer where no line is long and no
// bound is met, made as plainly as can be.
func lawfulAnswer(law *regexp.Regexp, text []byte, around int) string {
	var lines [][]byte
	if len(text) > 0 {
		lines = bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	}
	signs := make([]byte, len(lines))
	found := lawfully(law, text)
	for _, n := range found {
		for i := max(0, n-1-around); i < min(len(lines), n+around); i++ {
			signs[i] = max(signs[i], '-')
		}
	}
	for _, n := range found {
		signs[n-1] = ':'
	}
	var b []byte
	for i, sign := range signs {
		switch {
		case sign == 0:
			continue
		case around > 0 && i > 0 && signs[i-1] == 0 && len(b) > 0:
			b = append(b, "--\n"...)
		}
		b = append(strconv.AppendInt(b, int64(i+1), 10), sign)
		b = append(appendVisible(b, lines[i]), '\n')
	}
	switch len(found) {
	case 0:
		return "(no line matches)\n"
	case 1:
		return string(b) + "(1 matching line)\n"
	}
	return fmt.Sprintf("%s(%d matching lines)\n", b, len(found))
}

// FuzzGrep: whatever the pattern and the bytes, GrepSearch finds the lines that
// the standard library matches, and prints them and the lines round them.
func FuzzGrep(f *testing.F) {
	for i, pattern := range append(plans, runPatterns...) {
		f.Add(pattern, []byte("a needle\xff\nend é\n\nNEEDLE 12 x\xc3ü end\r\n\r\nsKy \u212aiſs\n"), uint8(i))
	}
	s := openStore(f, Options{})
	f.Fuzz(func(t *testing.T, pattern string, text []byte, around uint8) {
		v := viewOf(t, s, string(text))
		checkLaw(t, v, pattern, text)
		if len(text) > maxLineRunes || around > maxContext {
			return
		}
		got, err := v.GrepSearch(t.Context(), gate.Grep{Pattern: pattern, Context: int(around), Limit: maxMatches})
		law, refused := regexp.Compile(pattern)
		if err != nil || refused != nil || strings.Contains(got, "left out") {
			return // checkLaw has judged it
		}
		if diff := cmp.Diff(lawfulAnswer(law, text, int(around)), got); diff != "" {
			t.Fatalf("%q with %d lines round it in %q (-law +got):\n%s", pattern, around, text, diff)
		}
	})
}

// Lines that are longer than what is held in memory are searched like others.
func TestGrepGiantLines(t *testing.T) {
	s := openStore(t, Options{})
	giant := strings.Repeat("filler ", maxInPlace/7+1)
	text := "needle 1\n" + giant + "needle" + giant + "END\n" + giant + "\nneedle 2\n" + giant + "\xffend 7"
	v := viewOf(t, s, text)
	for _, tc := range []struct {
		pattern string
		want    []int
	}{
		{"needle", []int{1, 2, 4}},
		{"needle.*END", []int{2}},
		{"(?i)NEEDLE|nowhere", []int{1, 2, 4}},
		{"END.*needle", nil},
		{`r needlefiller`, []int{2}},
		{"^needle|END$", []int{1, 2, 4}},
		{".", []int{1, 2, 3, 4, 5}},
		{"x*", []int{1, 2, 3, 4, 5}},
		{`filler .end \d$`, []int{5}},
		{"(?i)needle|end", []int{1, 2, 4, 5}},
		{"nowhere", nil},
	} {
		got, err := matched(t, v, tc.pattern)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", tc.pattern, err, diff)
		}
	}
	got := grep(t, v, gate.Grep{Pattern: "needle 2", Context: 1})
	if len(got) > 4*maxLineRunes || !strings.Contains(got, "\n4:needle 2\n5-filler") || !strings.HasPrefix(got, "3-filler") {
		t.Errorf("round it: %d bytes, %.100q", len(got), got)
	}
}

// A search ends with its context, in whatever it is busy.
func TestGrepEndsWithContext(t *testing.T) {
	s := openStore(t, Options{})
	hard := "(?:x?){500}[a-z]{500}$" // hundreds of steps per byte
	for _, tc := range []struct{ name, text, pattern string }{
		{"between lines", strings.Repeat(strings.Repeat("x", 600)+"\n", 20000), hard},
		{"between longer lines", strings.Repeat(strings.Repeat("x", 30<<10)+"\n", 200), hard},
		{"inside a long line", strings.Repeat("x", maxInPlace-1), hard},
		{"inside a giant line", strings.Repeat("x", 3*maxInPlace), hard},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := viewOf(t, s, tc.text)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, err := v.GrepSearch(ctx, gate.Grep{Pattern: tc.pattern})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v", err)
			}
			// gate.Evaluator promises to end within a second; a slow machine
			// under the race detector gets more.
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	t.Run("before it begins", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := viewOf(t, s, "x").GrepSearch(ctx, gate.Grep{Pattern: "x"}); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	})
}

// One view serves many readers.
func TestConcurrentReaders(t *testing.T) {
	s := openStore(t, Options{})
	v := viewOf(t, s, lines(20000))
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for n := range 10 {
				want := fmt.Sprintf("%d\tline %d\n", 1000*i+n+1, 1000*i+n+1)
				if got, err := v.ReadFile(t.Context(), 1000*i+n+1, 1); !strings.HasPrefix(got, want) || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
				if got := grep(t, v, gate.Grep{Pattern: fmt.Sprintf("[l]ine %d$", 1000*i+n+1)}); strings.Count(got, "\n") != 2 {
					t.Errorf("got %q", got)
				}
			}
		})
	}
}
