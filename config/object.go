package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stopgate/gate"
)

// object reads the fields of one object and remembers which it was asked for,
// so that the rest can be reported as unknown.
type object struct {
	*findings
	path  string
	node  *node
	asked []string
}

// child is the path of a field.
func (o *object) child(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// value is a field's value; nil when it is absent or null, which mean the same
// for every field that may be left out.
func (o *object) value(name string) *node {
	if !slices.Contains(o.asked, name) {
		o.asked = append(o.asked, name)
	}
	if n := o.node.find(name); n != nil && n.kind != nullKind {
		return n
	}
	return nil
}

// typed is the field's value if it has the wanted kind; else that is an error.
func (o *object) typed(name string, k kind, want string) *node {
	n := o.value(name)
	if n == nil || n.kind == k {
		return n
	}
	if n.kind == textKind && n.written != "" { // ${VAR} stands for what it holds
		if k == boolKind && (n.text == "true" || n.text == "false") || k == numberKind && isNumber(n.text) {
			return &node{pos: n.pos, kind: k, text: n.text, written: n.written}
		}
	}
	hint := ""
	if n.kind == textKind && (k == numberKind || k == boolKind) {
		hint = " without quotes"
	}
	o.errorf(o.child(name), n.pos, "%s is %s, want %s%s", name, n.describe(), want, hint)
	return nil
}

// ours says of fields that they are the gate's own, for [Extensions].
func (o *object) ours(names ...string) {
	for _, name := range names {
		o.oursAs(name, name, "which Azure SRE Agent does not know")
	}
}

// oursAs says of a field that what it holds is the gate's own, and what Azure makes
// of that.
func (o *object) oursAs(name, what, azure string) {
	if n := o.value(name); n != nil && len(o.extensions) < maxFindings {
		o.extensions = append(o.extensions, gate.Finding{Severity: gate.SeverityError, Path: o.child(name), Line: n.line, Column: n.column,
			Message: what + " is an extension of stopgate, " + azure})
	}
}

func (o *object) text(name string) string {
	if n := o.typed(name, textKind, "text"); n != nil {
		return n.text
	}
	return ""
}

// oneOf is a text of a closed list; empty when absent or wrong.
func (o *object) oneOf(name string, legal ...string) string {
	n := o.typed(name, textKind, "one of "+strings.Join(legal, ", "))
	if n == nil {
		return ""
	}
	if slices.Contains(legal, n.text) {
		return n.text
	}
	o.errorf(o.child(name), n.pos, "%s is %q, want one of %s%s", name, cut(n.shown()), strings.Join(legal, ", "), DidYouMean(n.shown(), legal))
	return ""
}

// whole is an integer between least and most; ok is false when the field is
// absent or wrong.
func (o *object) whole(name string, least, most int, unit string) (i int, ok bool) {
	want := fmt.Sprintf("a whole number %d…%d%s", least, most, unit)
	if most >= maxWhole {
		want = fmt.Sprintf("a whole number of %d or more%s", least, unit)
	}
	n := o.typed(name, numberKind, want)
	if n == nil {
		return 0, false
	}
	if i, ok = n.whole(); !ok || i < least || i > most {
		o.errorf(o.child(name), n.pos, "%s is %s, want %s", name, cut(n.shown()), want)
		return 0, false
	}
	return i, true
}

// amount reads a number that is not negative; 0 if it is not set.
func (o *object) amount(name string) float64 {
	const want = "a number of 0 or more"
	n := o.typed(name, numberKind, want)
	if n == nil {
		return 0
	}
	f, err := strconv.ParseFloat(n.text, 64)
	if err != nil || !(f >= 0 && f < 1e12) {
		o.errorf(o.child(name), n.pos, "%s is %s, want %s", name, cut(n.shown()), want)
		return 0
	}
	return f
}

// share reads a number above 0 and up to 1; 0 if it is not set.
func (o *object) share(name string) float64 {
	const want = "a number above 0 and up to 1"
	n := o.typed(name, numberKind, want)
	if n == nil {
		return 0
	}
	f, err := strconv.ParseFloat(n.text, 64)
	if err != nil || !(f > 0 && f <= 1) {
		o.errorf(o.child(name), n.pos, "%s is %s, want %s", name, cut(n.shown()), want)
		return 0
	}
	return f
}

// isNumber reports whether a text is a JSON number.
func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

// maxWhole is the largest integer that a document may hold where none smaller
// is asked for.
const maxWhole = 1e9

func (o *object) flag(name string) bool {
	n := o.typed(name, boolKind, "true or false")
	return n != nil && n.text == "true"
}

func (o *object) list(name string) []*node {
	if n := o.typed(name, listKind, "a list"); n != nil {
		return n.items
	}
	return nil
}

func (o *object) texts(name string) []string {
	var texts []string
	for i, n := range o.list(name) {
		if n.kind != textKind {
			o.errorf(fmt.Sprintf("%s[%d]", o.child(name), i), n.pos, "%s[%d] is %s, want text", name, i, n.describe())
			continue
		}
		texts = append(texts, n.text)
	}
	return texts
}

// object is a field's object; nil when absent or wrong.
func (o *object) object(name string) *object {
	if n := o.typed(name, objectKind, "an object"); n != nil {
		return &object{findings: o.findings, path: o.child(name), node: n}
	}
	return nil
}

// headers reads a map of headers. take says what is wrong with one, and whether
// it counts.
func (o *object) headers(name string, take func(path string, f field) bool) []gate.Header {
	list := o.object(name)
	if list == nil {
		return nil
	}
	var headers []gate.Header
	for _, f := range list.node.fields {
		path := list.child(f.name)
		if f.value.kind != textKind {
			o.errorf(path, f.value.pos, "header %q is %s, want text", cut(f.name), f.value.describe())
		} else if take(path, f) {
			headers = append(headers, gate.Header{Name: f.name, Value: f.value.text})
		}
	}
	return headers
}

// place is where a field's value stands, or the object when it has none.
func (o *object) place(name string) pos {
	if n := o.node.find(name); n != nil {
		return n.pos
	}
	return o.node.pos
}

// rest is the fields that nobody asked for.
func (o *object) rest() []field {
	var rest []field
	for _, f := range o.node.fields {
		if !slices.Contains(o.asked, f.name) {
			rest = append(rest, f)
		}
	}
	return rest
}

// unknown reports the rest: a warning where fields are kept, an error where
// they are not.
func (o *object) unknown(strict bool) {
	var left []string // a field that is already there is not what was meant
	for _, name := range o.asked {
		if !o.node.has(name) {
			left = append(left, name)
		}
	}
	for _, f := range o.rest() {
		if !strict && o.full() { // looking for what was meant costs more than reading it
			return
		}
		hint := DidYouMean(f.name, left)
		if strict {
			if hint == "" {
				hint = "; known here: " + strings.Join(o.asked, ", ")
			}
			o.errorf(o.child(f.name), f.pos, "key %q is unknown%s", cut(f.name), hint)
		} else {
			o.warnf(o.child(f.name), f.pos, "field %q is unknown and has no effect; it is kept%s", cut(f.name), hint)
		}
	}
}
