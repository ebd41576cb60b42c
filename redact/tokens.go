package redact

import "strings"

// token is a shape of secrets that are known by how they begin.
type token struct {
	begins []string
	also   string // behind its beginning stand letters, digits and these, …
	least  int    // … so many of them or more
	// alone: the beginning counts only where a word begins, as the "sk-" of
	// "task-list" does not. Others are looked for within words, too.
	alone bool
}

// find finds tokens of the shape. It takes time linear in the text: what goes on
// behind a beginning is looked at once.
func (k token) find(name, text string, found []span) []span {
	for _, begin := range k.begins {
		for at := 0; ; {
			i := strings.Index(text[at:], begin)
			if i < 0 {
				break
			}
			from := at + i
			at = from + len(begin)
			if k.alone && !wordBegins(text, from) {
				continue
			}
			at = k.end(text, at)
			if rest := text[from+len(begin) : at]; len(rest) >= k.least && random(rest) {
				found = append(found, spanOf(name, from, at))
			}
		}
	}
	return found
}

// end is where what belongs to a token ends; a full stop at the end is the sentence's.
func (k token) end(text string, from int) int {
	at := from
	for at < len(text) && (letterOrDigit(text[at]) || strings.IndexByte(k.also, text[at]) >= 0) {
		at++
	}
	for at > from && text[at-1] == '.' {
		at--
	}
	return at
}

// random reports whether a text could be a machine's: it has digits, or letters of
// both cases. A name, as "sk-folding-cube-container", has neither.
func random(text string) bool {
	upper, lower := false, false
	for i := range len(text) {
		c := text[i]
		if digit(c) {
			return true
		}
		upper, lower = upper || c >= 'A' && c <= 'Z', lower || c >= 'a' && c <= 'z'
	}
	return upper && lower
}

// wordBegins reports whether no word goes on at a place, as [begin] does.
func wordBegins(text string, at int) bool {
	if at == 0 || !letterOrDigit(text[at-1]) {
		return true
	}
	before := text[max(0, at-longestEscape):at]
	n := len(before)
	return n >= 2 && before[n-2] == '\\' && strings.IndexByte("abfnrtv", before[n-1]) >= 0 ||
		n >= 6 && before[n-6:n-4] == `\u` && hexadecimal(before[n-4:]) ||
		n >= 3 && before[n-3] == '%' && hexadecimal(before[n-2:]) ||
		before[n-1] == 'm' && strings.HasSuffix(strings.TrimRight(before[:n-1], "0123456789;"), "[")
}

// begin is where a token begins: no word goes on there. An escape ends none: \n,
// \u003d, %3D, and a terminal's colour; nor does an underscore, with which names are
// put before a token.
const begin = `(?:\b|_|\\[abfnrtv]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\[[0-9;]{0,20}m)`

// longestEscape is how far before a place the beginning of an escape is looked for.
const longestEscape = 22

func hexadecimal(text string) bool { return strings.Trim(text, "0123456789abcdefABCDEF") == "" }

func letterOrDigit(c byte) bool { return wordly(c) && c != '_' }
