package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
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
	_, err := w.Write(escapeControls(text.Bytes()))
	return err
}

// escapeControls escapes in JSON the controls that encoding/json writes as they are:
// DEL, those behind it, of which one begins a terminal's sequences as ESC [ does, and
// what turns the direction of a text.
func escapeControls(doc []byte) []byte {
	control := func(r rune) bool { return r > '~' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) }
	if bytes.IndexFunc(doc, control) < 0 {
		return doc
	}
	var out bytes.Buffer
	for _, r := range string(doc) {
		if control(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}
