package transcripts

import (
	"bytes"
	"unicode/utf8"
)

// needle is a text that is looked for by its rarest byte, which is what makes
// a scan as fast as memory.
type needle struct {
	text []byte // lower-case if fold
	fold bool   // ASCII letters match in both cases
	rare int    // index of the rarest byte
}

func newNeedle(text []byte, fold bool) needle {
	n := needle{text: text, fold: fold}
	for i, c := range text {
		if commonness(c) < commonness(text[n.rare]) {
			n.rare = i
		}
	}
	return n
}

// common lists bytes from the most frequent down, as they are in conversations,
// code and logs. All others are rarer.
const common = " etaonirslcdumpfhgyb\".,_w/:-0v1\tk=2()'{}x3T5S4EA6C89I7R>D<NO[]PqLMF*jBUGz;H&W|#$`\\V+@XK!?%Y~JQ^Z"

func commonness(c byte) int {
	if i := bytes.IndexByte([]byte(common), c); i >= 0 {
		return len(common) - i
	}
	return 0
}

// cursor is where one needle is in a text, going forward only.
type cursor struct {
	*needle
	next    int // where the needle is next; len(text) if it is not
	low, up int // fold: where the rarest byte is next, in each case
}

// move finds the needle at or after at.
func (c *cursor) move(text []byte, at int) {
	if c.fold {
		c.next = c.indexFold(text, at)
		return
	}
	c.next = len(text)
	if i := c.index(text[at:]); i >= 0 {
		c.next = at + i
	}
}

// in reports whether the text holds the needle.
func (n *needle) in(text []byte) bool {
	c := cursor{needle: n, low: -1, up: -1}
	c.move(text, 0)
	return c.next < len(text)
}

// index is where the needle first is in text, in its own case; -1 if it is not.
func (n *needle) index(text []byte) int {
	// Where the rarest byte is not rare after all, the library's search by two
	// bytes at once is faster.
	const patience = 64
	c, tail := n.text[n.rare], len(n.text)-n.rare
	misses := 0
	for at := n.rare; at+tail <= len(text); at++ {
		i := bytes.IndexByte(text[at:], c)
		if i < 0 {
			return -1
		}
		at += i
		if at+tail > len(text) {
			return -1
		}
		if bytes.Equal(text[at-n.rare:at+tail], n.text) {
			return at - n.rare
		}
		if misses++; misses > patience+at/256 {
			from := at - n.rare + 1
			if i = bytes.Index(text[from:], n.text); i >= 0 {
				i += from
			}
			return i
		}
	}
	return -1
}

// indexFold is where the needle is at or after at, in any case; len(text) if it
// is not. Where the rarest byte is next is kept for each case, so that a case
// that does not occur is looked for once.
func (c *cursor) indexFold(text []byte, at int) int {
	lower := c.text[c.rare]
	upper := lower
	if 'a' <= lower && lower <= 'z' {
		upper -= 'a' - 'A'
	}
	tail := len(c.text) - c.rare
	for at += c.rare; ; at++ {
		if c.low < at {
			c.low = indexByteFrom(text, lower, at)
		}
		if c.up < at {
			c.up = indexByteFrom(text, upper, at)
		}
		at = min(c.low, c.up)
		if at+tail > len(text) {
			return len(text)
		}
		if equalFold(text[at-c.rare:at+tail], c.text) {
			return at - c.rare
		}
	}
}

// indexByteFrom is where b is at or after at; len(text) if it is not.
func indexByteFrom(text []byte, b byte, at int) int {
	if at < len(text) {
		if i := bytes.IndexByte(text[at:], b); i >= 0 {
			return at + i
		}
	}
	return len(text)
}

// equalFold compares with a lower-case ASCII text of the same length.
func equalFold(text, lower []byte) bool {
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// candidates goes through one text of whole lines and finds places in lines
// that may match. It never passes over a line that does.
type candidates struct {
	pattern *pattern
	needles []needle // the pattern's choice for texts like these
	begun   int      // texts
	text    []byte
	cursors []cursor // one per needle
	ask     int      // so many lines are worth asking before the filter is
	vain    int      // lines with a run that did not match, over those that did
}

// begin starts on a new text.
func (c *candidates) begin(text []byte) {
	const often = 64 // a conversation changes its subject; a sample costs as much as a window
	if c.begun%often == 0 {
		c.needles = c.pattern.rarest(text)
		c.vain = 0
	}
	c.begun++
	c.text = text
	c.cursors = c.cursors[:0]
	for i := range c.needles {
		c.cursors = append(c.cursors, cursor{needle: &c.needles[i], next: -1, low: -1, up: -1})
	}
}

// askNext is how many lines are asked one by one after a match, since matches
// come in crowds and the filter costs most where they are dense.
const askNext = 16

// maxVain is after how many lines that were asked in vain the filter is: it costs
// more than to look for a run, and less than to ask each line.
const maxVain = 64

// matched tells that a line did match.
func (c *candidates) matched() { c.ask, c.vain = askNext, c.vain-1 }

// from is a place in the first line, at or after the line that begins at at,
// that may match; -1 if there is none.
func (c *candidates) from(at int) int {
	switch {
	case at >= len(c.text):
		return -1
	case len(c.needles) > 0:
		return c.byNeedle(at)
	case c.pattern.run != nil && (c.pattern.enough || c.vain < maxVain):
		return c.byRun(at)
	case c.pattern.all || c.pattern.filter == nil:
		return at
	case c.ask > 0:
		c.ask--
		return at
	}
	return c.filtered(at)
}

// byNeedle is where the first of the needles is.
func (c *candidates) byNeedle(at int) int {
	first := len(c.text)
	for i := range c.cursors {
		if c.cursors[i].next < at {
			c.cursors[i].move(c.text, at)
		}
		first = min(first, c.cursors[i].next)
	}
	if first == len(c.text) {
		return -1
	}
	return first
}

// byRun is where a run is next.
func (c *candidates) byRun(at int) int {
	i := c.pattern.run.index(c.text[at:])
	if i < 0 {
		return -1
	}
	c.vain++
	return at + i
}

// filtered asks RE2, which has to copy what it reads, about a few lines at a
// time. Lines with bytes that are not UTF-8 are not its to judge: what it
// cannot read it does not match.
func (c *candidates) filtered(at int) int {
	for at < len(c.text) {
		part := wholeLines(c.text[at:])
		if len(part) > c.pattern.filterBytes {
			return at
		}
		if valid := validPrefix(part); valid < len(part) {
			part = part[:bytes.LastIndexByte(part[:valid], '\n')+1]
			if len(part) == 0 {
				return at
			}
		}
		// An empty match after the last newline is in no line of these.
		if loc := c.pattern.filter.FindIndex(part); loc != nil && (loc[0] < len(part) || part[loc[0]-1] != '\n') {
			return at + loc[0]
		}
		at += len(part)
	}
	return -1
}

// wholeLines is the lines that fit into 64 KiB, or the first if it does not.
func wholeLines(text []byte) []byte {
	const few = 64 << 10
	if len(text) <= few {
		return text
	}
	if i := bytes.LastIndexByte(text[:few], '\n'); i >= 0 {
		return text[:i+1]
	}
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1]
	}
	return text
}

// validPrefix is how many bytes of text are valid UTF-8.
func validPrefix(text []byte) int {
	if utf8.Valid(text) {
		return len(text)
	}
	at := 0
	for at < len(text) {
		if text[at] < utf8.RuneSelf {
			at++
			continue
		}
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}
