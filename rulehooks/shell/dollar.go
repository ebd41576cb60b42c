package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// dollarQuoted is what bash makes of the inside of $'…'. It is not known where shells make
// different things of it: of a NUL, at which bash ends the text and zsh does not, of
// what only some of them know, and of a quote with a backslash, which ends it where
// a shell does not know $'…' at all.
func dollarQuoted(s string) (text string, known bool) {
	var b strings.Builder
	known = true
	for s != "" {
		at := strings.IndexByte(s, '\\')
		if at < 0 || at+1 == len(s) {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:at])
		letter, rest := s[at+1], s[at+2:]
		s = rest
		if plain := strings.IndexByte(`abeEfnrtv\"?`, letter); plain >= 0 {
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\\"?"[plain])
			continue
		}
		var value uint64
		var size int
		switch letter {
		case '0', '1', '2', '3', '4', '5', '6', '7':
			value, size = number(string(letter)+rest, 8, 3)
			value, size = value&0xff, size-1
		case 'x':
			value, size = number(rest, 16, 2)
		case 'u':
			value, size = number(rest, 16, 4)
		case 'U':
			value, size = number(rest, 16, 8)
		case '\'':
			b.WriteByte('\'')
			known = false
			continue
		}
		switch s = rest[max(size, 0):]; {
		case size < 0 || size == 0 && (letter < '0' || letter > '7'):
			b.WriteString(`\` + string(letter))
			known = false
		case value == 0:
			return b.String(), false
		case letter == 'u' || letter == 'U':
			known = known && value <= utf8.MaxRune && utf8.ValidRune(rune(value))
			b.WriteRune(rune(min(value, utf8.MaxRune)))
		default:
			b.WriteByte(byte(value))
		}
	}
	return b.String(), known
}

// number is that of the first digits of a text, at most so many, and how many there are.
func number(s string, base, most int) (value uint64, size int) {
	for size < min(most, len(s)) {
		digit, err := strconv.ParseUint(s[size:size+1], base, 8)
		if err != nil {
			break
		}
		value = value*uint64(base) + digit
		size++
	}
	return value, size
}
