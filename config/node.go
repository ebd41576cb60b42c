package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stopgate/gate"
	"stopgate/rulehooks/expressions"
)

// kind of a value, the same for YAML and JSON.
type kind int

const (
	nullKind kind = iota
	boolKind
	numberKind
	textKind
	listKind
	objectKind
)

// maxDepth is how deep values may be nested. Specs need about ten; what is
// deeper is an attack on somebody's recursion.
const maxDepth = 64

// pos is where something stands; both count from 1, columns in characters.
type pos struct{ line, column int }

// node is one value with its position: what YAML and JSON have in common.
type node struct {
	pos
	kind kind
	text string // text: the value; number: a JSON literal; bool: true or false
	// written is the text before ${VAR} was expanded in it; empty: it was not.
	// It is what messages show: what a variable holds may be a secret.
	written string
	fields  []field
	items   []*node
}

// field is one member of an object, in source order.
type field struct {
	pos
	name  string
	value *node
}

// find is the value of a field, or nil.
func (n *node) find(name string) *node {
	for _, f := range n.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

func (n *node) has(name string) bool { return n.find(name) != nil }

// describe says what a value is, for "is …, want …".
func (n *node) describe() string {
	switch n.kind {
	case nullKind:
		return "null"
	case boolKind:
		return n.text
	case numberKind:
		return "the number " + cut(n.text)
	case textKind:
		return fmt.Sprintf("the text %q", cut(n.shown()))
	case listKind:
		return "a list"
	default:
		return "an object"
	}
}

// shown is the value as the person wrote it.
func (n *node) shown() string { return cmp.Or(n.written, n.text) }

// cut shortens foreign text for a message.
func cut(s string) string {
	const most = 60
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most]) + "…"
}

// canonical is the value as JSON with its fields sorted by name, numbers as they
// were written, nothing escaped that need not be. YAML and JSON of the same value
// give the same bytes (spec/azure.md 2).
func (n *node) canonical() []byte { return n.appendJSON(nil, true) }

// ordered is canonical with fields in the order in which they were written, which
// for hooks is one in which they fire.
func (n *node) ordered() []byte { return n.appendJSON(nil, false) }

func (n *node) appendJSON(b []byte, sorted bool) []byte {
	switch n.kind {
	case nullKind:
		return append(b, "null"...)
	case boolKind, numberKind:
		return append(b, n.text...)
	case textKind:
		return appendText(b, n.text)
	case listKind:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b, sorted)
		}
		return append(b, ']')
	}
	fields := n.fields
	if sorted {
		fields = slices.SortedFunc(slices.Values(fields), func(a, b field) int { return strings.Compare(a.name, b.name) })
	}
	return appendFields(b, fields, sorted)
}

// appendFields writes fields as they come; sorted is about what is in them.
func appendFields(b []byte, fields []field, sorted bool) []byte {
	b = append(b, '{')
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = f.value.appendJSON(append(appendText(b, f.name), ':'), sorted)
	}
	return append(b, '}')
}

func appendText(b []byte, s string) []byte {
	text, err := gate.PlainJSON(s)
	if err != nil { // a string always has a JSON form
		panic(err)
	}
	return append(b, text...)
}

// whole is the number as an integer; 30.0 is one. Beyond ±1e9, which nothing
// here needs, ok is false.
func (n *node) whole() (i int, ok bool) {
	const most = 1e9
	f, err := strconv.ParseFloat(n.text, 64)
	if err != nil || f < -most || f > most || f != float64(int(f)) {
		return 0, false
	}
	return int(f), true
}

// maxFindings is how many errors, and how many warnings, one text gets: more
// helps nobody, and a hostile text could have a finding in every second byte.
const maxFindings = 100

// findings collects remarks in the order they are made.
type findings struct {
	list             []gate.Finding
	errors, warnings int
	// extensions are fields that are the gate's own and not the dialect's.
	extensions []gate.Finding
	// text is the document itself, and what its expressions are compiled with.
	text        []byte
	compiler    expressions.Compiler
	expressions int // bytes of those compiled so far
	// sources are the values that hooks were read from, by the hook's name, and
	// unread those of hooks that their system would run and the gate does not
	// know: for [Conversion], which has to say where everything stands.
	sources map[string]sourced
	unread  []gate.Finding
}

// sourced is where a hook was read from; path is as in findings.
type sourced struct {
	path string
	node *node
}

// source remembers where a hook was read from.
func (f *findings) source(hook, path string, n *node) {
	if f.sources == nil {
		f.sources = map[string]sourced{}
	}
	f.sources[hook] = sourced{path, n}
}

// unreadf warns of hooks that their system would run and that are left out.
func (f *findings) unreadf(path string, at pos, format string, args ...any) {
	f.warnf(path, at, format, args...)
	if len(f.unread) < maxFindings {
		f.unread = append(f.unread, gate.Finding{Severity: gate.SeverityError, Path: path, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...)})
	}
}

func (f *findings) errorf(path string, at pos, format string, args ...any) {
	f.add(gate.SeverityError, path, at, fmt.Sprintf(format, args...))
}

func (f *findings) warnf(path string, at pos, format string, args ...any) {
	f.add(gate.SeverityWarning, path, at, fmt.Sprintf(format, args...))
}

func (f *findings) add(s gate.Severity, path string, at pos, message string) {
	count := &f.errors
	if s == gate.SeverityWarning {
		count = &f.warnings
	}
	switch *count++; {
	case *count == maxFindings:
		message += fmt.Sprintf(" (more than %d %ss: the rest is left out)", maxFindings-1, s)
	case *count > maxFindings:
		return
	}
	f.list = append(f.list, gate.Finding{Severity: s, Path: path, Line: at.line, Column: at.column, Message: message})
}

// full reports whether further warnings would only be counted.
func (f *findings) full() bool { return f.warnings >= maxFindings }

// sorted is the findings in the order of the text.
func (f *findings) sorted() []gate.Finding {
	slices.SortStableFunc(f.list, func(a, b gate.Finding) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return f.list
}

// split parts findings into errors and warnings.
func split(list []gate.Finding) (errs, warnings []gate.Finding) {
	for _, f := range list {
		if f.Severity == gate.SeverityError {
			errs = append(errs, f)
		} else {
			warnings = append(warnings, f)
		}
	}
	return errs, warnings
}

// refusal is the error that shows all error findings at once.
func refusal(code gate.Code, errs []gate.Finding) *gate.Error {
	message := errs[0].Message
	if n := len(errs) - 1; n > 0 {
		message += fmt.Sprintf(" (and %d more: see details)", n)
	}
	return &gate.Error{Code: code, Message: message, Details: errs}
}
