package redact

import "strings"

var (
	keyBegins = asked(`-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`)
	keyEnds   = asked(`-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`)
	// keyHeaders are the lines between a block's first one and what it holds.
	keyHeaders = asked(`\A[^A-Za-z]{0,64}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID): `)
)

// privateKeys finds PEM blocks; of one that is cut off all that could belong to it.
// One expression for begin and end would look for the end anew from each begin.
func privateKeys(text string, found []span) []span {
	begins := keyBegins().FindAllStringIndex(text, -1)
	ends := keyEnds().FindAllStringIndex(text, -1)
	at := 0
	for i, begin := range begins {
		if begin[0] < at {
			continue
		}
		for len(ends) > 0 && ends[0][0] < begin[1] {
			ends = ends[1:]
		}
		if len(ends) > 0 && ends[0][1]-begin[0] <= overlap {
			at = ends[0][1]
		} else {
			next := len(text)
			if i+1 < len(begins) {
				next = begins[i+1][0] // no line of this one, and so each line is looked at once
			}
			rest := text[begin[1]:next]
			first, _ := cutLine(rest)
			body := keyBody{prefix: shape(lastLine(text[:begin[0]])), apart: first != ""}
			at = begin[1] + body.end(rest)
		}
		found = append(found, spanOf("private_key", begin[0], at))
	}
	return found
}

// keyBody tells the lines of base64 in a private key's block from what follows them,
// where the block has no end. They may have something before them, as a file's have
// that is shown with numbers, quoted, indented, or by a search.
type keyBody struct {
	prefix string // shape of what stands before the last line
	width  int    // of the last line's base64; 0: there was none yet
	last   bool   // a line was shorter than the one before it, as only a key's last is
	apart  bool   // the last line was empty, or had something else in it
}

// leastOfLine is how many bytes of base64 are a key's wherever they stand; fewer may
// be a word.
const leastOfLine = 16

// end is where the lines end that a text begins with.
func (k *keyBody) end(text string) (end int) {
	for at := 0; at < len(text); {
		line, lineEnd := cutLine(text[at:])
		next := at + len(line) + len(lineEnd)
		k.apart = k.apart || line == "" && k.width > 0
		for line != "" {
			n, whole := k.part(line)
			if n < 0 {
				return end
			}
			if whole && n > 0 && strings.HasPrefix(lineEnd, `\`) {
				end = next // so that nothing but the block is behind its mark
			} else if n > 0 {
				end = at + n
			}
			if whole {
				break
			}
			line, at = line[n:], at+n
		}
		at = next
	}
	return end
}

// part is up to where a line, or the rest of one, belongs to the key, and whether
// nothing else is in it. 0: it is empty, or a header; -1: it does not belong to it.
func (k *keyBody) part(line string) (end int, whole bool) {
	from := afterPrefix(line, k.prefix)
	if n := strings.IndexFunc(line[from:], letter); n >= 0 {
		from += n
	} else {
		k.apart = k.apart || k.width > 0
		return 0, true
	}
	if k.width == 0 && keyHeaders().MatchString(line) {
		return 0, true
	}
	for from > 0 && !notOfKey(rune(line[from-1])) {
		from--
	}
	run := line[from:]
	if n := strings.IndexFunc(run, notOfKey); n >= 0 {
		run = run[:n]
	}
	end = from + len(run)
	whole = strings.Trim(line[end:], " \t\r\"'`,;|\\)") == ""
	prefix := shape(line[:from])
	switch {
	case len(run) >= leastOfLine && random(run):
	case whole && strings.HasSuffix(run, "="):
	case whole && !k.last && !k.apart && (k.width == 0 || prefix == k.prefix):
	default:
		return -1, false
	}
	k.last = k.last || len(run) < k.width
	k.prefix, k.width, k.apart = prefix, len(run), !whole
	return end, whole
}

// shape is what stands before a line, with one 0 for each number and one space for
// each space: it is the same for each line.
func shape(prefix string) string {
	var out []byte
	for i := range len(prefix) {
		c := prefix[i]
		switch {
		case digit(c):
			c = '0'
		case c == '\t':
			c = ' '
		}
		if n := len(out); n == 0 || out[n-1] != c || c != '0' && c != ' ' {
			out = append(out, c)
		}
	}
	return string(out)
}

// afterPrefix is where a line goes on behind a prefix of that shape; 0: it has
// another.
func afterPrefix(line, shape string) int {
	at := 0
	for i := range len(shape) {
		begin := at
		switch c := shape[i]; c {
		case '0':
			for at < len(line) && digit(line[at]) {
				at++
			}
		case ' ':
			for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
				at++
			}
		default:
			if at < len(line) && line[at] == c {
				at++
			}
		}
		if at == begin {
			return 0
		}
	}
	return at
}

// lastLine is the text behind its last end of a line.
func lastLine(text string) string {
	text = text[max(0, len(text)-longestPrefix):]
	for {
		line, end := cutLine(text)
		if end == "" {
			return line
		}
		text = text[len(line)+len(end):]
	}
}

// cutLine is the line that a text begins with, and what ends it: also escaped, as
// often as that may be; empty: nothing does.
func cutLine(text string) (line, end string) {
	for at := 0; ; {
		i := strings.IndexAny(text[at:], "\n\\")
		if i < 0 {
			return text, ""
		}
		from, to := at+i, at+i+1
		if text[from] == '\n' {
			if from > 0 && text[from-1] == '\r' {
				from--
			}
			return text[:from], text[from:to]
		}
		at = skip(text, to, `\`)
		escape := func(at int, c byte) bool { return at < len(text) && text[at] == c }
		switch {
		case escape(at, 'n'):
			return text[:from], text[from : at+1]
		case escape(at, 'r'):
			if n := skip(text, at+1, `\`); n > at+1 && escape(n, 'n') {
				return text[:from], text[from : n+1]
			}
			return text[:from], text[from : at+1]
		}
	}
}

// longestPrefix is how many bytes before a line are looked at.
const longestPrefix = 128

func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// notOfKey reports a character that is no base64.
func notOfKey(r rune) bool {
	return !letter(r) && (r < '0' || r > '9') && r != '+' && r != '/' && r != '='
}
