package expressions

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"

	"stopgate/gate"
)

// Bounds of a text with expressions in it: those of its source, and of what one
// expression puts in.
const (
	MaxTemplateBytes = 4 << 10
	maxPlaces        = 20
	maxPutRunes      = 500
)

// Template is a text in which {{ … }} stands for what an expression comes to.
type Template struct {
	text  string
	parts []part
}

// Equal reports whether both were written alike.
func (t *Template) Equal(o *Template) bool { return t == o || t != nil && o != nil && t.text == o.text }

// part is a literal text, and what follows it.
type part struct {
	literal string
	put     *expression // nil: nothing
}

// Template compiles a text for events of a kind.
func (c *Compiler) Template(event gate.EventName, text string) (*Template, []Problem) {
	if len(text) > MaxTemplateBytes {
		return nil, []Problem{{0, fmt.Sprintf("is %d bytes long, want at most %d", len(text), MaxTemplateBytes)}}
	}
	t := &Template{text: text}
	for rest := text; ; {
		at := utf8.RuneCountInString(text[:len(text)-len(rest)])
		literal, behind, open := strings.Cut(rest, "{{")
		if !open {
			t.parts = append(t.parts, part{literal: literal})
			return t, nil
		}
		at += utf8.RuneCountInString(literal) + 2
		inner, after, closed := strings.Cut(behind, "}}")
		switch {
		case !closed:
			return nil, []Problem{{at - 2, "{{ is not closed by }}"}}
		case len(t.parts) == maxPlaces:
			return nil, []Problem{{at - 2, fmt.Sprintf("has more than %d places for expressions", maxPlaces)}}
		}
		e, kind, problems := c.compile(event, inner)
		for i := range problems {
			problems[i].At += at
		}
		if problems == nil && !puts(kind) {
			problems = []Problem{{at, fmt.Sprintf("is of type %s, want a text, a number or a bool: of a list say which of it, or join it", kind)}}
		}
		if problems != nil {
			return nil, problems
		}
		t.parts, rest = append(t.parts, part{literal, &e}), after
	}
}

// puts reports whether a value of the type can stand in a text.
func puts(kind *cel.Type) bool {
	for _, fits := range []*cel.Type{cel.StringType, cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType, cel.DynType} {
		if kind.IsExactType(fits) {
			return true
		}
	}
	return false
}

// render is the text for an event. What cannot be put in says so in its place: the
// verdict that the text goes with stands, whatever its words.
func (t *Template) render(ctx context.Context, a *asked) string {
	if t == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range t.parts {
		b.WriteString(p.literal)
		if p.put == nil {
			continue
		}
		v, failure := p.put.value(ctx, a)
		if failure != nil {
			b.WriteString("[not known: " + failure.Message + "]")
			continue
		}
		text := written(v)
		if short := gate.FirstRunes(text, maxPutRunes); short != text {
			text = short + "…"
		}
		b.WriteString(text)
	}
	return b.String()
}

func written(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return "[not a text]"
}
