package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// slack is the share of the stored figure by which one may be worse.
const slack = 0.25

// ratio is one line of the file of ratios: a figure that CI holds, and what it was
// in the runs that were stored.
type ratio struct {
	figure
	time   string // as -benchtime has it
	higher bool   // whether more is better
	// stored is the median, low and high are the least and the most of its runs; all
	// are 0 where it was never measured.
	stored, low, high float64
}

// worst is the figure beyond which it fails.
func (r ratio) worst() float64 {
	if r.higher {
		return r.stored * (1 - slack)
	}
	return r.stored * (1 + slack)
}

// better reports whether a is better than b.
func (r ratio) better(a, b float64) bool { return a != b && (a > b) == r.higher }

// fallen and risen report whether seen is worse or better by more than slack.
func (r ratio) fallen(seen float64) bool { return r.better(r.worst(), seen) }

func (r ratio) risen(seen float64) bool {
	if r.higher {
		return seen > r.stored*(1+slack)
	}
	return seen < r.stored*(1-slack)
}

// readRatios reads lines of a package, a benchmark, its time, the unit, "higher" or
// "lower", and three numbers or none. What is wrong is said of all lines at once.
func readRatios(text []byte) ([]ratio, error) {
	var out []ratio
	var faults []error
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, err := readRatio(strings.Fields(line))
		for _, o := range out {
			switch {
			case err != nil:
			case o.figure == r.figure:
				err = errors.New("is there twice")
			case o.pkg == r.pkg && o.benchmark == r.benchmark && o.time != r.time:
				err = fmt.Errorf("the benchmark runs for %s in another line", o.time)
			}
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %q: %w", n+1, line, err))
		}
		out = append(out, r)
	}
	if out == nil {
		faults = append(faults, errors.New("no ratio"))
	}
	return out, errors.Join(faults...)
}

func readRatio(fields []string) (ratio, error) {
	if len(fields) != 5 && len(fields) != 8 {
		return ratio{}, fmt.Errorf("%d fields, want 8, or 5 where nothing was measured", len(fields))
	}
	r := ratio{figure: figure{pkg: fields[0], benchmark: fields[1], unit: fields[3]}, time: fields[2], higher: fields[4] == "higher"}
	if !r.higher && fields[4] != "lower" {
		return ratio{}, fmt.Errorf(`%q, want "higher" or "lower"`, fields[4])
	}
	for i, field := range fields[5:] {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil || !(v > 0) {
			return ratio{}, fmt.Errorf("%q, want a number above 0", field)
		}
		*[]*float64{&r.stored, &r.low, &r.high}[i] = v
	}
	if !(r.low <= r.stored && r.stored <= r.high) {
		return ratio{}, errors.New("the stored figure is not between the least and the most")
	}
	return r, nil
}

// The file's own lines of comment are kept but for the one that says how it was
// measured, which begins so, and that with the names of the columns.
const (
	measuredLine = "# Measured "
	columnsLine  = "# package"
)

// writeRatios is the file anew, with comments of the one that was read.
func writeRatios(w io.Writer, old []byte, measured string, ratios []ratio) error {
	var out bytes.Buffer
	for line := range strings.Lines(string(old)) {
		if strings.HasPrefix(line, "#") && !strings.HasPrefix(line, measuredLine) && !strings.HasPrefix(line, columnsLine) {
			out.WriteString(line)
		}
	}
	fmt.Fprintf(&out, "%s%s\n", measuredLine, measured)
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, columnsLine+"\tbenchmark\ttime\tunit\tbetter\tstored\tleast\tmost")
	for _, r := range ratios {
		better := "lower"
		if r.higher {
			better = "higher"
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.pkg, r.benchmark, r.time, r.unit, better, plain(r.stored), plain(r.low), plain(r.high))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}
