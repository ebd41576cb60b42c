package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someRatios = `# held
p BenchmarkA/x 5x of-rg higher 2 1.9 2.2
p BenchmarkA/y 5x of-rg higher 1 0.9 1.1
q BenchmarkB 100x cpu-ratio lower 1 1 1.1
q BenchmarkB 100x ratio lower 4 4 4
`

func ratiosOf(t *testing.T, text string) []ratio {
	t.Helper()
	out, err := readRatios([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// machine is a runner on which the figures are what it is given, try by try; the
// last holds for the tries after it.
type machine struct {
	figures map[string][]string // by package and benchmark: what each try reports
	runs    []suite
}

func (m *machine) run(_ context.Context, s suite) ([]byte, error) {
	m.runs = append(m.runs, s)
	out := "goos: linux\npkg: " + s.pkg + "\n"
	for _, b := range s.benchmarks {
		for range s.count {
			tries := m.figures[s.pkg+" "+b]
			if len(tries) == 0 {
				continue
			}
			out += fmt.Sprintf("%s-2   \t 5\t 100 ns/op\t %s\n", b, tries[0])
			if len(tries) > 1 {
				m.figures[s.pkg+" "+b] = tries[1:]
			}
		}
	}
	return []byte(out + "PASS\nok  \t" + s.pkg + "\t1.2s\n"), nil
}

func TestShort(t *testing.T) {
	const x, y, b = "2 of-rg", "1 of-rg", "1 cpu-ratio 4 ratio"
	for _, tt := range []struct {
		name    string
		x, y, b []string
		fault   []string // what the error says, nothing: none
		shows   string
		runs    int
	}{
		{name: "as stored", x: []string{x}, y: []string{y}, b: []string{b}, runs: 2},
		{name: "worse by a quarter", x: []string{"1.5 of-rg"}, y: []string{y}, b: []string{"1.25 cpu-ratio 5 ratio"}, runs: 2},
		{name: "a share falls", x: []string{"1.49 of-rg"}, y: []string{y}, b: []string{b}, runs: 4,
			fault: []string{"p BenchmarkA/x of-rg: stored 2, seen 1.49 at best in 3 tries, the limit is 1.5", "make bench-renew"}, shows: "worse by more than a quarter"},
		{name: "a cost rises", x: []string{x}, y: []string{y}, b: []string{"1.26 cpu-ratio 4 ratio"}, runs: 4,
			fault: []string{"q BenchmarkB cpu-ratio: stored 1, seen 1.26 at best in 3 tries, the limit is 1.25"}},
		{name: "two fall", x: []string{"1 of-rg"}, y: []string{y}, b: []string{"1 cpu-ratio 6 ratio"}, runs: 6,
			fault: []string{"BenchmarkA/x of-rg", "BenchmarkB ratio"}},
		{name: "a busy moment", x: []string{"1 of-rg", "1.2 of-rg", x}, y: []string{y}, b: []string{b}, runs: 4},
		{name: "the best of its tries counts", x: []string{"1.4 of-rg", "1.45 of-rg", "1.1 of-rg"}, y: []string{y}, b: []string{b}, runs: 4,
			fault: []string{"seen 1.45 at best"}},
		{name: "what has passed is not measured again", x: []string{"1 of-rg", x}, y: []string{y, "0.1 of-rg"}, b: []string{b}, runs: 3},
		{name: "better", x: []string{"2.6 of-rg"}, y: []string{y}, b: []string{b}, runs: 2, shows: "make bench-renew stores that"},
		{name: "a cost falls", x: []string{x}, y: []string{y}, b: []string{"0.7 cpu-ratio 4 ratio"}, runs: 2, shows: "better by more than a quarter"},
		{name: "a benchmark is gone", x: []string{x}, b: []string{b}, runs: 2, fault: []string{"p BenchmarkA/y of-rg: reported 0 times, want 1"}},
		{name: "a unit is gone", x: []string{x}, y: []string{y}, b: []string{"1 cpu-ratio"}, runs: 2, fault: []string{"q BenchmarkB ratio: reported 0 times"}},
		{name: "no number", x: []string{"NaN of-rg"}, y: []string{y}, b: []string{b}, runs: 1, fault: []string{"p BenchmarkA/x of-rg: NaN is no measurement"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &machine{figures: map[string][]string{"p BenchmarkA/x": tt.x, "p BenchmarkA/y": tt.y, "q BenchmarkB": tt.b}}
			var out strings.Builder
			err := short(t.Context(), &out, ratiosOf(t, someRatios), m.run)
			if (err == nil) != (tt.fault == nil) {
				t.Errorf("error %v", err)
			}
			for _, says := range tt.fault {
				if err != nil && !strings.Contains(err.Error(), says) {
					t.Errorf("%q says nothing of %q", err, says)
				}
			}
			if !strings.Contains(out.String(), tt.shows) || tt.shows == "" && strings.Contains(out.String(), "better by") {
				t.Errorf("shows %s", out.String())
			}
			if len(m.runs) != tt.runs {
				t.Errorf("%d runs, want %d: %+v", len(m.runs), tt.runs, m.runs)
			}
		})
	}
}

func TestShortRunsEachPackageOnce(t *testing.T) {
	got := suites(ratiosOf(t, someRatios+"q BenchmarkC 5x of-rg higher 1 1 1\n"), 1)
	want := []suite{
		{pkg: "p", benchmarks: []string{"BenchmarkA/x", "BenchmarkA/y"}, time: "5x", count: 1},
		{pkg: "q", benchmarks: []string{"BenchmarkB"}, time: "100x", count: 1},
		{pkg: "q", benchmarks: []string{"BenchmarkC"}, time: "5x", count: 1},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(suite{})); diff != "" {
		t.Error(diff)
	}
	if p := got[0].pattern(); p != "^BenchmarkA$/^x$|^BenchmarkA$/^y$" {
		t.Errorf("pattern %q", p)
	}
}

// What failed in a run is no fall of a figure.
func TestShortOfARunThatFails(t *testing.T) {
	broken := errors.New("go test p: exit status 1")
	err := short(t.Context(), &strings.Builder{}, ratiosOf(t, someRatios), func(context.Context, suite) ([]byte, error) { return nil, broken })
	if !errors.Is(err, broken) || strings.Contains(err.Error(), "stored") {
		t.Errorf("error %v", err)
	}
	for _, printed := range []string{"BenchmarkA/x-2 five 1 of-rg\n", "BenchmarkA/x-2\n"} {
		err = short(t.Context(), &strings.Builder{}, ratiosOf(t, someRatios), func(context.Context, suite) ([]byte, error) { return []byte("pkg: p\n" + printed), nil })
		if err == nil {
			t.Errorf("%q is read as benchmarks", printed)
		}
	}
	err = short(t.Context(), &strings.Builder{}, ratiosOf(t, "p BenchmarkA/x 5x of-rg higher\n"), (&machine{}).run)
	if err == nil || !strings.Contains(err.Error(), "was never measured: run make bench-renew") {
		t.Errorf("error %v", err)
	}
}

func TestRenew(t *testing.T) {
	eight := func(v ...string) []string {
		for i := range v {
			v[i] += " of-rg"
		}
		return v
	}
	const held = "# held\n# Measured long ago.\n# package and so on\np BenchmarkA/x 5x of-rg higher 9 9 9\np BenchmarkA/y 5x of-rg higher\n"
	for _, tt := range []struct {
		name  string
		x, y  []string
		want  string
		fault string
	}{
		{name: "steady", x: eight("2", "2.1", "1.9", "2", "2.2", "2", "1.8", "2"), y: eight("19218.4"),
			want: "# held\n# Measured now.\n# package  benchmark     time  unit   better  stored  least  most\n" +
				"p          BenchmarkA/x  5x    of-rg  higher  2       1.8    2.2\np          BenchmarkA/y  5x    of-rg  higher  19220   19220  19220\n"},
		{name: "once far worse", x: eight("2", "2", "2", "1.4", "2"), y: eight("1"), fault: "p BenchmarkA/x of-rg is not steady: 2 in 1.4 to 2"},
		{name: "once far better", x: eight("2"), y: eight("1", "1.3", "1"), fault: "p BenchmarkA/y of-rg is not steady"},
		{name: "nothing to be a share of", x: eight("2"), y: eight("0"), fault: "p BenchmarkA/y of-rg is not steady"},
		{name: "gone", x: eight("2"), fault: "p BenchmarkA/y of-rg: reported 0 times, want 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &machine{figures: map[string][]string{"p BenchmarkA/x": tt.x, "p BenchmarkA/y": tt.y}}
			renewed, err := renew(t.Context(), &strings.Builder{}, ratiosOf(t, held), m.run)
			if tt.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fault) {
					t.Errorf("error %v, want %q", err, tt.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if err := writeRatios(&file, []byte(held), "now.", renewed); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, file.String()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(renewed, ratiosOf(t, file.String()), cmp.AllowUnexported(ratio{}, figure{}), cmp.Comparer(func(a, b figure) bool { return a == b })); diff != "" {
				t.Errorf("read again: %s", diff)
			}
		})
	}
}

func TestRatiosThatAreWrong(t *testing.T) {
	_, err := readRatios([]byte("# only words\np B 5x u higher 1 1\np B 5x u more 1 1 1\np B 5x u lower 0 0 1\np B 5x u lower 2 1 1\np B 5x u lower x 1 1\n" +
		"p B 5x u higher 1 1 1\np B 5x u lower 2 2 2\np C 5x u lower NaN 1 1\np B 6x v lower 1 1 1\n"))
	for _, says := range []string{"line 2: ", "7 fields", "line 3: ", `"more", want`, "line 4: ", `"0", want`, "line 5: ", "not between", "line 6: ", `"x", want`,
		"line 8: ", "is there twice", "line 9: ", `"NaN", want`, "line 10: ", "runs for 5x in another line"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v says nothing of %q", err, says)
		}
	}
	if strings.Contains(err.Error(), "line 7") {
		t.Error(err)
	}
	if _, err := readRatios([]byte("# nothing\n")); err == nil {
		t.Error("a file without ratios holds nothing, and nobody says so")
	}
}

// The stored file is one that CI can hold stopgate to: measured, and steadier than
// the fall that it looks for.
func TestStoredRatios(t *testing.T) {
	text, err := os.ReadFile("ratios.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range ratiosOf(t, string(text)) {
		if r.stored == 0 {
			t.Errorf("%s was never measured", r.figure)
		}
		if r.low < r.stored*(1-slack) || r.high > r.stored*(1+slack) {
			t.Errorf("%s is not steady", r.figure)
		}
	}
}
