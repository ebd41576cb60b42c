package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"stopgate/gate"
)

// aliasBudget is how much text all aliases of one file may repeat, in bytes,
// each value counting one more: room for a script shared by several hooks, none
// for "a billion laughs".
const aliasBudget = 1 << 20

// maxDocuments is how many documents one file may hold.
const maxDocuments = 1000

// readYAML reads every document of a YAML text; empty ones are left out. JSON is
// read as JSON, since YAML readers disagree with it on escapes.
func readYAML(data []byte, bad *findings) (docs []*node, err error) {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(data) {
		n, err := readJSON(data, bad)
		if err != nil {
			return nil, err
		}
		return []*node{n}, nil
	}
	const directives = 16 // the parser's time grows with their square
	if bytes.Count(data, []byte("%TAG")) > directives {
		return nil, syntaxError(pos{1, 1}, "text has more than %d %%TAG directives", directives)
	}
	// The parser has panicked on hostile input before; that is a syntax error
	// like any other.
	defer func() {
		if p := recover(); p != nil {
			docs, err = nil, syntaxError(pos{1, 1}, "text is not YAML: %s", cut(fmt.Sprint(p)))
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	r := yamlReader{bad: bad, budget: aliasBudget}
	for range maxDocuments {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, yamlError(data, err)
		}
		n, err := r.value(doc.Content[0], 1, false)
		if err != nil {
			return nil, err
		}
		if n.kind != nullKind {
			docs = append(docs, n)
		}
	}
	return nil, syntaxError(pos{1, 1}, "text holds %d documents or more, want fewer", maxDocuments)
}

var yamlPlace = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// yamlError gives the parser's error its place; the parser knows only the line.
func yamlError(data []byte, err error) *gate.Error {
	found := yamlPlace.FindStringSubmatch(err.Error())
	if found == nil {
		return syntaxError(pos{1, 1}, "text is not YAML: %s", err)
	}
	at := pos{1, 1}
	if line, convErr := strconv.Atoi(found[1]); convErr == nil && line > 0 {
		at.line = line
		if lines := strings.Split(string(data), "\n"); line <= len(lines) {
			at.column = 1 + len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " \t"))
		}
	}
	return syntaxError(at, "text is not YAML: %s", strings.TrimPrefix(err.Error(), found[0]))
}

type yamlReader struct {
	bad    *findings
	budget int
}

func (r *yamlReader) value(y *yaml.Node, depth int, aliased bool) (*node, error) {
	n := &node{pos: pos{y.Line, y.Column}}
	if depth > maxDepth {
		return nil, syntaxError(n.pos, "value is nested deeper than %d", maxDepth)
	}
	if aliased {
		if r.budget -= 1 + len(y.Value); r.budget < 0 {
			return nil, syntaxError(n.pos, "aliases repeat more than %d bytes", aliasBudget)
		}
	}
	switch y.Kind {
	case yaml.AliasNode:
		return r.value(y.Alias, depth+1, true)
	case yaml.MappingNode:
		n.kind = objectKind
		r.wantTag(y, "!!map")
		return n, r.object(n, y, depth, aliased)
	case yaml.SequenceNode:
		n.kind = listKind
		r.wantTag(y, "!!seq")
		for _, c := range y.Content {
			item, err := r.value(c, depth+1, aliased)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		return n, nil
	default:
		r.scalar(n, y)
		return n, nil
	}
}

func (r *yamlReader) wantTag(y *yaml.Node, tag string) {
	if y.ShortTag() != tag {
		r.bad.errorf("", pos{y.Line, y.Column}, "tag %q is not read here", cut(y.ShortTag()))
	}
}

func (r *yamlReader) object(n *node, y *yaml.Node, depth int, aliased bool) error {
	seen := map[string]pos{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		f := field{pos: pos{key.Line, key.Column}, name: key.Value}
		switch {
		case key.ShortTag() == "!!merge":
			r.bad.errorf("", f.pos, "merge key << is not read: write the fields out, or alias the whole value")
			continue
		case key.Kind != yaml.ScalarNode:
			r.bad.errorf("", f.pos, "key is not plain text")
			continue
		}
		checkNUL(r.bad, f.pos, f.name)
		if aliased {
			r.budget -= len(f.name)
		}
		var err error
		if f.value, err = r.value(y.Content[i+1], depth+1, aliased); err != nil {
			return err
		}
		n.add(f, seen, r.bad)
	}
	return nil
}

// scalar resolves a plain value. Numbers keep the way they were written where
// JSON can write them so.
func (r *yamlReader) scalar(n *node, y *yaml.Node) {
	n.kind, n.text = textKind, y.Value
	var err error
	switch tag := y.ShortTag(); tag {
	case "!!str", "!!timestamp":
		checkNUL(r.bad, n.pos, n.text)
	case "!!null":
		n.kind, n.text = nullKind, ""
	case "!!bool":
		var b bool
		err = y.Decode(&b)
		n.kind, n.text = boolKind, strconv.FormatBool(b)
	case "!!int", "!!float":
		n.kind, n.text, err = numberKind, y.Value, nil
		if !json.Valid([]byte(y.Value)) {
			n.text, err = jsonNumber(y)
		}
	default:
		err = fmt.Errorf("tag %q is not read here", cut(tag))
	}
	if err != nil {
		n.kind, n.text = nullKind, ""
		r.bad.errorf("", n.pos, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
}

// jsonNumber writes YAML's other forms (0x1F, 1_000, +5, .5) as JSON has them.
func jsonNumber(y *yaml.Node) (string, error) {
	var i int64
	if y.ShortTag() == "!!int" && y.Decode(&i) == nil {
		return strconv.FormatInt(i, 10), nil
	}
	var f float64
	if err := y.Decode(&f); err != nil {
		return "", fmt.Errorf("%q is not a number", cut(y.Value))
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return "", fmt.Errorf("number %s has no JSON form", cut(y.Value))
	}
	return strconv.FormatFloat(f, 'g', -1, 64), nil
}
