package main

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/internal/regular"
)

// maxSpecFile bounds one file of specs; a script is 64 KiB at most.
const maxSpecFile = 16 << 20

// specFile is one file of specs as it was read.
type specFile struct {
	path     string
	data     []byte
	draft    []*gate.Spec // also of a file with errors: see usable
	findings []gate.Finding
}

// usable are the specs of a file without errors; nil of another.
func (f specFile) usable() []*gate.Spec {
	if gate.HasErrors(f.findings) {
		return nil
	}
	return f.draft
}

// readSpecFiles reads files of azure, and the *.yaml, *.yml and *.json of
// directories. A hooks file of another system is an error that says what it is.
func readSpecFiles(paths []string) ([]specFile, error) {
	return readFiles(paths, nil, func(name string, data []byte) ([]*gate.Spec, []gate.Finding) {
		if d, err := config.DialectOf(name, data); err == nil && d != gate.Azure {
			return nil, []gate.Finding{{Severity: gate.SeverityError, Line: 1, Column: 1, Message: noSpec(d)}}
		}
		return config.ReadDraft(name, data)
	})
}

// noSpec says what a hooks file of another system is good for.
func noSpec(d gate.Dialect) string {
	return fmt.Sprintf("these are hooks of %s, and no spec of an agent: attach them to an agent with PUT /v1/agents/{name}/hooks?dialect=%s, "+
		"try them with stopgate run-hooks --dialect %[2]s, or make a spec of them with stopgate convert --from %[2]s --to azure", config.SystemName(d), d)
}

// readHookFiles reads files of a dialect, of any if it is empty; of directories
// also the hooks files that other systems look for there. strict: what is no more
// than an extension of azure's specs is an error.
func readHookFiles(d gate.Dialect, strict bool, paths []string) ([]specFile, error) {
	return readFiles(paths, config.HookPlaces(), func(name string, data []byte) ([]*gate.Spec, []gate.Finding) {
		specs, findings := config.ReadHooks(d, name, data)
		for _, spec := range specs {
			findings = append(findings, withoutOwn(spec, name, data)...)
		}
		if of, err := config.DialectOf(name, data); strict && !config.IsTestFile(name) && (d == gate.Azure || d == "" && err == nil && of == gate.Azure) {
			findings = append(findings, config.Extensions(name, data)...)
		}
		slices.SortStableFunc(findings, func(a, b gate.Finding) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
		return specs, findings
	})
}

// readFiles reads each file. below are further files of a directory that count
// if they are there.
func readFiles(paths, below []string, read func(name string, data []byte) ([]*gate.Spec, []gate.Finding)) ([]specFile, error) {
	var files []specFile
	for _, path := range paths {
		names, err := specNames(path, below)
		if err != nil {
			return nil, exit{exitInput, err}
		}
		for _, name := range names {
			data, err := readBounded(name)
			if err != nil {
				return nil, exit{exitInput, err}
			}
			specs, findings := read(name, data)
			files = append(files, specFile{name, data, specs, findings})
		}
	}
	return files, nil
}

func specNames(path string, below []string) ([]string, error) {
	about, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !about.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if isSpecName(e) {
			names = append(names, filepath.Join(path, e.Name()))
		}
	}
	for _, name := range below {
		name = filepath.Join(path, filepath.FromSlash(name))
		if about, err := os.Stat(name); err == nil && about.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s holds no %s file", path, strings.Join(append([]string{".yaml, .yml or .json"}, below...), ", "))
	}
	return names, nil
}

// dialectNamed is the dialect that a flag names; empty: it names none.
func dialectNamed(flag, name string) (gate.Dialect, error) {
	if name == "" || slices.Contains(gate.Dialects, gate.Dialect(name)) {
		return gate.Dialect(name), nil
	}
	names := dialectNames()
	return "", exit{exitUsage, fmt.Errorf("%s is %q: want one of %s%s", flag, name, strings.Join(names, ", "), config.DidYouMean(name, names))}
}

func dialectNames() []string {
	var names []string
	for _, d := range gate.Dialects {
		names = append(names, string(d))
	}
	return names
}

func isSpecName(e fs.DirEntry) bool {
	return !e.IsDir() && !config.IsTestFile(e.Name()) && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(e.Name())))
}

// readBounded reads a regular file of at most maxSpecFile bytes.
func readBounded(path string) ([]byte, error) { return regular.Read(path, maxSpecFile) }

// printFindings writes "file:line:column: severity: path: text" lines.
func printFindings(w io.Writer, files []specFile) {
	for _, f := range files {
		for _, finding := range f.findings {
			where := f.path + ":"
			if finding.Line == 0 {
				where += " "
			}
			fmt.Fprintf(w, "%s%s\n", where, finding)
		}
	}
}

// goodSpecs is every spec of files without errors; with one, it prints the
// findings and the error says so.
func goodSpecs(p process, files []specFile) ([]*gate.Spec, error) {
	var specs []*gate.Spec
	for _, f := range files {
		if gate.HasErrors(f.findings) {
			printFindings(p.stderr, files)
			return nil, exit{exitFindings, fmt.Errorf("%s has errors; nothing was done", f.path)}
		}
		specs = append(specs, f.usable()...)
	}
	if len(specs) == 0 {
		return nil, exit{exitInput, fmt.Errorf("no agent and no hook in the files given")}
	}
	return specs, nil
}
