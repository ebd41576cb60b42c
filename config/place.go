package config

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// within is where, in the text of a document, the rune stands that is the nth of a
// value, from 0: behind escapes, indentation and folded lines. Where the value
// cannot be followed through the text, it is where the value begins.
func (f *findings) within(n *node, nth int) pos {
	w := walker{text: f.text, pos: pos{1, 1}}
	if !w.seek(n.pos) || !w.enter() {
		return n.pos
	}
	for i, r := range []rune(n.text) {
		if !w.meet(r) {
			return n.pos
		}
		if i == nth {
			return w.met
		}
		w.pass()
	}
	if nth > 0 && w.passed > 0 { // behind the end
		return w.pos
	}
	return n.pos
}

// walker goes through a document's text beside a value that stands in it.
type walker struct {
	pos
	text   []byte // what is left
	met    pos    // where the rune stands that was met last
	quote  byte   // " or ', 0: none
	size   int    // of what stands for the rune that was met
	indent int    // of a block's lines
	block  bool
	passed int
}

// step goes over so many bytes.
func (w *walker) step(bytes int) {
	for bytes > 0 {
		r, size := utf8.DecodeRune(w.text)
		if w.column++; r == '\n' {
			w.line, w.column = w.line+1, 1
		}
		w.text, bytes = w.text[size:], bytes-size
	}
}

// seek goes to a place.
func (w *walker) seek(to pos) bool {
	for w.line < to.line {
		end := bytes.IndexByte(w.text, '\n')
		if end < 0 {
			return false
		}
		w.text, w.line, w.column = w.text[end+1:], w.line+1, 1
	}
	for w.column < to.column && len(w.text) > 0 {
		w.step(1)
	}
	return w.pos == to
}

// enter goes over what stands before a value: an anchor, a tag, a quote, a block's
// first line.
func (w *walker) enter() bool {
	for len(w.text) > 0 && (w.text[0] == '&' || w.text[0] == '!') {
		w.step(bytes.IndexAny(append(bytes.Clone(w.text[:min(len(w.text), 256)]), ' '), " \n"))
		w.step(w.blanks())
	}
	if len(w.text) == 0 {
		return false
	}
	switch c := w.text[0]; c {
	case '"', '\'':
		w.quote = c
		w.step(1)
	case '|', '>':
		end := bytes.IndexByte(w.text, '\n')
		if end < 0 {
			return false
		}
		w.step(end + 1)
		for rest := w.text; len(rest) > 0; { // the first line that is not empty
			w.indent = len(rest) - len(bytes.TrimLeft(rest, " "))
			if w.indent < len(rest) && rest[w.indent] != '\n' {
				break
			}
			rest = rest[min(w.indent+1, len(rest)):]
		}
		w.block = true
		w.step(min(w.indent, w.blanks()))
	}
	return true
}

// blanks is how many spaces stand here.
func (w *walker) blanks() int { return len(w.text) - len(bytes.TrimLeft(w.text, " ")) }

// meet finds what stands for the next rune of the value.
func (w *walker) meet(want rune) bool {
	for len(w.text) > 0 {
		w.met = w.pos
		r, size := w.next()
		if r == want {
			w.size = size
			return true
		}
		switch {
		case r == '\n' && want == ' ' && !w.block: // a folded line
			w.size = len(w.text) - len(bytes.TrimLeft(w.text, " \t\r\n"))
			return true
		case r == '\n' && want == ' ':
			w.size = 1
			return true
		case size > 0 && (r == ' ' || r == '\t' || r == '\r' || r == '\n'): // the end of a folded line, or a line between
			w.step(1)
		case r == continued:
			w.step(size)
			w.step(len(w.text) - len(bytes.TrimLeft(w.text, " \t\r\n")))
		default:
			return false
		}
	}
	return false
}

// pass goes over what was met.
func (w *walker) pass() {
	newline := w.size > 0 && len(w.text) > 0 && w.text[0] == '\n'
	w.step(w.size)
	w.passed++
	if w.block && newline {
		w.step(min(w.indent, w.blanks()))
	}
}

// continued is a backslash at the end of a line, which stands for nothing.
const continued rune = -2

// next is the rune that the text has here, and how many bytes write it.
func (w *walker) next() (rune, int) {
	switch {
	case w.quote == '\'' && bytes.HasPrefix(w.text, []byte("''")):
		return '\'', 2
	case w.quote == '"' && w.text[0] == '\\' && len(w.text) > 1:
		return w.escaped()
	}
	return utf8.DecodeRune(w.text)
}

// escaped reads what a backslash in double quotes begins.
func (w *walker) escaped() (rune, int) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[w.text[1]]
	if digits > 0 {
		if len(w.text) < 2+digits {
			return utf8.RuneError, 0
		}
		code, err := strconv.ParseUint(string(w.text[2:2+digits]), 16, 32)
		if err != nil {
			return utf8.RuneError, 0
		}
		if high := rune(code); high >= 0xD800 && high < 0xDC00 && len(w.text) >= 12 { // JSON has two for one
			if low, err := strconv.ParseUint(string(w.text[8:12]), 16, 32); err == nil {
				return (high-0xD800)<<10 + rune(low) - 0xDC00 + 0x10000, 12
			}
		}
		return rune(code), 2 + digits
	}
	short := map[byte]rune{'n': '\n', 't': '\t', 'r': '\r', '0': 0, 'a': 7, 'b': 8, 'f': 12, 'v': 11, 'e': 27, '\n': continued, 'N': 0x85, '_': 0xA0, 'L': 0x2028, 'P': 0x2029}
	if r, ok := short[w.text[1]]; ok {
		return r, 2
	}
	r, size := utf8.DecodeRune(w.text[1:])
	return r, 1 + size
}
