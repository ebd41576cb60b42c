package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	chartsDir    = "docs/charts"
	measuredFile = chartsDir + "/measured.txt"
	pageFile     = "docs/charts.md"
)

// measureCharts runs what the charts show and stores what was printed, with the
// machine and its load.
func measureCharts(ctx context.Context, out io.Writer, run runner) error {
	before, began := loadAverage(), time.Now()
	var printed bytes.Buffer
	for _, s := range chartSuites() {
		fmt.Fprintf(out, "%s %s …\n", cmp.Or(s.module, s.pkg), strings.Join(s.benchmarks, " "))
		text, err := run(ctx, s)
		if err != nil {
			return err
		}
		printed.Write(benchmarkLines(text))
	}
	head := fmt.Sprintf("date: %s\nprocessors: %d\ngo: %s\nload: %s before and %s after\n", began.UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), before, loadAverage())
	return os.WriteFile(measuredFile, append([]byte(head), printed.Bytes()...), 0o644) //nolint:gosec // a file of the repository
}

// benchmarkLines are those that the format of benchmarks knows.
func benchmarkLines(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		for _, start := range []string{"goos: ", "goarch: ", "pkg: ", "cpu: ", "Benchmark"} {
			if bytes.HasPrefix(line, []byte(start)) {
				out = append(out, line...)
			}
		}
	}
	return out
}

// drawCharts writes the page and its charts from what was measured; root is the
// repository's.
func drawCharts(root string) error {
	text, err := os.ReadFile(filepath.Join(root, measuredFile))
	if err != nil {
		return err
	}
	files, err := chartFiles(text)
	if err != nil {
		return fmt.Errorf("%s: %w", measuredFile, err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil { //nolint:gosec // a file of the repository
			return err
		}
	}
	return nil
}

// chartFiles are the page and the charts, by their paths in the repository. What was
// not measured is an error.
func chartFiles(measured []byte) (map[string]string, error) {
	got, err := readResults(bytes.NewReader(measured))
	if err != nil {
		return nil, err
	}
	var missing []error
	for _, fact := range []string{"date", "processors", "go", "load", "goos", "goarch"} {
		if got.facts[fact] == "" {
			missing = append(missing, fmt.Errorf("no line %q", fact+":"))
		}
	}
	files, pictures := map[string]string{}, ""
	for _, c := range charts() {
		bars, err := got.bars(c)
		if err != nil {
			missing = append(missing, err)
			continue
		}
		files[chartsDir+"/"+c.name+".svg"] = c.svg(bars, got.machine())
		pictures += fmt.Sprintf("\n## %s\n\n![%s](charts/%s.svg)\n\n%s\n", c.title, c.title, c.name, c.about)
	}
	files[pageFile] = fmt.Sprintf(page, got.machine(), pictures)
	return files, errors.Join(missing...)
}

const page = `<!-- Written by make bench-report. -->
# Charts

What the gate costs, beside what one would have without it. Each bar is the median of three runs, the line across it goes from the least to the most of
them, and the red line is the aim. What is compared was run in turns, so a ratio is of one machine in one state; its load is a part of the figure: on a
machine that is busy the aims are harder to meet. [benchmarks.md](benchmarks.md) says what each benchmark does and what other runs showed.

%s

This page and its pictures are drawn from [charts/measured.txt](charts/measured.txt), which is what the benchmarks printed.
%s`

// machine says when and where the figures were taken.
func (r results) machine() string {
	return fmt.Sprintf("Measured %s on %s/%s, %s × %s, %s; load average %s.", r.facts["date"], r.facts["goos"], r.facts["goarch"],
		r.facts["processors"], cmp.Or(r.facts["cpu"], "an unnamed processor"), r.facts["go"], r.facts["load"])
}

// bars are the chart's bars with their numbers.
func (r results) bars(c chart) ([]drawn, error) {
	var out []drawn
	var missing []error
	for _, b := range c.bars {
		runs, of := r.seen[b.figure], []float64{0}
		if b.aim.times != 0 {
			of = r.seen[b.aim.of]
		}
		if len(runs) == 0 || len(of) == 0 {
			missing = append(missing, fmt.Errorf("chart %s: %s was not measured", c.name, b.figure))
			continue
		}
		out = append(out, drawn{bar: b, median: median(runs), least: slices.Min(runs), most: slices.Max(runs), goal: b.aim.times*median(of) + b.aim.value})
	}
	return out, errors.Join(missing...)
}
