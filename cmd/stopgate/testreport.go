package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stopgate/gate"
	"stopgate/internal/terminal"
)

// printSuite writes what came of a test file, as go test does.
func printSuite(w io.Writer, s *suite, verbose bool) {
	for _, c := range s.cases {
		word, failed := "PASS", len(c.result.failures) > 0
		if failed {
			word = "FAIL"
		}
		if failed || verbose {
			fmt.Fprintf(w, "--- %s: %s (%s)\n", word, c.Name, inSeconds(c.result.took()))
		}
		for _, f := range c.result.failures {
			fmt.Fprintf(w, "    %s:%d: %s\n", s.file.Path, f.Line, strings.ReplaceAll(f.Message, "\n", "\n        "))
		}
		if verbose {
			for _, d := range c.result.decisions {
				fmt.Fprintf(w, "    %s\n", told(d))
			}
		}
	}
	word := "ok  "
	if s.failed() {
		word = "FAIL"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", word, s.file.Path, inSeconds(s.took()), plural(len(s.cases), "case"))
}

// told is a decision in a line.
func told(d gate.Decision) string {
	var b strings.Builder
	b.WriteString(string(d.Outcome))
	if len(d.Hooks) == 0 {
		b.WriteString(": no hook was asked")
	}
	for i, v := range d.Hooks {
		b.WriteString(map[bool]string{true: ": ", false: ", "}[i == 0])
		fmt.Fprintf(&b, "%s %s", v.Name, v.Outcome)
		if v.Failure != nil {
			fmt.Fprintf(&b, " (%s)", v.Failure.Code)
		}
		for _, n := range v.Notes {
			fmt.Fprintf(&b, " [%s]", n)
		}
	}
	return b.String()
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

// took is from the first case's beginning to the last one's end.
func (s *suite) took() time.Duration {
	var began, ended time.Time
	for _, c := range s.cases {
		if began.IsZero() || c.result.began.Before(began) {
			began = c.result.began
		}
		if c.result.ended.After(ended) {
			ended = c.result.ended
		}
	}
	return ended.Sub(began)
}

// testResult is what --json prints.
type testResult struct {
	OK       bool         `json:"ok"`
	Files    []fileResult `json:"files"`
	Coverage []coverage   `json:"coverage,omitempty"`
}

type fileResult struct {
	File    string       `json:"file"`
	OK      bool         `json:"ok"`
	Seconds float64      `json:"seconds"`
	Cases   []caseReport `json:"cases"`
}

type caseReport struct {
	Name      string          `json:"name"`
	Line      int             `json:"line"`
	OK        bool            `json:"ok"`
	Seconds   float64         `json:"seconds"`
	Failures  []caseFailure   `json:"failures"`
	Decisions []gate.Decision `json:"decisions"`
}

func resultOf(suites []*suite, covered []coverage) testResult {
	all := testResult{OK: true, Files: []fileResult{}, Coverage: covered}
	for _, s := range suites {
		f := fileResult{File: s.file.Path, OK: !s.failed(), Seconds: s.took().Seconds(), Cases: []caseReport{}}
		for _, c := range s.cases {
			r := caseReport{Name: c.Name, Line: c.Line, OK: len(c.result.failures) == 0, Seconds: c.result.took().Seconds(),
				Failures: append([]caseFailure{}, c.result.failures...), Decisions: []gate.Decision{}}
			for _, d := range c.result.decisions {
				r.Decisions = append(r.Decisions, d.WithoutEvidence())
			}
			f.Cases = append(f.Cases, r)
		}
		all.OK = all.OK && f.OK
		all.Files = append(all.Files, f)
	}
	return all
}

// The form that CI systems read: a suite for each file. They show classname and
// name, and take the dots of a classname for levels, so that it has no extension.
type (
	junit struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// makeRoom finds out before anything is run that a report could not be written, and
// removes an older one, which would be taken for this run's if that came to none.
func makeRoom(report string) error {
	if report == "" {
		return nil
	}
	about, err := os.Lstat(report)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(filepath.Dir(report), 0o755)
	case err != nil:
		return err
	case about.IsDir():
		return fmt.Errorf("%s is a directory", report)
	case about.Mode().IsRegular(): // and not /dev/stdout
		return os.Remove(report)
	}
	return nil
}

func writeJUnit(path string, suites []*suite) error {
	var all junit
	var took time.Duration
	for _, s := range suites {
		js := junitSuite{Name: s.file.Path, Tests: len(s.cases), Time: junitTime(s.took())}
		class := strings.TrimSuffix(strings.TrimSuffix(s.file.Path, filepath.Ext(s.file.Path)), ".test")
		for _, c := range s.cases {
			jc := junitCase{Class: class, Name: c.Name, File: s.file.Path, Line: c.Line, Time: junitTime(c.result.took())}
			if len(c.result.failures) > 0 {
				js.Failures++
				jc.Failure = &junitFailure{Message: terminal.Visible(c.result.failures[0].Message)}
				for _, f := range c.result.failures {
					jc.Failure.Text += fmt.Sprintf("%s:%d: %s\n", s.file.Path, f.Line, terminal.Visible(f.Message))
				}
			}
			js.Cases = append(js.Cases, jc)
		}
		all.Tests, all.Failures, took = all.Tests+js.Tests, all.Failures+js.Failures, took+s.took()
		all.Suites = append(all.Suites, js)
	}
	all.Time = junitTime(took)
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(xml.Header+string(text)+"\n"), 0o644) //nolint:gosec // a report that CI reads as another user
}

// junitTime is in seconds, without a unit.
func junitTime(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
