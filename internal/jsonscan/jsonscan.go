// Package jsonscan says whether a text is JSON, where the members of an object or the
// elements of an array lie, and what a text or a small value stands for. It takes what encoding/json takes, to the
// byte, but skips the text of a string eight bytes at a time: nearly all of an event
// is the text of one string, and a state machine that looks at each byte of it, twice
// for every reader, was a fifth of what a decision costs.
package jsonscan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// deepest is how deep encoding/json lets values nest.
const deepest = 10_000

// Valid reports whether doc is one JSON value; see [json.Valid].
func Valid(doc []byte) bool {
	r := reader{doc: doc}
	return r.value(0) && r.ended()
}

// Members are those of doc, which is one JSON object and nothing else, as
// [json.Unmarshal] reads them: of a name given twice the last counts. The values
// alias doc. ok is false where doc is something else, null too.
func Members(doc []byte) (m map[string]json.RawMessage, ok bool) {
	r := reader{doc: doc}
	if r.peek() != '{' {
		return nil, false
	}
	m = map[string]json.RawMessage{}
	ok = r.nested('}', 1, func(name, value []byte) { m[Text(name)] = value })
	if !ok || !r.ended() {
		return nil, false
	}
	return m, true
}

// Elements are those of doc, which is one JSON array and nothing else; they alias doc.
// ok is false where it is something else, or has more than most.
func Elements(doc []byte, most int) (list []json.RawMessage, ok bool) {
	r := reader{doc: doc}
	if r.peek() != '[' {
		return nil, false
	}
	n := 0
	ok = r.nested(']', 1, func(_, value []byte) {
		if n++; n <= most { // a hostile one has millions
			list = append(list, value)
		}
	})
	if !ok || !r.ended() || n > most {
		return nil, false
	}
	return list, true
}

// Beginning is an object of those members that lie whole in the beginning of one,
// "{}" where there are none; it aliases nothing.
func Beginning(doc []byte) []byte {
	r := reader{doc: doc}
	object := []byte("{")
	if r.peek() == '{' {
		r.at++
		from, end := r.at, r.at
		for r.peek() == '"' && r.text() && r.peek() == ':' {
			r.at++
			if !r.value(1) {
				break
			}
			after := r.peek()
			if after != ',' && after != '}' { // a number might have gone on
				break
			}
			if end = r.at; after == '}' {
				break
			}
			r.at++
		}
		object = append(object, doc[from:end]...)
	}
	return append(object, '}')
}

// StringEnd is where the string ends that begins at a place of valid JSON.
func StringEnd(doc []byte, at int) int {
	for at = plainEnd(doc, at+1); doc[at] != '"'; at = plainEnd(doc, at) {
		at += 2 // an escape; of \u the digits are plain
	}
	return at + 1
}

// reader goes through a text. After it has reported false it stands anywhere.
type reader struct {
	doc []byte
	at  int
}

// peek is the first byte that is no white space; 0 at the end, where no JSON goes on
// with such a byte.
func (r *reader) peek() byte {
	for ; r.at < len(r.doc); r.at++ {
		switch c := r.doc[r.at]; c {
		case ' ', '\n', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

// next is the place of that byte.
func (r *reader) next() int {
	r.peek()
	return r.at
}

func (r *reader) ended() bool { return r.next() == len(r.doc) }

// value goes behind a value that is nested so deep.
func (r *reader) value(depth int) bool {
	switch c := r.peek(); c {
	case '"':
		return r.text()
	case '{', '[':
		return depth < deepest && r.nested(c+2, depth+1, nil) // in ASCII each closes so
	case 't':
		return r.word("true")
	case 'f':
		return r.word("false")
	case 'n':
		return r.word("null")
	}
	return r.number()
}

// nested goes from an opening bracket to behind the closing one, and shows the
// members of an object, or an array's elements without a name, to see, which may be nil.
func (r *reader) nested(closing byte, depth int, see func(name, value []byte)) bool {
	r.at++
	if r.peek() == closing {
		r.at++
		return true
	}
	for {
		var name []byte
		if closing == '}' {
			from := r.next()
			if r.peek() != '"' || !r.text() {
				return false
			}
			if name = r.doc[from:r.at]; r.peek() != ':' {
				return false
			}
			r.at++
		}
		from := r.next()
		if !r.value(depth) {
			return false
		}
		if see != nil {
			see(name, r.doc[from:r.at:r.at])
		}
		switch r.peek() {
		case ',':
			r.at++
		case closing:
			r.at++
			return true
		default:
			return false
		}
	}
}

func (r *reader) word(w string) bool {
	if !bytes.HasPrefix(r.doc[r.at:], []byte(w)) {
		return false
	}
	r.at += len(w)
	return true
}

// text goes behind a string.
func (r *reader) text() bool {
	r.at++
	for {
		if r.at = plainEnd(r.doc, r.at); r.at >= len(r.doc) {
			return false
		}
		switch r.doc[r.at] {
		case '"':
			r.at++
			return true
		case '\\':
			if !r.escape() {
				return false
			}
		default: // a control character
			return false
		}
	}
}

func (r *reader) escape() bool {
	rest := r.doc[r.at+1:]
	if len(rest) == 0 {
		return false
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		r.at += 2
		return true
	case 'u':
		if len(rest) < 5 {
			return false
		}
		for _, c := range rest[1:5] {
			if !(digit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return false
			}
		}
		r.at += 6
		return true
	}
	return false
}

func (r *reader) number() bool {
	r.skip("-")
	if !r.skip("0") && !r.digits() {
		return false
	}
	if r.skip(".") && !r.digits() {
		return false
	}
	if r.skip("eE") {
		r.skip("+-")
		return r.digits()
	}
	return true
}

// skip goes behind one of these bytes, if one is next.
func (r *reader) skip(some string) bool {
	if r.at < len(r.doc) {
		for i := range len(some) {
			if r.doc[r.at] == some[i] {
				r.at++
				return true
			}
		}
	}
	return false
}

// digits goes behind at least one.
func (r *reader) digits() bool {
	from := r.at
	for r.at < len(r.doc) && digit(r.doc[r.at]) {
		r.at++
	}
	return r.at > from
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// plainEnd is the place of the next byte, at or after a place, that a string cannot
// have as it is: a quote, a backslash or a control character; len(doc): there is
// none.
//
// Of eight bytes at once a subtraction borrows into the highest bit of each that is
// less than what is subtracted. It may borrow from the next byte too, so only the
// lowest of these bits is sure, and only that is asked for.
func plainEnd(doc []byte, at int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(doc); at += 8 {
		eight := binary.LittleEndian.Uint64(doc[at:])
		quote, slash := eight^'"'*ones, eight^'\\'*ones
		if found := ((quote-ones)&^quote | (slash-ones)&^slash | (eight-' '*ones)&^eight) & highs; found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for at < len(doc) && doc[at] != '"' && doc[at] != '\\' && doc[at] >= ' ' {
		at++
	}
	return at
}
