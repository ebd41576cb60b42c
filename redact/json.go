package redact

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"stopgate/internal/jsonscan"
)

// JSON is a JSON text, redacted: it stays one, and every byte outside a string or
// number with a secret stays as it is. A number that is one becomes a string. What
// is no JSON is redacted as plain text. doc itself is not changed.
func (r *Redactor) JSON(doc []byte) []byte {
	if len(r.finders) == 0 || len(doc) == 0 {
		return doc
	}
	if !jsonscan.Valid(doc) {
		if clean := r.Text(string(doc)); clean != string(doc) {
			return []byte(clean)
		}
		return doc
	}
	var out []byte
	hits := 0
	kept := 0 // doc before it is in out
	eachValue(doc, func(key, token string, at, end int) {
		text := textOf(token)
		var clean string
		if hits < mostHits {
			clean = r.value(key, text)
		} else {
			clean = r.roughly(text)
		}
		if clean != text {
			hits++
			out = append(append(out, doc[kept:at]...), quoted(clean)...)
			kept = end
		}
	})
	if kept == 0 {
		return doc
	}
	return append(out, doc[kept:]...)
}

// eachValue visits the strings and numbers of valid JSON, names of members too, by
// how they are written and where. key is the name of the member that one is the value
// of; empty: of none.
func eachValue(doc []byte, visit func(key, token string, at, end int)) {
	whole := string(doc) // of which tokens are parts, without a copy of each
	before := ""         // the string that came last, …
	key := ""            // … and if a colon followed, the name of what comes next
	for at := 0; at < len(doc); {
		end := tokenEnd(doc, at)
		switch token := whole[at:end]; {
		case token[0] == '"' || number(token):
			visit(key, token, at, end)
			before, key = "", ""
			if len(token) <= longestName {
				before = textOf(token)
			}
		case token[0] == ':':
			key = before
		case !space(token[0]):
			key = ""
		}
		at = end
	}
}

// longestName is the most bytes of a member's name, as it is written, that says what
// its value is.
const longestName = 6*64 + 2

// named reports whether a member's name may tell that its value is a secret.
func named(key string) bool {
	lower := strings.ToLower(key)
	return len(key) <= 64 && (strings.HasSuffix(lower, "key") || strings.HasSuffix(lower, "authorization") ||
		strings.HasSuffix(lower, "cookie") || strings.HasSuffix(lower, "token") || strings.HasSuffix(lower, "secret"))
}

// roughly is for a document full of secrets, whose making must not hold up a
// decision: a string that may have one goes whole.
func (r *Redactor) roughly(text string) string {
	if name := r.suspected(text); name != "" {
		return "[redacted:" + name + "]"
	}
	return text
}

// suspected is the kind of secret that a text may have; empty: none, or it is a mark.
func (r *Redactor) suspected(text string) string {
	could := r.hints.in(text)
	for _, f := range r.finders {
		if could&f.hint != 0 || f.hint == 0 && len(f.find(text, nil)) > 0 {
			if name := marks().FindString(text); len(name) == len(text) {
				return ""
			}
			return f.name
		}
	}
	return ""
}

// value redacts what a field holds, which some patterns know by its name.
func (r *Redactor) value(key, text string) string {
	text = r.Text(text)
	if named(key) {
		if clean, found := strings.CutPrefix(r.Text(key+"="+text), key+"="); found {
			return clean
		}
	}
	return text
}

// tokenEnd is where the token of valid JSON ends that begins at a place: a string,
// a number or word, one other character.
func tokenEnd(doc []byte, at int) int {
	c := doc[at]
	switch {
	case c == '"':
		return jsonscan.StringEnd(doc, at)
	case c == '-' || digit(c):
		for at < len(doc) && (wordly(doc[at]) || doc[at] == '-' || doc[at] == '+' || doc[at] == '.') {
			at++
		}
		return at
	}
	return at + 1
}

func number(token string) bool { return token[0] == '-' || digit(token[0]) }

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// textOf is what a string stands for, and of a number its digits.
func textOf(token string) string {
	if token[0] != '"' {
		return token
	}
	inner := token[1 : len(token)-1]
	if strings.IndexByte(inner, '\\') < 0 && utf8.ValidString(inner) {
		return inner
	}
	return jsonscan.Text([]byte(token))
}

// quoted is the text as a JSON string.
func quoted(text string) []byte {
	b, _ := json.Marshal(text) // a string always is
	return b
}
