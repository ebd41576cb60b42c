package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
)

// renewals is how often a figure is measured before it is stored.
const renewals = 8

// renew measures every ratio eight times and returns them with the median, the
// least and the most. A run that was worse or better than the median by more than a
// quarter is an error: such a figure would fail, or hide a fall, by chance.
func renew(ctx context.Context, out io.Writer, ratios []ratio, run runner) ([]ratio, error) {
	seen, err := measure(ctx, ratios, renewals, run)
	if err != nil {
		return nil, err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "benchmark\tunit\tstored\tmedian\tleast\tmost\t")
	var renewed []ratio
	var unsteady []error
	for _, r := range ratios {
		was, now := r.stored, seen[r.figure]
		r.stored, r.low, r.high = round(median(now)), round(slices.Min(now)), round(slices.Max(now))
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.benchmark, r.unit, plain(was), plain(r.stored), plain(r.low), plain(r.high))
		if r.stored == 0 || r.low < r.stored*(1-slack) || r.high > r.stored*(1+slack) {
			unsteady = append(unsteady, fmt.Errorf("%s is not steady: %s in %s to %s; take its line out, or measure it better", r.figure, plain(r.stored), plain(r.low), plain(r.high)))
		}
		renewed = append(renewed, r)
	}
	return renewed, errors.Join(append(unsteady, table.Flush())...)
}

// round is the number as the file has it, with four digits.
func round(v float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return rounded
}

// plain is a number with at most four digits that count, without an exponent.
func plain(v float64) string { return strconv.FormatFloat(round(v), 'f', -1, 64) }
