package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"stopgate/gate"
	"stopgate/internal/jsonscan"
)

// members are the fields of a JSON object. They alias what they were read from; of
// an event nothing does but its Payload, see owned.
type members map[string]json.RawMessage

// object reads one JSON object. What is not UTF-8 is replaced; of a key given
// twice the last counts.
//
// The error is a [gate.Error] with CodeInvalidJSON that names line and column;
// the members that came whole before the fault are returned with it.
func object(body []byte) (members, error) {
	body = inUTF8(body)
	if len(bytes.TrimSpace(body)) == 0 {
		return members{}, gate.Errorf(gate.CodeInvalidJSON, "body is empty, want a JSON object")
	}
	m, ok := jsonscan.Members(body)
	if ok {
		return m, nil
	}
	syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(body, &m))
	if !ok {
		return nil, gate.Errorf(gate.CodeInvalidJSON, "body is not a JSON object")
	}
	offset := max(int(syntax.Offset)-1, 0) // Offset counts the byte that is wrong
	line, column := position(body, offset)
	return before(body), &gate.Error{Code: gate.CodeInvalidJSON,
		Message: fmt.Sprintf("body is not valid JSON: %s (byte %d)", syntax.Error(), offset),
		Details: []gate.Finding{{Severity: gate.SeverityError, Line: line, Column: column, Message: syntax.Error()}}}
}

// inUTF8 is the body without a byte order mark and with what is not UTF-8
// replaced.
func inUTF8(body []byte) []byte {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if utf8.Valid(body) {
		return body
	}
	return bytes.ToValidUTF8(body, []byte("\uFFFD"))
}

// before is the members of a broken object that come whole before the fault,
// at most as many as any host sends: a hostile body may have millions.
func before(body []byte) members {
	const most = 100
	m := members{}
	dec := json.NewDecoder(bytes.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return m
	}
	for range most {
		if !dec.More() {
			break
		}
		key, err := dec.Token()
		if err != nil {
			break
		}
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			break
		}
		m[key.(string)] = raw // inside an object a token before a value is its name
	}
	return m
}

// position is the line and column, both from 1, of a byte.
func position(body []byte, offset int) (line, column int) {
	before := body[:min(offset, len(body))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// raw is the first of the members that is there and not null, else nil.
func (m members) raw(keys ...string) json.RawMessage {
	for _, k := range keys {
		if v, ok := m[k]; ok && string(v) != "null" {
			return v
		}
	}
	return nil
}

// text is the first of the members that is there, as a string; another JSON
// value is taken as its own text.
func (m members) text(keys ...string) string {
	raw := m.raw(keys...)
	if s, ok := stringOf(raw); ok {
		return s
	}
	return string(raw)
}

// owned is a member that goes into an event as it is: whoever sees the event may keep
// it, while the body is another request's soon.
func owned(raw json.RawMessage) json.RawMessage { return bytes.Clone(raw) }

// stringOf is what a member of an object that was read stands for, if it is a
// string. That it is valid was found out when its object was read.
func stringOf(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return jsonscan.Text(raw), true
}

// name is a member that names something of the host's, bounded as those of
// native events are. A longer one keeps its beginning and gets a sum of the whole
// at its end, so that two of them stay two.
func (m members) name(keys ...string) string {
	s := strings.ReplaceAll(m.text(keys...), "\x00", "\uFFFD")
	if len(s) <= maxName {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	end := "~" + hex.EncodeToString(sum[:8])
	return gate.Cut(s, maxName-len(end)) + end
}

// object is a member that is an object, else nil.
func (m members) object(keys ...string) members {
	o, _ := jsonscan.Members(m.raw(keys...))
	return o
}

// flag reports whether a member is true; whatever else it is counts as false.
func (m members) flag(keys ...string) bool { return string(m.raw(keys...)) == "true" }

// has reports whether a member is there, be it null.
func (m members) has(key string) bool { _, ok := m[key]; return ok }

// strictly reads the members of an object whose types are part of a contract
// of ours, collecting every wrong type instead of stopping at the first.
type strictly struct {
	of       members
	findings []gate.Finding
}

func (f *strictly) wrong(key, want string) {
	f.findings = append(f.findings, gate.Finding{Severity: gate.SeverityError, Path: key, Message: "want " + want})
}

// read decodes one member into target; an absent or null one is left alone.
func (f *strictly) read(key string, target any, want string) {
	if raw := f.of.raw(key); raw != nil && json.Unmarshal(raw, target) != nil {
		f.wrong(key, want)
	}
}

func (f *strictly) text(key string, target *string) {
	raw := f.of.raw(key)
	if raw == nil {
		return
	}
	if s, ok := stringOf(raw); ok {
		*target = s
	} else {
		f.wrong(key, "a string")
	}
}

func (f *strictly) flag(key string, target *bool) { f.read(key, target, "true or false") }

// count reads a whole number that is not negative; 3.0 is one.
func (f *strictly) count(key string, target *int) {
	var n float64
	raw := f.of.raw(key)
	if raw == nil {
		return
	}
	const most = 1 << 31
	if json.Unmarshal(raw, &n) != nil || n < 0 || n >= most || n != float64(int(n)) {
		f.wrong(key, "a whole number that is not negative")
		return
	}
	*target = int(n)
}

// Bounds of labels: they are words, and each event brings them along.
const (
	maxLabels     = 64
	maxLabelName  = 128
	maxLabelValue = 512
)

// labels reads an object of texts.
func (f *strictly) labels(key string, target *map[string]string) {
	f.read(key, target, "an object whose members are strings")
	fits := len(*target) <= maxLabels
	for name, value := range *target {
		fits = fits && len(name) <= maxLabelName && len(value) <= maxLabelValue
	}
	if !fits {
		f.wrong(key, fmt.Sprintf("at most %d members, their names up to %d bytes and their values up to %d", maxLabels, maxLabelName, maxLabelValue))
	}
}

func (f *strictly) err() error {
	if len(f.findings) == 0 {
		return nil
	}
	var texts []string
	for _, d := range f.findings {
		texts = append(texts, fmt.Sprintf("%q: %s", d.Path, d.Message))
	}
	return &gate.Error{Code: gate.CodeValidation, Message: "body is not a valid event: " + strings.Join(texts, "; "), Details: f.findings}
}
