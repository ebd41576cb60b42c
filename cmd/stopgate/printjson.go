package main

import (
	"bytes"
	"encoding/json"
	"io"

	"stopgate/internal/terminal"
)

// printJSON writes v over several lines, for a program and for whoever looks at it on
// a terminal, which obeys none of the texts in it.
func printJSON(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// printJSONLine is [printJSON] on one line.
func printJSONLine(w io.Writer, v any) error { return writeJSON(w, v, "") }

func writeJSON(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(terminal.InJSON(text.Bytes()))
	return err
}
