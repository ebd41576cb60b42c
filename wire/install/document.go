package install

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"github.com/tailscale/hujson"
)

// maxFile bounds a settings file; people's own have a few KB. maxBrackets
// bounds its depth, which the parser recurses on.
const (
	maxFile     = 1 << 20
	maxBrackets = 20_000
)

// document is a host's file as its syntax tree, which keeps every byte that is
// not edited.
type document struct {
	source []byte // as it was read; the tree's offsets are into it
	root   hujson.Value
	eol    string // how its lines end
	unit   string // one step of its indentation
}

// parse reads a host's file: JSON, with comments where its user has some. An
// empty one is an empty object. Errors start with line:column.
func parse(content []byte) (*document, error) {
	if len(content) > maxFile || bytes.Count(content, []byte("{"))+bytes.Count(content, []byte("[")) > maxBrackets {
		return nil, fmt.Errorf("1:1: too large for a settings file: %d bytes", len(content))
	}
	d := &document{source: content, eol: "\n", unit: "  "}
	if bytes.Contains(content, []byte("\r\n")) {
		d.eol = "\r\n"
	}
	if len(bytes.Trim(content, " \t\r\n")) == 0 {
		d.source = []byte("{}" + d.eol)
	}
	// The tree shares its input's memory, and edits must not reach the caller's.
	var err error
	d.root, err = hujson.Parse(bytes.Clone(d.source))
	if err != nil && bytes.Contains(d.source[bytes.LastIndexByte(d.source, '\n')+1:], []byte("//")) {
		d.source = append(bytes.Clone(d.source), d.eol...) // hosts let a file end in such a comment, the parser does not
		d.root, err = hujson.Parse(bytes.Clone(d.source))
	}
	if err != nil {
		return nil, syntaxError(err)
	}
	object, ok := d.root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("1:1: not a JSON object")
	}
	if len(object.Members) > 0 {
		if indent, broken := indentation(object.Members[0].Name.BeforeExtra); broken && indent != "" {
			d.unit = indent
		}
	}
	return d, nil
}

var hujsonPlace = regexp.MustCompile(`^hujson: line (\d+), column (\d+): `)

// syntaxError puts the parser's place in front, as compilers do.
func syntaxError(err error) error {
	text := err.Error()
	if m := hujsonPlace.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s:%s: %s", m[1], m[2], text[len(m[0]):])
	}
	return errors.New("1:1: " + text)
}

// line is the line of a value as it was read, from 1.
func (d *document) line(v *hujson.Value) int {
	return 1 + bytes.Count(d.source[:v.StartOffset], []byte("\n"))
}

// object is the root; parse has seen that it is one.
func (d *document) object() *hujson.Object { return d.root.Value.(*hujson.Object) }

// nameOf is a member's name.
func nameOf(m *hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal)
	return name.String()
}

// find is the index of the member with that name, or -1. Of a name that is
// there twice hosts read the last, people the first: that is an error.
func find(o *hujson.Object, name string) (int, error) {
	at := -1
	for i := range o.Members {
		if nameOf(&o.Members[i]) != name {
			continue
		}
		if at >= 0 {
			return -1, fmt.Errorf("%q is there twice", name)
		}
		at = i
	}
	return at, nil
}

// text is a member's string, empty where it is none.
func text(o *hujson.Object, name string) string {
	if i, err := find(o, name); err == nil && i >= 0 {
		if l, ok := o.Members[i].Value.Value.(hujson.Literal); ok && l.Kind() == '"' {
			return l.String()
		}
	}
	return ""
}

// number is a member's number, 0 where it is none.
func number(o *hujson.Object, name string) float64 {
	if i, err := find(o, name); err == nil && i >= 0 {
		if l, ok := o.Members[i].Value.Value.(hujson.Literal); ok && l.Kind() == '0' {
			return l.Float()
		}
	}
	return 0
}
