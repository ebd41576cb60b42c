package redact

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Masks take the place of secrets where the bytes of a text are counted, as in a
// conversation that grows by offsets: each is as long as what it hides,
// "[redacted:NAME]" with as many stars as are missing, or stars alone where there is
// no room for that. Lines stay lines, JSON stays JSON and UTF-8 stays UTF-8. They are
// safe for concurrent use.
type Masks struct{ redactor *Redactor }

// Masks are those of the redactor's secrets.
func (r *Redactor) Masks() Masks { return Masks{r} }

// Text is the text with its secrets masked; the text itself where there is none.
func (m Masks) Text(text []byte) []byte {
	if clean := m.redactor.maskedText(string(text)); clean != string(text) {
		return []byte(clean)
	}
	return text
}

// Reader is what src holds, masked, a window at a time. Its errors are src's.
func (m Masks) Reader(src io.Reader) io.Reader {
	return &reader{redactor: m.redactor, clean: m.redactor.masked, src: src, raw: make([]byte, 0, window+overlap)}
}

// Overlap is how many bytes on either side of an edge are to be looked at together: no
// secret that is known is longer.
func (Masks) Overlap() int { return overlap }

// Behind is text masked that stands behind another, which was masked when nobody knew
// what would follow: a secret that begins there, or ended there, goes as far as it
// goes on here. Of both together no more is looked at than of one window.
func (m Masks) Behind(before, text []byte) []byte {
	joined := []byte(m.redactor.maskedText(string(before) + string(text)))
	clean := joined[len(before):]
	if openMarks().Match(before) {
		fill(clean[:restOfWord(string(text))])
	}
	if openKeys().Match(before) {
		fill(clean[:restOfKey(string(text), bytes.HasSuffix(before, []byte("\n")) || bytes.HasPrefix(text, []byte("\n")))])
	}
	for _, s := range m.redactor.spans(string(before) + string(text)) {
		if s.from < len(before) && s.to > len(before) { // its mark would be cut, too
			cover(joined[len(before):s.to], s.name)
		}
	}
	if bytes.Equal(clean, text) {
		return text
	}
	return clean
}

// Marks that a text ends with. A key has several lines, and may have begun before its
// kind was known.
var (
	openMarks = asked(`\[redacted(?::[a-z][a-z0-9_]{0,39})?\]\**\z`)
	openKeys  = asked(`(?:\[redacted(?::private_key)?\]|-----BEGIN [A-Z0-9 -]{0,60})[*\r\n]*\z`)
)

// restOfWord is how many bytes of a text could belong to a token that began before.
func restOfWord(text string) int {
	if n := strings.IndexFunc(text, func(r rune) bool { return notOfKey(r) && !strings.ContainsRune("-_.~%@", r) }); n >= 0 {
		return n
	}
	return len(text)
}

// restOfKey is how many bytes of a text could belong to a private key's block that
// began before, with the line that ends it. On another line, what is short, is not
// filled up as base64 is, and has no such line behind it is a word of what follows a key
// that had ended.
func restOfKey(text string, anotherLine bool) int {
	n := 0
	if !anotherLine {
		n = len(text) - len(strings.TrimLeftFunc(text, func(r rune) bool { return !notOfKey(r) }))
	}
	body := keyBody{apart: anotherLine}
	n += body.end(text[n:])
	if end := keyEnds().FindStringIndex(text[n:]); end != nil && strings.IndexFunc(text[n:n+end[0]], letter) < 0 {
		return n + end[1]
	}
	return n
}

// JSON is a JSON text, masked, as [Redactor.JSON] is redacted: a secret is also found
// where it is written with escapes, and in JSON within a string. Of a number that is
// one each digit becomes 1. What is no JSON is masked as text. doc itself is not
// changed.
func (m Masks) JSON(doc []byte) []byte { return m.json(doc, 0) }

// deepest is how many strings within strings are read as JSON: arguments of a call,
// as chat APIs have them, in a file that was read as one string.
const deepest = 3

func (m Masks) json(doc []byte, depth int) []byte {
	if len(m.redactor.finders) == 0 || len(doc) == 0 {
		return doc
	}
	if !json.Valid(doc) {
		return m.Text(doc)
	}
	out, hits := doc, 0
	eachValue(doc, func(key, token string, at, end int) {
		text := exactText(token)
		clean := text
		if hits < mostHits {
			clean = m.value(key, text, depth)
		} else if name := m.redactor.suspected(text); name != "" {
			clean = covered(text, []span{spanOf(name, 0, len(text))})
		}
		if clean == text {
			return
		}
		if hits++; hits == 1 {
			out = bytes.Clone(doc)
		}
		if token[0] == '"' {
			rewrite(out[at+1:end-1], text, clean)
			return
		}
		for i := at; i < end; i++ {
			if digit(out[i]) {
				out[i] = '1' // 0 may not begin a number, and no card's begins with 1
			}
		}
	})
	return out
}

