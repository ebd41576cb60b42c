package prompthooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"stopgate/gate"
)

const (
	// fieldBytes is how much of one field of the context is shown when the
	// whole is too large: some 25,000 tokens.
	fieldBytes = 100 << 10
	// leastBytes of a field are always shown.
	leastBytes = 128
	// maxMembers is up to how many members an object is shortened one by one.
	maxMembers = 256
)

// shorten makes a context JSON fit into limit bytes, if it can: each field that
// is too long keeps its head and its tail, with a note between them that says
// how much was left out (faults G16–G18). The result is valid JSON; fields keep
// their order. If even short fields do not fit, the result is longer than
// limit.
func shorten(contextJSON []byte, limit int) []byte {
	whole := parse(bytes.TrimSpace(contextJSON), 0)
	for size := fieldBytes; ; size /= 2 {
		out := whole.shortMembers(size)
		if out == nil { // not an object
			out = quoted(headAndTail(string(contextJSON), size))
		}
		if len(out) <= limit || size <= leastBytes {
			return out
		}
	}
}

// value is one JSON value, read once so that it can be shortened to several
// sizes.
type value struct {
	raw     json.RawMessage
	text    string // of a string
	members []member
}

type member struct {
	name  string
	value value
}

// parse reads strings, and objects down to the second level: tool_input keeps
// its shape, what is below does not matter to a judge.
func parse(raw json.RawMessage, depth int) value {
	v := value{raw: raw}
	switch {
	case len(raw) == 0 || len(raw) <= leastBytes && depth > 0:
	case raw[0] == '"':
		_ = json.Unmarshal(raw, &v.text) // a bad string is shown as the text that it is
	case raw[0] == '{' && depth < 2:
		v.members, _ = readMembers(raw, depth) // what cannot be read is shown as text
	}
	return v
}

func readMembers(object []byte, depth int) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	var members []member
	for dec.More() {
		if len(members) == maxMembers {
			return nil, errors.New("too many members")
		}
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		members = append(members, member{name.(string), parse(raw, depth+1)}) // a token before a value is its name
	}
	return members, nil
}

// short is the value as JSON of about size bytes. A string stays a string and
// an object an object; an array, and an object that is still too long, become
// a string with the head and tail of their JSON.
func (v value) short(size int) []byte {
	switch {
	case len(v.raw) <= size:
		return v.raw
	case v.text != "":
		return quoted(headAndTail(v.text, size))
	}
	if out := v.shortMembers(max(size/4, leastBytes)); out != nil && len(out) <= size {
		return out
	}
	return quoted(headAndTail(string(v.raw), size))
}

// shortMembers is the object with every member shortened; nil if it is none.
func (v value) shortMembers(size int) []byte {
	if len(v.members) == 0 {
		return nil
	}
	var b bytes.Buffer
	for i, m := range v.members {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(quoted(m.name))
		b.WriteByte(':')
		b.Write(m.value.short(size))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// headAndTail is three parts of a text's beginning and one of its end, size
// bytes in all, with what is left out between them said.
func headAndTail(s string, size int) string {
	if len(s) <= size {
		return s
	}
	head, tail := size/4*3, len(s)-size/4
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[left out here by the gate: bytes %d to %d of %d]\n%s", s[:head], head, tail, len(s), s[tail:])
}

// quoted is s as a JSON string, with <, > and & as they are.
func quoted(s string) []byte {
	b, _ := gate.PlainJSON(s) // a string always has a JSON form
	return b
}
