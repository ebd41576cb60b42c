package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/internal/regular"
	"stopgate/wire"
)

type convertCommand struct {
	From    string `placeholder:"D" help:"Whose hooks the file has, where it does not say: ${dialects}."`
	To      string `required:"" placeholder:"D" help:"Whose hooks to write: ${dialects}."`
	Agent   string `placeholder:"NAME" help:"The agent that is converted, of a file with several; the one that is written, of azure, or the group, of antigravity (converted)."`
	Partial bool   `help:"Write what can be expressed, though something cannot."`
	Output  string `short:"o" placeholder:"FILE" help:"Write to FILE instead of standard output; one that is there stays as it is."`
	File    string `arg:"" help:"A spec file or hooks file."`
}

// Help is the detail of `stopgate convert --help`.
func (convertCommand) Help() string {
	return `Writes the hooks of one system in the form of another: YAML for azure, JSON for the others. The report stands on standard error as file:line:column: error|warning: text. Errors come first, then what becomes of single hooks, then what holds for all. An error is what cannot be expressed there: without --partial nothing is written then. A warning is what is expressed and behaves otherwise; scripts are kept as they are, and say for themselves what they read and answer. What a hook may answer, and what it reads of its input, is looked for in its own text and in the scripts of the project that it runs; where it is not certain what it can answer, a warning says what to look for.

Exit codes: 0 written; 1 something cannot be expressed, or the file has errors; 64 usage, 65 unreadable input.

Example: stopgate convert --to claude-code examples/dangerous-command.yaml`
}

// Run converts one file.
func (c convertCommand) Run(p process) error {
	p.stderr = visible{p.stderr}
	conversion, data, err := c.settle()
	if err != nil {
		return err
	}
	project := projectScripts{from: conversion.From, dir: config.ProjectOf(absolute(c.File))}
	conversion.Script, conversion.Names = project.text, project.names
	document, report := conversion.Convert(c.File, data)
	printFindings(p.stderr, []specFile{{path: c.File, findings: report}})
	if document == nil {
		return exit{exitFindings, errors.New("nothing was written")}
	}
	if c.Output == "" {
		_, err = p.stdout.Write(document)
	} else {
		err = c.put(document)
	}
	if err == nil && gate.HasErrors(report) {
		fmt.Fprintln(p.stderr, "stopgate: written without what has an error above, but for a hook whose line says that it is written")
	}
	return err
}

// put writes a file that is not there yet: settings hold more than hooks, which
// would be gone.
func (c convertCommand) put(document []byte) error {
	f, err := os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return exit{exitInput, err}
	}
	_, err = f.Write(document)
	if err = errors.Join(err, f.Close()); err != nil {
		return exit{exitInput, err}
	}
	return nil
}

// projectScripts are the scripts of the project that a hooks file belongs to.
type projectScripts struct {
	from   gate.Dialect
	dir    string
	looked int
}

// maxLooked is how many files are looked for: a hooks file can name very many.
const maxLooked = 256

// text is a script's. No path and no symbolic link leads out of the project, and
// what is no regular file, or larger than any script that a spec could hold, is
// not read.
func (s *projectScripts) text(path string) (string, bool) {
	f, err := regular.Check(s.open(path))
	if err != nil {
		return "", false
	}
	defer f.Close()
	text, err := regular.ReadAll(f, gate.MaxScriptBytes)
	return string(text), err == nil
}

// maxNames is how many names of one directory are looked at.
const maxNames = 4096

// names are a directory's, if there are not very many.
func (s *projectScripts) names(dir string) ([]string, bool) {
	f, err := s.open(dir)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	names, err := f.Readdirnames(maxNames)
	return names, (err == nil || errors.Is(err, io.EOF)) && len(names) < maxNames
}

// open opens what lies in the project.
func (s *projectScripts) open(path string) (*os.File, error) {
	if s.looked++; s.looked > maxLooked {
		return nil, os.ErrNotExist
	}
	if filepath.IsAbs(path) {
		top := s.dir
		if s.from == gate.Antigravity { // the project is / there
			top = "/"
		}
		rel, err := filepath.Rel(top, path)
		if err != nil {
			return nil, err
		}
		path = rel
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(path, regular.How, 0)
}

// settle checks what was asked for, and reads the file.
func (c convertCommand) settle() (config.Conversion, []byte, error) {
	none := config.Conversion{}
	from, err := dialectNamed("--from", c.From)
	if err != nil {
		return none, nil, err
	}
	to, err := dialectNamed("--to", c.To)
	if err != nil {
		return none, nil, err
	}
	if c.Agent != "" {
		if err := config.CheckName("agent", c.Agent); err != nil {
			return none, nil, exit{exitUsage, fmt.Errorf("--agent: %w", err)}
		}
	}
	if _, err := os.Lstat(c.Output); c.Output != "" && err == nil { // before there is a report of what would be written
		return none, nil, exit{exitInput, fmt.Errorf("%s: file exists, and stays as it is", c.Output)}
	}
	data, err := readBounded(c.File)
	if err != nil {
		return none, nil, exit{exitInput, err}
	}
	if from == "" {
		if from, err = config.DialectOf(c.File, data); err != nil {
			return none, nil, exit{exitInput, fmt.Errorf("%s: %s", c.File, strings.Replace(err.Error(), "--dialect D", "--from D", 1))}
		}
	}
	if from == to || to == "" {
		return none, nil, exit{exitUsage, fmt.Errorf("%s has hooks of %s already", c.File, from)}
	}
	return config.Conversion{From: from, To: to, Agent: c.Agent, Partial: c.Partial, Tools: convertedTools()}, data, nil
}

// convertedTools are the known tools by the names that each dialect's hooks have
// for them. Those of azure have Claude Code's, which are the canonical ones.
func convertedTools() []config.Tool {
	var tools []config.Tool
	known := map[string]bool{}
	add := func(canonical, antigravity []string, axCode []string) {
		for _, name := range slices.Concat(canonical, antigravity) {
			known[name] = true
		}
		tools = append(tools, config.Tool{gate.Azure: canonical, gate.ClaudeCode: canonical, gate.Antigravity: antigravity, gate.AXCode: axCode})
	}
	for _, t := range wire.Tools() {
		var sandbox []string
		if name := gate.AntigravityTool(t.Name); name != "" {
			sandbox = []string{name}
		}
		add(append([]string{t.Name}, t.Hosts[string(gate.ClaudeCode)]...), sandbox, t.Hosts[string(gate.AXCode)])
	}
	for _, name := range wire.KnownTools(string(gate.ClaudeCode)) {
		if !known[name] {
			add([]string{name}, nil, nil)
		}
	}
	for _, name := range gate.AntigravityTools {
		if !known[name] {
			add(nil, []string{name}, nil)
		}
	}
	return tools
}
