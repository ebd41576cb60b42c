package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"stopgate/gate"
)

// syntaxError is the refusal of text that has no readable structure.
func syntaxError(at pos, format string, args ...any) *gate.Error {
	var f findings
	f.errorf("", at, format, args...)
	return refusal(gate.CodeInvalidJSON, f.list)
}

// plainText checks the bytes and takes off a byte order mark.
func plainText(data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		bad := 0
		for bad < len(data) {
			if r, size := utf8.DecodeRune(data[bad:]); r != utf8.RuneError || size > 1 {
				bad += size
				continue
			}
			break
		}
		l := locator{data: data}
		return nil, syntaxError(l.at(bad), "text is not UTF-8: byte 0x%02x", data[bad])
	}
	return data, nil
}

// readJSON reads exactly one JSON value. Mistakes that leave the structure
// readable, as a key given twice, go to bad.
func readJSON(data []byte, bad *findings) (*node, error) {
	locate := locator{data: data}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, syntaxError(pos{1, 1}, "body is empty, want a JSON object")
	}
	// The whole is checked first: the token reader below is laxer than the
	// grammar, and its errors carry no exact place.
	var valid json.RawMessage
	if err := json.Unmarshal(data, &valid); err != nil {
		at := locate.at(0)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = locate.at(max(int(syntax.Offset)-1, 0))
		}
		return nil, syntaxError(at, "text is not JSON: %s", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	r := jsonReader{data: data, dec: dec, locate: locate, bad: bad}
	return r.value(1)
}

type jsonReader struct {
	data   []byte
	dec    *json.Decoder
	locate locator
	bad    *findings
}

// next is the offset where the next token starts.
func (r *jsonReader) next() int {
	i := int(r.dec.InputOffset())
	for i < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[i]) >= 0 {
		i++
	}
	return i
}

func (r *jsonReader) value(depth int) (*node, error) {
	start := r.next()
	n := &node{pos: r.locate.at(start)}
	if depth > maxDepth {
		return nil, syntaxError(n.pos, "value is nested deeper than %d", maxDepth)
	}
	token, err := r.dec.Token()
	if err != nil {
		return nil, syntaxError(n.pos, "text is not JSON: %s", err)
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			n.kind = objectKind
			err = r.object(n, depth)
		} else {
			n.kind = listKind
			err = r.list(n, depth)
		}
		return n, err
	case string:
		n.kind, n.text = textKind, t
		r.check(start, n.pos, t)
	case json.Number:
		n.kind, n.text = numberKind, t.String()
	case bool:
		n.kind, n.text = boolKind, "false"
		if t {
			n.text = "true"
		}
	}
	return n, nil
}

func (r *jsonReader) object(n *node, depth int) error {
	seen := map[string]pos{}
	for r.dec.More() {
		start := r.next()
		f := field{pos: r.locate.at(start)}
		token, err := r.dec.Token()
		if err != nil {
			return syntaxError(f.pos, "text is not JSON: %s", err)
		}
		f.name = token.(string) // inside an object a token before a value is its name
		r.check(start, f.pos, f.name)
		if f.value, err = r.value(depth + 1); err != nil {
			return err
		}
		n.add(f, seen, r.bad)
	}
	_, err := r.dec.Token()
	return err
}

func (r *jsonReader) list(n *node, depth int) error {
	for r.dec.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := r.dec.Token()
	return err
}

// check refuses what a string cannot carry on: half a surrogate pair, which the
// decoder would replace in silence, and NUL.
func (r *jsonReader) check(start int, at pos, s string) {
	if strings.ContainsRune(s, utf8.RuneError) && halfSurrogate(r.data[start:r.dec.InputOffset()]) {
		r.bad.errorf("", at, `text holds half a surrogate pair (\ud800…\udfff come in pairs)`)
	}
	checkNUL(r.bad, at, s)
}

func checkNUL(bad *findings, at pos, s string) {
	if strings.ContainsRune(s, 0) {
		bad.errorf("", at, "text holds a NUL character, which no script or prompt can have")
	}
}

// halfSurrogate reports whether a JSON string literal escapes one half of a
// pair alone.
func halfSurrogate(literal []byte) bool {
	for i := 0; i < len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		i++ // the escaped character
		if literal[i] != 'u' {
			continue
		}
		hex := strings.ToLower(string(literal[i+1 : i+5]))
		i += 4
		switch {
		case hex >= "dc00" && hex <= "dfff":
			return true
		case hex >= "d800" && hex <= "dbff":
			rest := strings.ToLower(string(literal[i+1 : min(i+7, len(literal))]))
			if len(rest) < 6 || rest[:2] != `\u` || rest[2:] < "dc00" || rest[2:] > "dfff" {
				return true
			}
			i += 6
		}
	}
	return false
}

// add appends a field unless its name is there already.
func (n *node) add(f field, seen map[string]pos, bad *findings) {
	if first, twice := seen[f.name]; twice {
		bad.errorf(f.name, f.pos, "key %q is given twice (first on line %d)", cut(f.name), first.line)
		return
	}
	seen[f.name] = f.pos
	n.fields = append(n.fields, f)
}

// locator turns byte offsets into positions. Offsets that grow cost one pass
// over the text in all.
type locator struct {
	data   []byte
	offset int
	lines  int // line breaks before offset
	column int // characters between the last of them and offset
}

func (l *locator) at(offset int) pos {
	offset = min(offset, len(l.data))
	if offset < l.offset {
		*l = locator{data: l.data}
	}
	for l.offset < offset {
		switch b := l.data[l.offset]; {
		case b == '\n':
			l.lines++
			l.column = 0
		case utf8.RuneStart(b):
			l.column++
		}
		l.offset++
	}
	return pos{l.lines + 1, l.column + 1}
}
