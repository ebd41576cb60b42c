package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"stopgate/config"
)

type testCommand struct {
	Paths   []string `arg:"" optional:"" name:"dir" help:"Directories with *.test.yaml, or such files (the working directory)."`
	Only    string   `name:"run" placeholder:"RE" help:"Only the cases whose names match."`
	Verbose bool     `short:"v" help:"Name every case, and what its hooks came to."`
	Cover   bool     `help:"Say which hooks were asked with which outcomes, which alternatives of their matchers matched, and which rules held."`
	JSON    bool     `help:"Print the results as JSON."`
	JUnit   string   `name:"junit" placeholder:"FILE" help:"Write the results as JUnit XML too."`
	Record  bool     `help:"Ask the configured models for what a recording that a case names does not have, and keep their answers there."`
	Init    string   `placeholder:"SPEC" help:"Write a first test file beside SPEC: what its hooks let pass and what they refuse now; what cannot be found out is marked FILL IN, and fails until that is done."`
	Config  string   `placeholder:"FILE" help:"Server file, for sandbox and models."`
	Sandbox string   `placeholder:"MODE" help:"auto, bubblewrap, process, container or off."`
}

// Help is the detail of `stopgate test --help`.
func (testCommand) Help() string {
	return `Runs the cases of *.test.yaml: events, what a model and http servers answer, and what must come out. Hooks are asked as a server would ask them, in the sandbox; models and servers are scripted, and nothing is sent. docs/testing-hooks.md has every key.

Exit codes: 0 every case passed, 1 some failed, 64 usage, or no case that --run picks, 65 a file cannot be read, or a directory holds no tests, 70 interrupted, or a failure of our own.

Examples:
  stopgate test --init examples/marker.yaml
  stopgate test -v --cover examples`
}

// maxTestFiles keeps a directory named by mistake from being run whole.
const maxTestFiles = 1000

// Run runs the cases and says by its exit code whether all passed.
func (c testCommand) Run(p process) error {
	p.stdout, p.stderr = visible{p.stdout}, visible{p.stderr}
	if c.Init != "" {
		return c.init(p)
	}
	only, err := regexp.Compile(c.Only)
	if err != nil {
		return exit{exitUsage, fmt.Errorf("--run is no RE2 pattern: %w", err)}
	}
	if err := makeRoom(c.JUnit); err != nil {
		return exit{exitInput, fmt.Errorf("--junit: %w", err)}
	}
	paths, err := testFiles(c.Paths)
	if err != nil {
		return exit{exitInput, err}
	}
	suites, err := loadSuites(p, paths)
	if err != nil {
		return err
	}
	if suites = pick(suites, only); len(suites) == 0 {
		return exit{exitUsage, fmt.Errorf("--run %q matches no case", c.Only)}
	}
	t, err := c.tester(p)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.openRecordings(suites); err != nil {
		return exit{exitInput, err}
	}
	return c.report(p, t, suites)
}

// report runs the suites and prints what came of them.
func (c testCommand) report(p process, t *tester, suites []*suite) error {
	text := !c.JSON
	for s := range t.run(p.ctx, suites) {
		if text {
			printSuite(p.stdout, s, c.Verbose)
		}
	}
	if p.ctx.Err() != nil {
		return exit{exitInternal, errors.New("interrupted")}
	}
	if err := t.recorded(); err != nil {
		return exit{exitInternal, err}
	}
	var covered []coverage
	if c.Cover {
		covered = coverageOf(suites)
	}
	if c.JUnit != "" {
		if err := writeJUnit(c.JUnit, suites); err != nil {
			return exit{exitInput, fmt.Errorf("--junit: %w", err)}
		}
	}
	var err error
	if text {
		err = printCoverage(p.stdout, covered)
	} else {
		err = printJSON(p.stdout, resultOf(suites, covered))
	}
	if err == nil && slices.ContainsFunc(suites, (*suite).failed) {
		if text {
			fmt.Fprintln(p.stdout, "FAIL")
		}
		err = exit{code: exitFindings}
	}
	return err
}

// testFiles are the test files that are named, and those of directories and
// what lies in them, in order. A directory without any is an error.
func testFiles(paths []string) ([]string, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	var files []string
	for _, path := range paths {
		about, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !about.IsDir() {
			if !config.IsTestFile(path) {
				return nil, fmt.Errorf("%s is no test file: its name must end in .test.yaml; stopgate test --init SPEC writes one", path)
			}
			files = append(files, filepath.Clean(path))
			continue
		}
		below, err := testFilesIn(path)
		if err != nil {
			return nil, err
		}
		if len(below) == 0 { // though others hold some: what is named is meant
			return nil, fmt.Errorf("no *.test.yaml in %s; stopgate test --init SPEC writes one", path)
		}
		files = append(files, below...)
	}
	return files, nil
}

func testFilesIn(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != dir && (e.Name() == ".git" || e.Name() == "node_modules"):
			return fs.SkipDir
		case e.IsDir() || !config.IsTestFile(e.Name()):
			return nil
		case len(files) == maxTestFiles:
			return fmt.Errorf("%s holds more than %d test files", dir, maxTestFiles)
		}
		files = append(files, path)
		return nil
	})
	return files, err
}

// goSpelling lets `stopgate test -run RE` be written as go test has it.
func goSpelling(args []string) []string {
	if args[0] != "test" {
		return args
	}
	args = slices.Clone(args)
	for i, a := range args {
		if name, _, _ := strings.Cut(a, "="); slices.Contains([]string{"-run", "-junit", "-json", "-cover"}, name) {
			args[i] = "-" + a
		}
	}
	return args
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
