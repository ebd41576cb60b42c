package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

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

// item is a member or an element with the text around it: before is what
// follows the bracket or comma in front of it, after what precedes its own
// comma. The last item's after is nil where no comma follows it.
type item struct{ before, after *hujson.Extra }

func memberItem(o *hujson.Object, i int) item {
	return item{&o.Members[i].Name.BeforeExtra, &o.Members[i].Value.AfterExtra}
}

func elementItem(a *hujson.Array, i int) item {
	return item{&a.Elements[i].BeforeExtra, &a.Elements[i].AfterExtra}
}

// appendMember puts a member after the last of an object that lies depth deep.
func (d *document) appendMember(o *hujson.Object, depth int, name string, value any) error {
	var last *item
	if n := len(o.Members); n > 0 {
		it := memberItem(o, n-1)
		last = &it
	}
	place := d.placeAfter(last, o.AfterExtra, depth)
	v, err := d.value(value, place)
	if err != nil {
		return err
	}
	key := hujson.Value{BeforeExtra: place.before, Value: hujson.String(name)}
	if place.indent != nil {
		v.BeforeExtra = hujson.Extra(" ")
	}
	o.Members = append(o.Members, hujson.ObjectMember{Name: key, Value: v})
	o.AfterExtra = place.closing
	if place.comma {
		o.Members[len(o.Members)-1].Value.AfterExtra = hujson.Extra{}
	}
	return nil
}

// appendElement puts an element after the last of an array that lies depth deep.
func (d *document) appendElement(a *hujson.Array, depth int, value any) error {
	var last *item
	if n := len(a.Elements); n > 0 {
		it := elementItem(a, n-1)
		last = &it
	}
	place := d.placeAfter(last, a.AfterExtra, depth)
	v, err := d.value(value, place)
	if err != nil {
		return err
	}
	v.BeforeExtra = place.before
	a.Elements = append(a.Elements, v)
	a.AfterExtra = place.closing
	if place.comma {
		a.Elements[len(a.Elements)-1].AfterExtra = hujson.Extra{}
	}
	return nil
}

// place is how something new is set, so that it looks like its neighbours.
type place struct {
	before, closing hujson.Extra
	indent          *string // of its first line; nil: all on one line
	comma           bool    // one follows it, as one follows the last now
}

// placeAfter is the place after the last item, nil for none, of a container
// whose closing bracket has closing in front.
func (d *document) placeAfter(last *item, closing hujson.Extra, depth int) place {
	indent, lines := strings.Repeat(d.unit, depth), true
	var p place
	if last != nil {
		own, broken := indentation(*last.before)
		if lines = broken || bytes.ContainsRune(closing, '\n'); broken {
			indent = own
		}
		p.comma = *last.after != nil
	}
	comments, space := splitSpace(closing)
	if !lines {
		gap := " "
		if last != nil && len(*last.before) == 0 && !p.comma && len(closing) == 0 && d.minified() {
			gap = ""
		}
		p.before, p.closing = hujson.Extra(comments+gap), hujson.Extra(space)
		return p
	}
	p.indent = &indent
	p.before = hujson.Extra(comments + d.eol + indent)
	if p.closing = hujson.Extra(space); !strings.Contains(space, "\n") {
		p.closing = hujson.Extra(d.eol + strings.Repeat(d.unit, depth-1))
	}
	return p
}

// minified reports whether the file has no blank between its parts.
func (d *document) minified() bool {
	o := d.object()
	return len(o.Members) > 0 && len(o.Members[0].Value.BeforeExtra) == 0
}

// value is v as a tree, laid out for its place.
func (d *document) value(v any, p place) (hujson.Value, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if p.indent != nil {
		enc.SetIndent(*p.indent, d.unit)
	}
	if err := enc.Encode(v); err != nil {
		return hujson.Value{}, err
	}
	tree, err := hujson.Parse(bytes.ReplaceAll(bytes.TrimSpace(b.Bytes()), []byte("\n"), []byte(d.eol)))
	if err != nil {
		return hujson.Value{}, err
	}
	return tree, nil
}

// removeMember takes a member out; comments beside it stay.
func (d *document) removeMember(o *hujson.Object, i int) {
	var prev, next *item
	if i > 0 {
		it := memberItem(o, i-1)
		prev = &it
	}
	if i+1 < len(o.Members) {
		it := memberItem(o, i+1)
		next = &it
	}
	o.AfterExtra = d.closeGap(prev, memberItem(o, i), next, o.AfterExtra)
	o.Members = append(o.Members[:i], o.Members[i+1:]...)
}

// removeElement takes an element out; comments beside it stay.
func (d *document) removeElement(a *hujson.Array, i int) {
	var prev, next *item
	if i > 0 {
		it := elementItem(a, i-1)
		prev = &it
	}
	if i+1 < len(a.Elements) {
		it := elementItem(a, i+1)
		next = &it
	}
	a.AfterExtra = d.closeGap(prev, elementItem(a, i), next, a.AfterExtra)
	a.Elements = append(a.Elements[:i], a.Elements[i+1:]...)
}

// closeGap joins what stands around an item that goes, the reverse of
// placeAfter, and gives what then stands before the closing bracket.
func (d *document) closeGap(prev *item, gone item, next *item, closing hujson.Extra) hujson.Extra {
	comments, _ := splitSpace(*gone.before)
	if next != nil {
		if comments != "" { // its own line stays; what follows starts where the item did
			rest, space := splitSpace(*next.before)
			*next.before = d.join(string(*gone.before), strings.TrimLeft(rest+space, " \t\r\n"))
		}
		return closing
	}
	if prev == nil {
		inner, space := splitSpace(closing)
		if comments+inner == "" {
			return nil
		}
		return d.join(comments, inner+space)
	}
	if *gone.after == nil { // no comma follows the last, so none may follow prev
		comments = string(*prev.after) + comments
		*prev.after = nil
	} else if *prev.after == nil {
		*prev.after = hujson.Extra{}
	}
	return d.join(comments, string(closing))
}

// join puts text after comments; a line comment ends its line first.
func (d *document) join(comments, after string) hujson.Extra {
	last := comments[strings.LastIndexByte(comments, '\n')+1:]
	if strings.Contains(last, "//") && !strings.HasPrefix(strings.TrimLeft(after, " \t\r"), "\n") {
		return hujson.Extra(comments + d.eol + after)
	}
	return hujson.Extra(comments + after)
}

// splitSpace parts an extra into all up to its last comment, and the blanks
// after it.
func splitSpace(e hujson.Extra) (comments, space string) {
	trimmed := bytes.TrimRight(e, " \t\r\n")
	return string(trimmed), string(e[len(trimmed):])
}

// indentation is the blanks of the line that an extra ends in; broken: it holds
// a line end at all.
func indentation(e hujson.Extra) (indent string, broken bool) {
	i := bytes.LastIndexByte(e, '\n')
	if i < 0 {
		return "", false
	}
	line := string(e[i+1:])
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))], true
}
