package redact

import (
	"encoding/base64"
	"strings"
)

// basic reports whether what follows Basic is a name and a password, of any length, or
// what a mask of stars has left of them. In prose it is a word.
func basic(text string) bool {
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	return err == nil && strings.IndexByte(string(plain), ':') >= 0 || strings.HasPrefix(text, "****")
}

// notNamed reports whether a value is no name of code, as the function that makes a
// token: it has digits, or is longer than names are.
func notNamed(value string) bool {
	const longestName = 40
	return strings.ContainsAny(value, "0123456789") || len(value) >= longestName
}

// cookies finds the values of cookies in their headers. Their names stay, and so do
// attributes of one that is set, as its path.
func cookies(text string, found []span) []span {
	for at := 0; ; {
		begin, end, sets := cookieHeader(text, at)
		if begin < 0 {
			return found
		}
		at = end
		for more := true; more; {
			from, to := cookieValue(text, at)
			if from == to {
				break
			}
			found = append(found, span{from, to, "cookie", begin, to})
			at, more = nextCookie(text, to)
			more = more && !sets
		}
	}
}

// cookieHeader is where the next header's name begins, where its first cookie could,
// and whether it sets one; less: there is none.
func cookieHeader(text string, at int) (begin, end int, sets bool) {
	const word, k, set = "cookie", 3, "set-"
	for {
		i := strings.IndexAny(text[at:], "kK")
		if i < 0 {
			return -1, at, false
		}
		begin, at = at+i-k, at+i+1
		end = begin + len(word)
		if begin < 0 || end > len(text) || !strings.EqualFold(text[begin:end], word) {
			continue
		}
		if sets = begin >= len(set) && strings.EqualFold(text[begin-len(set):begin], set); sets {
			begin -= len(set)
		}
		end = skip(text, skip(text, end, quotes), spaces)
		if end < len(text) && (text[end] == ':' || text[end] == '=') && wordBegins(text, begin) {
			return begin, skip(text, skip(text, end+1, spaces), quotes), sets
		}
	}
}

// What may stand round names and values.
const (
	quotes = `"'\`
	spaces = " \t\r\n"
)

// skip is where a text goes on behind bytes of a set.
func skip(text string, at int, set string) int {
	for at < len(text) && strings.IndexByte(set, text[at]) >= 0 {
		at++
	}
	return at
}

// cookieValue is the value of the cookie whose name stands at a place; empty: none
// does.
func cookieValue(text string, at int) (from, to int) {
	name := at
	for at < len(text) && (wordly(text[at]) || strings.IndexByte("-._~$!#%&*+^`|", text[at]) >= 0) {
		at++
	}
	if at == name || at == len(text) || text[at] != '=' {
		return at, at
	}
	from = skip(text, at+1, `"\`)
	for at = from; at < len(text) && text[at] > ' ' && strings.IndexByte(";<>"+quotes, text[at]) < 0; {
		at++
	}
	return from, at
}

// nextCookie is where the next cookie of a header could begin behind a value.
func nextCookie(text string, at int) (int, bool) {
	at = skip(text, at, `"\`)
	if at == len(text) || text[at] != ';' {
		return at, false
	}
	return skip(text, at+1, " "), true
}
