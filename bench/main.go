// Command bench holds stopgate to the benchmarks that it has had, and draws them.
//
//	bench short    measures the ratios in bench/ratios.txt; it fails when one has fallen
//	bench renew    measures them eight times and stores them there
//	bench measure  runs what docs/charts.md shows, into docs/charts/measured.txt
//	bench draw     writes docs/charts.md and the charts from that file
//
// It runs in the repository's root: see `make help` and docs/benchmarks.md.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"
)

const ratiosFile = "bench/ratios.txt"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("want one of short, renew, measure, draw")
	}
	switch args[0] {
	case "short", "renew":
		text, err := os.ReadFile(ratiosFile)
		if err != nil {
			return err
		}
		ratios, err := readRatios(text)
		if err != nil {
			return fmt.Errorf("%s: %w", ratiosFile, err)
		}
		if args[0] == "short" {
			return short(ctx, out, ratios, goTest)
		}
		return store(ctx, out, text, ratios)
	case "measure":
		return measureCharts(ctx, out, goTest)
	case "draw":
		return drawCharts(".")
	}
	return fmt.Errorf("%q, want one of short, renew, measure, draw", args[0])
}

// store writes the file of ratios anew.
func store(ctx context.Context, out io.Writer, old []byte, ratios []ratio) error {
	before := loadAverage()
	renewed, err := renew(ctx, out, ratios, goTest)
	if err != nil {
		return err
	}
	measured := fmt.Sprintf("%d times on %s: %s/%s, %d processors, %s, load average %s before and %s after.", renewals,
		time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), before, loadAverage())
	var file bytes.Buffer
	if err := writeRatios(&file, old, measured, renewed); err != nil {
		return err
	}
	return os.WriteFile(ratiosFile, file.Bytes(), 0o644) //nolint:gosec // a file of the repository
}
