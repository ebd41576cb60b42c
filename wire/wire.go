// Package wire speaks the protocols of agent hosts: one file a protocol, each
// a Decode from the host's bytes to a [gate.Event] and an Encode from a
// [gate.Decision] to the host's bytes, both functions of values.
//
// Hosts are read leniently: unknown fields are ignored here and kept in the
// record; bytes that are not UTF-8 are replaced.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"stopgate/gate"
)

// object reads a JSON object leniently: what is not UTF-8 is replaced, what
// follows the object is not looked at by callers that only want its fields.
// The error is a [gate.Error] with CodeInvalidJSON that names line and column.
func object(body []byte) (map[string]json.RawMessage, error) {
	body = bytes.ToValidUTF8(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), []byte("\uFFFD"))
	var fields map[string]json.RawMessage
	err := json.Unmarshal(body, &fields)
	if err == nil && fields != nil {
		return fields, nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset := max(int(syntax.Offset)-1, 0) // Offset counts the byte that is wrong
		line, column := position(body, offset)
		return nil, &gate.Error{Code: gate.CodeInvalidJSON,
			Message: fmt.Sprintf("body is not valid JSON: %s (byte %d)", syntax.Error(), offset),
			Details: []gate.Finding{{Severity: gate.SeverityError, Line: line, Column: column, Message: syntax.Error()}}}
	}
	return nil, gate.Errorf(gate.CodeInvalidJSON, "body is not a JSON object")
}

// position is the line and column, both from 1, of a byte.
func position(body []byte, offset int) (line, column int) {
	before := body[:min(offset, len(body))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// fields reads the members of an object, collecting every wrong type instead
// of stopping at the first.
type fields struct {
	of       map[string]json.RawMessage
	findings []gate.Finding
}

func (f *fields) wrong(key, want string) {
	f.findings = append(f.findings, gate.Finding{Severity: gate.SeverityError, Path: key, Message: "want " + want})
}

// read decodes one member into target; an absent or null one is left alone.
func (f *fields) read(key string, target any, want string) {
	raw, ok := f.of[key]
	if !ok || string(raw) == "null" {
		return
	}
	if json.Unmarshal(raw, target) != nil {
		f.wrong(key, want)
	}
}

func (f *fields) text(key string, target *string) { f.read(key, target, "a string") }

func (f *fields) flag(key string, target *bool) { f.read(key, target, "true or false") }

// count reads a whole number that is not negative; 3.0 is one.
func (f *fields) count(key string, target *int) {
	var n float64
	raw, ok := f.of[key]
	if !ok || string(raw) == "null" {
		return
	}
	const most = 1 << 31
	if json.Unmarshal(raw, &n) != nil || n != float64(int(n)) || n < 0 || n >= most {
		f.wrong(key, "a whole number that is not negative")
		return
	}
	*target = int(n)
}

// anyText reads a string; any other JSON value is taken as its own text.
func (f *fields) anyText(key string, target *string) {
	raw, ok := f.of[key]
	if !ok || string(raw) == "null" {
		return
	}
	if json.Unmarshal(raw, target) != nil {
		*target = string(raw)
	}
}

func (f *fields) err() error {
	if len(f.findings) == 0 {
		return nil
	}
	var texts []string
	for _, d := range f.findings {
		texts = append(texts, fmt.Sprintf("%q: %s", d.Path, d.Message))
	}
	return &gate.Error{Code: gate.CodeValidation, Message: "body is not a valid event: " + strings.Join(texts, "; "), Details: f.findings}
}