// value masks what a field holds, which some patterns know by its name.
func (m Masks) value(key, text string, depth int) string {
	if begin := strings.TrimLeft(text, " \t\r\n"); depth < deepest && begin != "" && (begin[0] == '{' || begin[0] == '[') && json.Valid([]byte(text)) {
		text = string(m.json([]byte(text), depth+1))
	}
	text = m.redactor.maskedText(text)
	if named(key) {
		text = m.redactor.maskedText(key + "=" + text)[len(key)+1:]
	}
	return text
}

func (r *Redactor) maskedText(text string) string {
	if len(text) <= window {
		return r.masked(text)
	}
	var out strings.Builder
	out.Grow(len(text))
	_, _ = io.Copy(&out, Masks{r}.Reader(strings.NewReader(text))) // neither side fails
	return out.String()
}

// masked is [Redactor.settled] by masks.
func (r *Redactor) masked(text string) string {
	for range passes {
		spans := r.spans(text)
		if len(spans) == 0 {
			break
		}
		text = covered(text, spans)
	}
	return text
}

func covered(text string, spans []span) string {
	out := []byte(text)
	for _, s := range spans {
		cover(out[s.from:s.to], s.name)
	}
	return string(out)
}

// cover masks all of a secret but the ends of its lines. The mark is in the first line
// that has room for it.
func cover(secret []byte, name string) {
	fill(secret)
	for _, mark := range []string{"[redacted:" + name + "]", "[redacted]"} {
		for line := range bytes.SplitSeq(secret, []byte("\n")) {
			if len(mark) <= len(line) {
				copy(line, mark)
				return
			}
		}
	}
}

// fill has stars in the place of all but ends of lines.
func fill(secret []byte) {
	for i := range secret {
		if secret[i] != '\n' {
			secret[i] = '*'
		}
	}
}

// rewrite makes a JSON string's inner, which stands for a text, stand for one that is
// as long and has marks in it. What has not changed stays as it was written; where an
// escape gave way there is room for stars behind the mark.
func rewrite(inner []byte, text, clean string) {
	var room [4]byte
	to := 0 // where what has changed is written next
	for from, at := 0, 0; from < len(inner); {
		was, n := unescape(room[:0], inner[from:])
		now := clean[at : at+len(was)]
		if now == text[at:at+len(was)] {
			fill(inner[to:from])
			to = from + n
		} else {
			to += copy(inner[to:], now)
		}
		from, at = from+n, at+len(was)
	}
	fill(inner[to:])
}

// exactText is what a string stands for, and of a number its digits. Bytes that are
// no UTF-8 stay what they are.
func exactText(token string) string {
	if token[0] != '"' {
		return token
	}
	inner := []byte(token[1 : len(token)-1])
	if bytes.IndexByte(inner, '\\') < 0 {
		return token[1 : len(token)-1]
	}
	text := make([]byte, 0, len(inner))
	for len(inner) > 0 {
		var n int
		text, n = unescape(text, inner)
		inner = inner[n:]
	}
	return string(text)
}

// unescape appends what the first character of a JSON string's inner stands for, and
// says how many bytes it is written in: never fewer than it stands for.
func unescape(text, inner []byte) ([]byte, int) {
	if inner[0] != '\\' {
		return append(text, inner[0]), 1
	}
	if c := inner[1]; c != 'u' {
		if i := strings.IndexByte("bfnrt", c); i >= 0 {
			c = "\b\f\n\r\t"[i]
		}
		return append(text, c), 2
	}
	r := codeUnit(inner)
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(text, r), 6
	}
	if len(inner) >= 12 && inner[6] == '\\' && inner[7] == 'u' {
		if pair := utf16.DecodeRune(r, codeUnit(inner[6:])); pair != utf8.RuneError {
			return utf8.AppendRune(text, pair), 12
		}
	}
	return utf8.AppendRune(text, utf8.RuneError), 6
}

// codeUnit is the number in \uXXXX.
func codeUnit(escape []byte) rune {
	n, _ := strconv.ParseUint(string(escape[2:6]), 16, 16) // four digits, since the JSON is valid
	return rune(n)
}
