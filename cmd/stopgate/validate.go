package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stopgate/commandhooks"
	"stopgate/config"
	"stopgate/gate"
)

type validateCommand struct {
	JSON    bool     `help:"Print findings as JSON."`
	Explain bool     `help:"Say also what each hook is asked about, tool by tool in each host's own names."`
	Config  string   `placeholder:"FILE" help:"Server file: warn also of hooks that a server with it could not ask, started here."`
	Strict  bool     `name:"strict-azure" help:"Report as errors what Azure SRE Agent does not know in its specs: when, mode, votes, …"`
	Dialect string   `placeholder:"D" help:"Whose hooks the files are, where they do not say: ${dialects}."`
	Files   []string `arg:"" name:"file" help:"Spec files and hooks files, or directories of them."`
}

// Help is the detail of `stopgate validate --help`.
func (validateCommand) Help() string {
	return `Knows the specs of azure, the hooks.json of antigravity and of ax-code, and the hooks in settings of claude-code, by place, content and name. Of a directory it reads the .yaml, .yml and .json files, and ` + strings.Join(config.HookPlaces(), ", ") + `.

Prints file:line:column: error|warning: text, which says what that system would do. Only errors make it exit 1.

Example: stopgate validate --explain examples examples/antigravity`
}

// Run prints the findings of every file.
func (c validateCommand) Run(p process) error {
	p.stdout, p.stderr = visible{p.stdout}, visible{p.stderr}
	dialect, err := dialectNamed("--dialect", c.Dialect)
	if err != nil {
		return err
	}
	files, err := readHookFiles(dialect, c.Strict, c.Files)
	if err != nil {
		return err
	}
	addAbsent(files)
	if err := c.addUnserved(p, files); err != nil {
		return err
	}
	bad, total := false, tally{}
	for _, f := range files {
		bad = bad || gate.HasErrors(f.findings)
		total.add(f)
	}
	if c.JSON {
		type finding struct {
			File string `json:"file"`
			gate.Finding
		}
		all := []finding{}
		for _, f := range files {
			for _, x := range f.findings {
				all = append(all, finding{f.path, x})
			}
		}
		body := map[string]any{"valid": !bad, "findings": all}
		if c.Explain {
			body["hooks"] = explain(files)
		}
		err = printJSON(p.stdout, body)
	} else {
		printFindings(p.stdout, files)
		if c.Explain {
			printExplanations(p.stdout, explain(files))
		}
		fmt.Fprintln(p.stderr, total)
	}
	if err == nil && bad {
		err = exit{code: exitFindings}
	}
	return err
}

// addAbsent warns of scripts that hooks start first and that their project does not
// have. Whose project it is says the place of the file.
func addAbsent(files []specFile) {
	for i, f := range files {
		project := config.ProjectOf(f.path)
		if project == filepath.Dir(f.path) { // it lies in no place of a system's
			continue
		}
		for _, spec := range f.usable() {
			var found []gate.Finding
			for j := range spec.Hooks {
				h := &spec.Hooks[j]
				if what := commandhooks.Absent(h, absolute(project)); what != "" {
					found = append(found, gate.Finding{Severity: gate.SeverityWarning, Path: h.Name, Message: what})
				}
			}
			files[i].findings = append(files[i].findings, config.Locate(spec, f.path, f.data, found)...)
		}
	}
}

// addUnserved warns of what a server with the server file could not ask.
func (c validateCommand) addUnserved(p process, files []specFile) error {
	if c.Config == "" {
		return nil
	}
	cfg, err := loadConfig(p, c.Config, overrides{offline: true})
	if err != nil {
		return err
	}
	app, err := buildOffline(p.ctx, cfg, commandOptions(cfg, p.getenv), p.getenv)
	if err != nil {
		return exit{exitInput, err}
	}
	for i, f := range files {
		for _, spec := range f.usable() {
			for _, found := range config.Locate(spec, f.path, f.data, app.unserved(spec)) {
				// Of a URL that no server could reach its own finding says why.
				if !slices.ContainsFunc(f.findings, func(x gate.Finding) bool { return strings.HasSuffix(x.Path, found.Path+".url") }) {
					files[i].findings = append(files[i].findings, found)
				}
			}
		}
	}
	return app.close()
}

// tally is what was read, in numbers, files with errors included: an agent
// without hooks, or a warning that scrolled by, shows in it.
type tally struct{ agents, globals, attached, hooks, errors, warnings int }

func (t *tally) add(f specFile) {
	for _, s := range f.draft {
		t.hooks += len(s.Hooks)
		switch s.Kind {
		case gate.AgentSpec:
			t.agents++
		case gate.HookSpec:
			t.globals++
		default:
			t.attached++
		}
	}
	for _, x := range f.findings {
		if x.Severity == gate.SeverityError {
			t.errors++
		} else {
			t.warnings++
		}
	}
}

// String is one line for a person.
func (t tally) String() string {
	files := ""
	if t.attached > 0 {
		files = fmt.Sprintf("hooks files of other systems: %d, ", t.attached)
	}
	return fmt.Sprintf("agents: %d, agent-level hooks: %d, %shooks in all: %d, errors: %d, warnings: %d", t.agents, t.globals, files, t.hooks, t.errors, t.warnings)
}
