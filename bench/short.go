package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// tries is how often a figure may be measured before it has fallen: a busy machine
// makes one run bad, seldom three.
const tries = 3

// short measures every ratio, those that have fallen up to three times, and returns
// an error for those whose best is worse than the stored one by more than a quarter.
// All figures are shown on out.
func short(ctx context.Context, out io.Writer, ratios []ratio, run runner) error {
	for _, r := range ratios {
		if r.stored == 0 {
			return fmt.Errorf("%s was never measured: run make bench-renew", r.figure)
		}
	}
	best, open := map[figure]float64{}, ratios
	for try := 1; len(open) > 0 && try <= tries; try++ {
		if try > 1 {
			fmt.Fprintf(out, "worse by more than a quarter, so try %d of %d:\n", try, tries)
			for _, r := range open {
				fmt.Fprintf(out, "  %s: %s\n", r.figure, plain(best[r.figure]))
			}
		}
		seen, err := measure(ctx, open, 1, run)
		if err != nil {
			return err
		}
		var fallen []ratio
		for _, r := range open {
			now := seen[r.figure][0]
			if before, measured := best[r.figure]; !measured || r.better(now, before) {
				best[r.figure] = now
			}
			if r.fallen(best[r.figure]) {
				fallen = append(fallen, r)
			}
		}
		open = fallen
	}
	return compare(out, ratios, best)
}

// compare shows what was seen beside what is stored; its error is of what has fallen.
func compare(out io.Writer, ratios []ratio, seen map[figure]float64) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "benchmark\tunit\tstored\tseen\t")
	var fallen []error
	var risen bool
	for _, r := range ratios {
		now, says := seen[r.figure], ""
		switch {
		case r.fallen(now):
			says = "worse by more than a quarter"
			fallen = append(fallen, fmt.Errorf("%s: stored %s, seen %s at best in %d tries, the limit is %s", r.figure, plain(r.stored), plain(now), tries, plain(r.worst())))
		case r.risen(now):
			says, risen = "better by more than a quarter", true
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.benchmark, r.unit, plain(r.stored), plain(now), says)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if risen {
		fmt.Fprintln(out, "some are better by more than a quarter: make bench-renew stores that, so that it stays")
	}
	if fallen != nil {
		fallen = append(fallen, errors.New("if that is meant, store the new figures by make bench-renew, and say why in the commit"))
	}
	return errors.Join(fallen...)
}

// measure runs what the ratios are of, each package and time together, count times.
// A ratio that was not reported that many times is an error.
func measure(ctx context.Context, ratios []ratio, count int, run runner) (map[figure][]float64, error) {
	all := map[figure][]float64{}
	for _, s := range suites(ratios, count) {
		printed, err := run(ctx, s)
		if err != nil {
			return nil, err
		}
		got, err := readResults(bytes.NewReader(printed))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.pkg, err)
		}
		for f, numbers := range got.seen {
			all[f] = append(all[f], numbers...)
		}
	}
	var missing []error
	for _, r := range ratios {
		if n := len(all[r.figure]); n != count {
			missing = append(missing, fmt.Errorf("%s: reported %d times, want %d: has it another name, or does it skip here?", r.figure, n, count))
		}
	}
	return all, errors.Join(missing...)
}

// suites are the fewest runs in which all ratios are measured once.
func suites(ratios []ratio, count int) []suite {
	var out []suite
	for _, r := range ratios {
		at := slices.IndexFunc(out, func(s suite) bool { return s.pkg == r.pkg && s.time == r.time })
		if at < 0 {
			at = len(out)
			out = append(out, suite{pkg: r.pkg, time: r.time, count: count})
		}
		if !slices.Contains(out[at].benchmarks, r.benchmark) {
			out[at].benchmarks = append(out[at].benchmarks, r.benchmark)
		}
	}
	return out
}
