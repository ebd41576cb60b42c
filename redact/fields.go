package redact

import (
	"encoding/base64"
	"strings"
)

// leastOfValue is the fewest bytes of what is taken for a token by what stands before
// it: shorter ones are words.
const leastOfValue = 16

// credentials reports whether what follows a scheme of Authorization are some: a
// token, a name and password of any length in base64, or what a mask of stars has left
// of them.
func credentials(text string) bool {
	if strings.HasPrefix(text, "****") {
		return true
	}
	if strings.IndexByte(text, '*') >= 0 {
		return false
	}
	if len(text) >= leastOfValue {
		return true
	}
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	return err == nil && strings.IndexByte(string(plain), ':') >= 0
}

// notNamed reports whether a value is no name of code, as the function that makes a
// token: it has digits, or is longer than names are.
func notNamed(value string) bool {
	const longestName = 40
	return strings.ContainsAny(value, "0123456789") || len(value) >= longestName
}

// cookieHeaders are headers of cookies up to the first name.
var cookieHeaders = asked(`(?i)\b(?:set-)?cookie2?["'\\]{0,8}\s{0,8}[:=]\s{0,8}["'\\]{0,8}`)

// cookies finds the values of cookies. Their names stay, and so do attributes of one
// that is set, as its path.
func cookies(text string, found []span) []span {
	at := 0
	for _, header := range cookieHeaders().FindAllStringIndex(text, -1) {
		if header[0] < at {
			continue
		}
		at = header[1]
		sets := strings.EqualFold(text[header[0]:min(len(text), header[0]+len("set-"))], "set-")
		for more := true; more; {
			from, to := cookieValue(text, at)
			if from == to {
				break
			}
			found = append(found, span{from, to, "cookie", header[0], to})
			at, more = nextCookie(text, to)
			more = more && !sets
		}
	}
	return found
}

// cookieValue is the value of the cookie whose name stands at a place; empty: none
// does.
func cookieValue(text string, at int) (from, to int) {
	name := at
	for at < len(text) && (wordly(text[at]) || strings.IndexByte("-._~$!#%&*+^`|[]:", text[at]) >= 0) {
		at++
	}
	if at == name || at == len(text) || text[at] != '=' {
		return at, at
	}
	at++
	for at < len(text) && (text[at] == '\\' || text[at] == '"') {
		at++
	}
	from = at
	for at < len(text) && text[at] > ' ' && strings.IndexByte(";\"'\\<>", text[at]) < 0 {
		at++
	}
	return from, at
}

// nextCookie is where the next cookie of a header could begin behind a value.
func nextCookie(text string, at int) (int, bool) {
	for at < len(text) && (text[at] == '\\' || text[at] == '"') {
		at++
	}
	if at == len(text) || text[at] != ';' {
		return at, false
	}
	for at++; at < len(text) && text[at] == ' '; {
		at++
	}
	return at, true
}
