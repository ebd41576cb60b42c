package jsonscan

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is what a valid JSON string stands for: as [json.Unmarshal], it puts U+FFFD
// for what is not UTF-8.
func Text(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if !utf8.Valid(inner) { // no event of a host's, so that time does not matter
		var s string
		_ = json.Unmarshal(quoted, &s) // it is valid
		return s
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	out := make([]byte, 0, len(inner))
	for {
		before, escape, found := bytes.Cut(inner, []byte{'\\'})
		if out = append(out, before...); !found {
			return string(out)
		}
		out, inner = escaped(out, escape)
	}
}

// escaped appends what stands behind a backslash, and answers what follows.
func escaped(out, escape []byte) (_, rest []byte) {
	switch c, rest := escape[0], escape[1:]; c {
	case 'b':
		return append(out, '\b'), rest
	case 'f':
		return append(out, '\f'), rest
	case 'n':
		return append(out, '\n'), rest
	case 'r':
		return append(out, '\r'), rest
	case 't':
		return append(out, '\t'), rest
	case 'u':
		r, rest := unit(rest), rest[4:]
		if utf16.IsSurrogate(r) {
			r = utf8.RuneError
			if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
				if pair := utf16.DecodeRune(unit(escape[1:]), unit(rest[2:])); pair != utf8.RuneError {
					r, rest = pair, rest[6:]
				}
			}
		}
		return utf8.AppendRune(out, r), rest
	default:
		return append(out, c), rest
	}
}

// unit is the number of four hexadecimal digits.
func unit(digits []byte) (r rune) {
	for _, c := range digits[:4] {
		switch {
		case digit(c):
			c -= '0'
		case c >= 'a':
			c -= 'a' - 10
		default:
			c -= 'A' - 10
		}
		r = r<<4 | rune(c)
	}
	return r
}
