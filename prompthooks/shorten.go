package prompthooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// fieldBytes is how much of one field of the context is shown when the whole is
// too large: some 25,000 tokens.
const fieldBytes = 100 << 10

// shorten makes a context JSON fit into limit bytes, if it can: each field that
// is too long keeps its head and its tail, with a note between them that says
// how much was left out (faults G16–G18). The result is valid JSON; fields keep
// their order. If even short fields do not fit, the result is longer than
// limit.
func shorten(contextJSON []byte, limit int) []byte {
	fields, err := readFields(contextJSON)
	if err != nil {
		return quoted(headAndTail(string(contextJSON), limit/2))
	}
	for size := fieldBytes; ; size /= 2 {
		out := writeFields(fields, size)
		if len(out) <= limit || size < 256 {
			return out
		}
	}
}

// field is one member of a JSON object.
type field struct {
	name  string
	value json.RawMessage
}

func readFields(object []byte) ([]field, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object (%v)", err)
	}
	var fields []field
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		fields = append(fields, field{name.(string), value}) // a token before a value is its name
	}
	return fields, nil
}

func writeFields(fields []field, size int) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoted(f.name))
		b.WriteByte(':')
		b.Write(shortenValue(f.value, size))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// shortenValue keeps a string a string and an object an object; an object of
// too many members, and an array, become a string with the head and tail of
// their JSON.
func shortenValue(value json.RawMessage, size int) []byte {
	if len(value) <= size {
		return value
	}
	switch value[0] {
	case '"':
		var s string
		if json.Unmarshal(value, &s) == nil {
			return quoted(headAndTail(s, size))
		}
	case '{':
		if fields, err := readFields(value); err == nil {
			if out := writeFields(fields, size/4); len(out) <= size {
				return out
			}
		}
	}
	return quoted(headAndTail(string(value), size))
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
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always has a JSON form, and a Buffer takes it
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
