package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/charts.md and its charts from docs/charts/measured.txt")

// The page and its charts are what the stored measurements make, byte for byte.
func TestPageIsOfWhatWasMeasured(t *testing.T) {
	if *update {
		if err := drawCharts(".."); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range filesOf(t, measured(t)) {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what is measured makes (make update): %s", name, diff)
		}
	}
}

func measured(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", measuredFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func filesOf(t *testing.T, measured string) map[string]string {
	t.Helper()
	files, err := chartFiles([]byte(measured))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A chart is XML, says in its description what it shows, and asks for nothing from
// elsewhere; the page shows every chart.
func TestChartsAreReadable(t *testing.T) {
	files := filesOf(t, measured(t))
	for _, c := range charts() {
		svg := files[chartsDir+"/"+c.name+".svg"]
		var picture struct {
			Title string `xml:"title"`
			Desc  string `xml:"desc"`
			Texts []struct {
				Text string `xml:",chardata"`
			} `xml:"text"`
		}
		if err := xml.Unmarshal([]byte(svg), &picture); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if picture.Title != c.title {
			t.Errorf("%s: title %q", c.name, picture.Title)
		}
		for _, b := range c.bars {
			if !strings.Contains(picture.Desc, b.group+":") || !strings.Contains(picture.Desc, b.label+" ") {
				t.Errorf("%s: the description has no %s of %s: %q", c.name, b.label, b.group, picture.Desc)
			}
			if !slices.ContainsFunc(picture.Texts, func(x struct {
				Text string `xml:",chardata"`
			}) bool {
				return x.Text == b.label
			}) {
				t.Errorf("%s: no text %q", c.name, b.label)
			}
		}
		if strings.Contains(strings.Replace(svg, "http://www.w3.org/2000/svg", "", 1), "://") {
			t.Errorf("%s: asks for something from elsewhere", c.name)
		}
		if !strings.Contains(files[pageFile], "(charts/"+c.name+".svg)") {
			t.Errorf("the page does not show %s", c.name)
		}
	}
}

func TestWhatWasNotMeasured(t *testing.T) {
	whole := measured(t)
	for name, tt := range map[string]struct{ from, to, says string }{
		"a benchmark":       {"BenchmarkEvaluate/native/433B/8conn", "BenchmarkOther", "chart echo: stopgate/cmd/stopgate BenchmarkEvaluate/native/433B/8conn of-echo was not measured"},
		"a unit":            {" rule-of-opa", " of-opa", "chart opa: stopgate/bench/opa BenchmarkBesideOPA/8conn rule-of-opa was not measured"},
		"what an aim is of": {" bare-p50-ms", " naked-p50-ms", "chart scripts: "},
		"the machine":       {"goarch: ", "arch: ", `no line "goarch:"`},
		"the day":           {"date: ", "day: ", `no line "date:"`},
		"not a number":      {" of-rg", "NaN of-rg", ""},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.ReplaceAll(whole, tt.from, tt.to)
			if changed == whole {
				t.Fatal("nothing was changed")
			}
			if _, err := chartFiles([]byte(changed)); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestBars(t *testing.T) {
	at := func(unit string) figure { return figure{"p", "BenchmarkA", unit} }
	c := chart{name: "c", title: "<a> & b", unit: "ms", bars: []bar{
		{group: `a "b" <c>`, label: "bare", figure: at("bare")},
		{group: `a "b" <c>`, label: "cold", figure: at("cold"), aim: atMostOf(at("bare"), 1.5, 6)},
		{group: "two", label: "bare", figure: at("two"), aim: atLeast(2)},
	}}
	r := results{seen: map[figure][]float64{at("bare"): {2, 4, 3}, at("cold"): {12}, at("two"): {0.004}}}
	bars, err := r.bars(c)
	if err != nil {
		t.Fatal(err)
	}
	svg := c.svg(bars, "R&D")
	for _, has := range []string{
		"<title id=\"title\">&lt;a&gt; &amp; b</title>", "R&amp;D",
		"Bars, in ms. a &#34;b&#34; &lt;c&gt;: bare 3.00; cold 12.0 (aim ≤ 10.5); two: bare 0.0040 (aim ≥ 2.00).",
		// 382 pixels are 12 ms: 3, from 2 to 4; 12; the aim at 10.5.
		`<rect class="s0" x="258" y="113" width="95.5" height="12" rx="1.5"/>`, `<path class="run" d="M321.7 116v6m0-3H385.3m0-3v6" fill="none"/>`,
		`<rect class="s1" x="258" y="135" width="382.0" height="12" rx="1.5"/>`, `<path class="aim" d="M592.2 131v20"/>`,
		// A bar that is too short to be seen has a pixel.
		`<rect class="s0" x="258" y="187" width="1.0" height="12" rx="1.5"/>`,
	} {
		if !strings.Contains(svg, has) {
			t.Errorf("no %s in\n%s", has, svg)
		}
	}
	if strings.Count(svg, `class="run"`) != 2 { // one is the legend's
		t.Errorf("a line from the least to the most where there was one run:\n%s", svg)
	}
	if again := c.svg(bars, "R&D"); again != svg {
		t.Error("the same bars, another picture")
	}
}

func TestScale(t *testing.T) {
	for longest, step := range map[float64]float64{0: 0.2, 0.6: 0.1, 1: 0.2, 1.9: 0.2, 2: 0.5, 7: 1, 8: 2, 34: 5, 900: 200} {
		_, got := scaleOf([]drawn{{most: longest}})
		if diff := got - step; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("up to %v: a line each %v, want %v", longest, got, step)
		}
	}
}

func TestBenchmarkLines(t *testing.T) {
	got := string(benchmarkLines([]byte("goos: linux\npkg: p\ncpu: X\nBenchmarkA-2 1 2 ns/op\n    a_test.go:3: a log\nPASS\nok  \tp\t1s\n")))
	if want := "goos: linux\npkg: p\ncpu: X\nBenchmarkA-2 1 2 ns/op\n"; got != want {
		t.Errorf("got %q", got)
	}
}

// A run that fails leaves what was measured before.
func TestMeasureThatFails(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(chartsDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(measuredFile, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("exit status 1")
	runs := 0
	err := measureCharts(t.Context(), io.Discard, func(context.Context, suite) ([]byte, error) {
		if runs++; runs == 2 {
			return nil, broken
		}
		return []byte("BenchmarkA 1 2 ns/op\n"), nil
	})
	if text, _ := os.ReadFile(measuredFile); !errors.Is(err, broken) || string(text) != "before" {
		t.Errorf("%v, %q", err, text)
	}
	err = measureCharts(t.Context(), io.Discard, func(_ context.Context, s suite) ([]byte, error) {
		return []byte("pkg: " + s.pkg + "\nBenchmarkA 1 2 ns/op\nPASS\n"), nil
	})
	text, _ := os.ReadFile(measuredFile)
	got, readErr := readResults(bytes.NewReader(text))
	if err != nil || readErr != nil || got.facts["date"] == "" || got.facts["load"] == "" || len(got.seen) != len(charts())-1 {
		t.Errorf("%v, %v: %s", err, readErr, text)
	}
}
