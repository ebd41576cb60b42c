package main

import (
	"encoding/json"
	"fmt"
	"io"

	"stopgate/gate"
)

type validateCommand struct {
	JSON  bool     `help:"Print findings as JSON."`
	Files []string `arg:"" name:"file" help:"Spec files, or directories of them."`
}

// Help is the detail of `stopgate validate --help`.
func (validateCommand) Help() string {
	return "Prints file:line:column: error|warning: text. Only errors make it exit 1.\n\nExample: stopgate validate examples/*.yaml"
}

// Run prints the findings of every file.
func (c validateCommand) Run(p process) error {
	files, err := readSpecFiles(c.Files)
	if err != nil {
		return err
	}
	bad, specs := false, 0
	for _, f := range files {
		bad = bad || gate.HasErrors(f.findings)
		specs += len(f.specs)
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
		err = printJSON(p.stdout, map[string]any{"valid": !bad, "findings": all})
	} else {
		printFindings(p.stdout, files)
		if !bad {
			fmt.Fprintf(p.stderr, "%d resources in %d files: no errors\n", specs, len(files))
		}
	}
	if err == nil && bad {
		err = exit{code: exitFindings}
	}
	return err
}

// printJSON writes one indented JSON value.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
