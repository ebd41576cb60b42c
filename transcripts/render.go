package transcripts

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	markBegin = "=== "
	markEnd   = " ==="
)

// render appends the message's lines: a marker, the content, and for each tool
// call a marker and its arguments.
func (m *message) render(b []byte) []byte {
	start := len(b)
	own := func(b []byte) []byte {
		return appendMark(b, label(m.Role), optional(m.Name), inBrackets(m.ToolCallID))
	}
	b = appendContent(b, m.Role, m.Content, own, 0)
	for _, c := range m.ToolCalls {
		b = appendCall(b, m.Role, c)
	}
	if len(b) == start { // an empty message is one, too
		b = own(b)
	}
	return b
}

// deepest bounds results inside results; each level is read anew.
const deepest = 4

// appendContent appends parts. Text needs the speaker's own mark above it, at
// the start and again after a call or a result.
func appendContent(b []byte, role string, parts content, own func([]byte) []byte, depth int) []byte {
	marked := false
	for _, p := range parts {
		switch p.Type {
		case "tool_use", "tool_call":
			b, marked = appendCall(b, role, p.toolCall), false
			continue
		case "tool_result":
			b, marked = appendResult(b, role, p, depth), false
			continue
		}
		isText := p.Type == "text" || p.Type == "" || p.Text != ""
		if isText && p.Text == "" {
			continue
		}
		if !marked {
			b, marked = own(b), true
		}
		if isText {
			text := p.Text
			if role == "tool" || role == "function" || depth > 0 {
				text = spread(text)
			}
			b = appendText(b, text, "")
		} else {
			b = append(append(append(b, '['), label(p.Type)...), " part, not shown]\n"...)
		}
	}
	return b
}

func appendCall(b []byte, role string, c toolCall) []byte {
	b = appendMark(b, label(role), "calls", label(c.name()), inBrackets(c.ID))
	return appendArguments(b, c.arguments())
}

func appendResult(b []byte, role string, p part, depth int) []byte {
	b = appendMark(b, "tool", optional(p.Name), inBrackets(p.ToolUseID))
	if depth == deepest {
		return append(b, "[nested too deeply, not shown]\n"...)
	}
	var parts content
	if len(p.Content) > 0 && json.Unmarshal(p.Content, &parts) != nil {
		return append(b, "[malformed content, not shown]\n"...)
	}
	marked := false
	return appendContent(b, role, parts, func(b []byte) []byte {
		if marked { // text of the result goes on after something inside it
			b = appendMark(b, "tool", optional(p.Name), inBrackets(p.ToolUseID))
		}
		marked = true
		return b
	}, depth+1)
}

// appendMark appends "=== words ===". Each word is a label, or empty.
func appendMark(b []byte, words ...string) []byte {
	b = append(b, "==="...)
	for _, w := range words {
		if w != "" {
			b = append(append(b, ' '), w...)
		}
	}
	return append(append(b, markEnd...), '\n')
}

func optional(name string) string {
	if name == "" {
		return ""
	}
	return label(name)
}

func inBrackets(id string) string {
	if id == "" {
		return ""
	}
	return "(" + label(id) + ")"
}

// label is a name that fits into a marker: letters, digits and a few signs,
// at most 128 bytes. Names come from models and tools.
func label(name string) string {
	const most = 128
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-.:/@", r) {
			return r
		}
		return '_'
	}, name)
	for len(name) > most {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	if name == "" {
		return "unnamed"
	}
	return name
}

// appendText appends a text line by line, each behind the indent.
func appendText(b []byte, text, indent string) []byte {
	if text == "" {
		return b
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line != "" {
			b = append(b, indent...)
		}
		start := len(b)
		b = appendVisible(b, []byte(strings.TrimSuffix(line, "\r")))
		if looksLikeMark(b[start:]) {
			b = append(b, 0)
			copy(b[start+1:], b[start:])
			b[start] = '\\'
		}
		b = append(b, '\n')
	}
	return b
}

// looksLikeMark reports whether a reader could take the line for a marker:
// white space, invisible characters and earlier escapes do not count.
func looksLikeMark(line []byte) bool {
	if bytes.Count(line, []byte("=")) < 6 { // nearly every line
		return false
	}
	line = bytes.TrimLeft(visibly(line), `\`)
	return bytes.HasPrefix(line, []byte(markBegin)) && bytes.HasSuffix(line, []byte(markEnd))
}

// visibly is what a person or a model sees of a line: one kind of space, and
// nothing of what takes no room.
func visibly(line []byte) []byte {
	return bytes.TrimSpace(bytes.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cf, unicode.Mn, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point), r == '\u2800':
			return -1
		}
		return r
	}, line))
}

// appendArguments appends a call's arguments: on one line where they are short,
// else one line per key, and a text of several lines as these lines, so that
// code in it can be read and searched.
func appendArguments(b []byte, raw json.RawMessage) []byte {
	var text string
	if json.Unmarshal(raw, &text) == nil { // a string of JSON, as OpenAI's API has it
		if !json.Valid([]byte(text)) {
			return appendText(b, text, "")
		}
		raw = json.RawMessage(text)
	}
	compact := compactJSON(raw)
	if len(compact) == 0 {
		return b
	}
	const short = 120
	fields, ok := fieldsOf(compact)
	if !ok || (len(compact) <= short && !bytes.Contains(compact, []byte(`\n`))) {
		return append(appendVisible(b, compact), '\n')
	}
	b = append(b, "{\n"...)
	for _, f := range fields {
		b = append(appendVisible(append(b, "  "...), f.key), ": "...)
		if lines := ""; json.Unmarshal(f.value, &lines) == nil && strings.Contains(lines, "\n") {
			b = appendText(append(b, "|\n"...), lines, "    ")
			continue
		}
		b = append(appendVisible(b, f.value), '\n')
	}
	return append(b, "}\n"...)
}

type field struct{ key, value json.RawMessage }

// fieldsOf is an object's fields in their order; false if it is no object.
func fieldsOf(object []byte) ([]field, bool) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var fields []field
	for dec.More() {
		at := dec.InputOffset()
		if _, err := dec.Token(); err != nil {
			return nil, false
		}
		f := field{key: bytes.TrimLeft(object[at:dec.InputOffset()], ",")}
		if err := dec.Decode(&f.value); err != nil {
			return nil, false
		}
		fields = append(fields, f)
	}
	return fields, true
}

func compactJSON(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// appendVisible appends a line so that it stays one line wherever it is shown:
// control characters become their signs, line separators ␤, and bytes that are
// not UTF-8 U+FFFD. Tabs stay.
func appendVisible(b, line []byte) []byte {
	for len(line) > 0 {
		n := 0
		for n < len(line) && (line[n] >= ' ' && line[n] < 0x7f || line[n] == '\t') {
			n++
		}
		b, line = append(b, line[:n]...), line[n:]
		if len(line) == 0 {
			break
		}
		r, size := utf8.DecodeRune(line)
		b, line = utf8.AppendRune(b, visible(r)), line[size:]
	}
	return b
}

func visible(r rune) rune {
	const (
		controlPictures = 0x2400 // ␀, and the others in their order
		deletePicture   = 0x2421
		newlinePicture  = 0x2424
	)
	switch {
	case r == '\t':
		return r
	case r < ' ':
		return controlPictures + r
	case r == 0x7f:
		return deletePicture
	case r == 0x85 || r == 0x2028 || r == 0x2029:
		return newlinePicture
	case r > 0x7f && r < 0xa0:
		return utf8.RuneError
	}
	return r
}
