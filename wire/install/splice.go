package install

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"
)

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
