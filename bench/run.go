package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// suite is benchmarks of one package that run in one process.
type suite struct {
	module     string // directory of its module, "" for this one
	pkg        string
	benchmarks []string // with their sub-benchmarks
	time       string   // as -benchtime has it
	count      int
}

// runner runs a suite and returns what `go test` has printed.
type runner func(context.Context, suite) ([]byte, error)

// goTest is the runner that asks go; its error has what was printed.
func goTest(ctx context.Context, s suite) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", s.pattern(), "-benchtime", s.time, //nolint:gosec // the repository's own
		"-count", strconv.Itoa(s.count), "-timeout", "20m", s.pkg)
	cmd.Dir = s.module
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test %s: %w\n%s", s.pkg, err, out)
	}
	return out, nil
}

// pattern matches the suite's benchmarks and no others; those of a benchmark that
// is named without them are its own.
func (s suite) pattern() string {
	var patterns []string
	for _, b := range s.benchmarks {
		levels := strings.Split(b, "/")
		for i, l := range levels {
			levels[i] = "^" + regexp.QuoteMeta(l) + "$"
		}
		patterns = append(patterns, strings.Join(levels, "/"))
	}
	return strings.Join(patterns, "|")
}

// loadAverage is of the last minute, "unknown" where the system does not say.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	if load, _, found := bytes.Cut(text, []byte(" ")); found {
		return string(load)
	}
	return "unknown"
}
