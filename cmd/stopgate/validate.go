package main

import (
	"encoding/json"
	"fmt"
	"io"

	"stopgate/config"
	"stopgate/gate"
)

type validateCommand struct {
	JSON    bool     `help:"Print findings as JSON."`
	Explain bool     `help:"Say also what each hook is asked about, tool by tool in each host's own names."`
	Files   []string `arg:"" name:"file" help:"Spec files or hooks files, or directories of them."`
}

// Help is the detail of `stopgate validate --help`.
func (validateCommand) Help() string {
	return "Prints file:line:column: error|warning: text. Only errors make it exit 1. Hooks files of antigravity, ax-code and claude-code are known by their names or by what is in them; what is said of them is what those systems would do.\n\nExample: stopgate validate --explain examples/*.yaml .ax-code/hooks.json"
}

// Run prints the findings of every file.
func (c validateCommand) Run(p process) error {
	p.stdout, p.stderr = visible{p.stdout}, visible{p.stderr}
	files, err := readFiles(c.Files, readOfAnySystem)
	if err != nil {
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

// readOfAnySystem reads agent specs, and hooks of other systems: the findings
// then say what those would do (spec/ax-code.md 2).
func readOfAnySystem(name string, data []byte) ([]*gate.Spec, []gate.Finding) {
	if config.IsTestFile(name) { // as examples/*.yaml has them too
		_, findings := config.ReadTestFile(name, data)
		return nil, findings
	}
	of := config.DialectOf(name, data)
	if of == gate.Azure {
		return config.ReadDraft(name, data)
	}
	spec, findings := config.ReadAttached(of, gate.DefaultAgent, data)
	if spec == nil {
		return nil, findings
	}
	return []*gate.Spec{spec}, findings
}

// tally is what was read, in numbers, files with errors included: an agent
// without hooks, or a warning that scrolled by, shows in it.
type tally struct{ agents, globals, hooks, errors, warnings int }

func (t *tally) add(f specFile) {
	for _, s := range f.draft {
		t.hooks += len(s.Hooks)
		switch s.Kind {
		case gate.AgentSpec:
			t.agents++
		case gate.HookSpec:
			t.globals++
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
	return fmt.Sprintf("agents: %d, agent-level hooks: %d, hooks in all: %d, errors: %d, warnings: %d", t.agents, t.globals, t.hooks, t.errors, t.warnings)
}

// printJSON writes one indented JSON value.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
