package gate

import (
	"bytes"
	"html"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Blot is a text with "[key]" for each of the secrets, also where they are
// escaped as JSON allows, and escaped again as they are in a call's arguments,
// as in a URL, or as in a page.
// Of secrets that begin alike the longest goes first. text itself is not
// changed.
//
// Secrets below least bytes stay: they are no secrets but words, as the "none"
// that a local server wants for a key, and blotting them out would spoil texts.
func Blot(text []byte, secrets []string, least int) []byte {
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for i, s := range secrets {
		if len(s) >= max(least, 1) && !slices.Contains(secrets[:i], s) {
			text = without(text, s)
		}
	}
	return text
}

func without(text []byte, secret string) []byte {
	var out []byte
	kept := 0 // text before it is in out
	_, first := utf8.DecodeRuneInString(secret)
	begins := secret[:first] + `\%&+`
	for at := 0; at < len(text); {
		i := bytes.IndexAny(text[at:], begins)
		if i < 0 {
			break
		}
		at += i
		if n := echo(text[at:], secret); n > 0 {
			out = append(append(out, text[kept:at]...), "[key]"...)
			at += n
			kept = at
			continue
		}
		// What does not match at the first of several backslashes does not at
		// the others; trying each would take time squared.
		at += max(backslashes(text[at:]), 1)
	}
	if kept == 0 {
		return text
	}
	return append(out, text[kept:]...)
}

// echo is how many bytes at the text's beginning are the secret, in whatever
// escapes; 0: it does not stand there. Each way of writing is tried by itself: a
// secret may hold what is an escape in another.
func echo(text []byte, secret string) int {
	return max(spelt(text, secret, character), spelt(text, secret, inURL), spelt(text, secret, inPage))
}

func spelt(text []byte, secret string, as func([]byte, rune) int) int {
	at := 0
	for _, r := range secret {
		n := as(text[at:], r)
		if n == 0 {
			return 0
		}
		at += n
	}
	return at
}

// inURL is [character] where it may be a URL's "%2F", and a space "+".
func inURL(text []byte, r rune) int {
	at := 0
	for _, b := range []byte(string(r)) {
		n := character(text[at:], '%')
		if n == 0 || len(text) < at+n+2 {
			at = 0
			break
		}
		if code, err := strconv.ParseUint(string(text[at+n:at+n+2]), 16, 8); err != nil || byte(code) != b {
			at = 0
			break
		}
		at += n + 2
	}
	switch {
	case at > 0:
		return at
	case r == ' ' && character(text, '+') > 0:
		return character(text, '+')
	}
	return character(text, r)
}

// inPage is [character] where it may be HTML's "&lt;" or "&#60;", whose
// ampersand JSON may have escaped.
func inPage(text []byte, r rune) int {
	const longest = len("CounterClockwiseContourIntegral;")
	if n := character(text, '&'); n > 0 {
		rest := text[n:min(len(text), n+longest)]
		if end := bytes.IndexByte(rest, ';'); end > 0 && html.UnescapeString("&"+string(rest[:end+1])) == string(r) {
			return n + end + 1
		}
	}
	return character(text, r)
}

// character is how many bytes at the text's beginning are the character, as it
// is, as "\/" or as "\u002f", after any number of backslashes; 0: it is another.
func character(text []byte, r rune) int {
	n := backslashes(text)
	rest := text[n:]
	if n > 0 && len(rest) >= 5 && rest[0] == 'u' {
		if code, err := strconv.ParseUint(string(rest[1:5]), 16, 16); err == nil && rune(code) == r {
			return n + 5
		}
	}
	switch got, size := utf8.DecodeRune(rest); {
	case r == '\\':
		return n
	case n > 0 && r != '/' && r != '"', len(rest) == 0, got != r:
		return 0
	default:
		return n + size
	}
}

// backslashes is how many of them the text begins with.
func backslashes(text []byte) int {
	return len(text) - len(bytes.TrimLeft(text, `\`))
}
