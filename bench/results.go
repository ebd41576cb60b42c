package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"golang.org/x/perf/benchfmt"
)

// figure is one number that a benchmark reports.
type figure struct {
	pkg       string // import path
	benchmark string // with its sub-benchmarks: BenchmarkGrep/no_match
	unit      string // as reported: of-rg, ns/op
}

func (f figure) String() string { return f.pkg + " " + f.benchmark + " " + f.unit }

// results are what each figure was in the runs that were read.
type results struct {
	seen map[figure][]float64
	// facts are the lines "key: value" before the first benchmark, of the machine
	// among others; of a key that comes again it is the first.
	facts map[string]string
}

// readResults reads what `go test -bench` prints. A line that begins as a benchmark
// does and is none is an error, as is a figure that is no number: neither may pass
// for a benchmark that has not run.
func readResults(r io.Reader) (results, error) {
	out := results{seen: map[figure][]float64{}, facts: map[string]string{}}
	in := benchfmt.NewReader(r, "benchmarks")
	for in.Scan() {
		switch record := in.Result().(type) {
		case *benchfmt.SyntaxError:
			return results{}, record
		case *benchfmt.Result:
			if err := out.add(record); err != nil {
				return results{}, err
			}
		}
	}
	return out, in.Err()
}

func (r *results) add(read *benchfmt.Result) error {
	for _, c := range read.Config {
		if _, known := r.facts[c.Key]; !known {
			r.facts[c.Key] = string(c.Value)
		}
	}
	f := figure{pkg: read.GetConfig("pkg"), benchmark: "Benchmark" + withoutProcessors(read.Name)}
	for _, v := range read.Values {
		f.unit = v.Unit
		number := v.Value
		if v.OrigUnit != "" {
			f.unit, number = v.OrigUnit, v.OrigValue
		}
		if math.IsNaN(number) || math.IsInf(number, 0) || number < 0 {
			return fmt.Errorf("%s: %v is no measurement", f, number)
		}
		r.seen[f] = append(r.seen[f], number)
	}
	return nil
}

// withoutProcessors is a benchmark's name without "-2", which says on how many
// processors it ran.
func withoutProcessors(n benchfmt.Name) string {
	base, parts := n.Parts()
	name := string(base)
	for _, p := range parts {
		if p[0] == '/' {
			name += string(p)
		}
	}
	return name
}

// median is of at least one number; of an even count, the lower of the two.
func median(of []float64) float64 {
	return slices.Sorted(slices.Values(of))[(len(of)-1)/2]
}
