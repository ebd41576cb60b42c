package transcripts

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// byteRun is a row of ASCII bytes, each one of a set, as [A-Z]{5} \d{3} is: what
// patterns without a literal are looked for by. It is found by reading a window of
// its length from the end and going on as far as what was read there can begin it, so
// that most bytes of a text are not looked at. The zero value is none.
type byteRun struct {
	size int
	// at has a bit for each place of the run that a byte may have; the first
	// place's is the highest, the last one's the lowest.
	at [256]uint64
	// whole: a pattern's match is a run, and nothing else.
	whole bool
}

const (
	minRun = 3 // shorter ones are found so often that RE2 is faster
	maxRun = 64
	// maxChance of a run at a place of a text: more of them are found than RE2 takes
	// to look for.
	maxChance = 1.0 / 200
)

// byteSet is what may stand at a place: one bit for each ASCII byte.
type byteSet [2]uint64

func (s *byteSet) add(c byte) { s[c/64] |= 1 << (c % 64) }

func (s *byteSet) has(c byte) bool { return c < utf8.RuneSelf && s[c/64]&(1<<(c%64)) != 0 }

// chance is the share of a conversation's bytes that are in the set, about: that of
// each is taken to fall by a thirtieth from one to the next in [common].
func (s *byteSet) chance() (sum float64) {
	share := 1.0 / 30
	for _, c := range []byte(common) {
		if s.has(c) {
			sum += share
		}
		share -= share / 30
	}
	return min(sum, 1)
}

// newByteRun is the run that stands in every match of the tree, and is the rarest
// of several. ok is false if there is none, or only what is found too often.
func newByteRun(tree *syntax.Regexp) (run byteRun, ok bool) {
	f := runFinder{exact: true}
	f.add(tree)
	f.end()
	if f.best == nil || f.chance > maxChance {
		return byteRun{}, false
	}
	run = madeRun(f.best)
	run.whole = f.exact
	return run, true
}

func madeRun(sets []byteSet) byteRun {
	run := byteRun{size: len(sets)}
	for i, set := range sets {
		for c := range utf8.RuneSelf {
			if set.has(byte(c)) {
				run.at[c] |= 1 << (run.size - 1 - i)
			}
		}
	}
	return run
}

// runFinder walks over what every match consists of, one piece behind another.
type runFinder struct {
	now, best []byteSet
	chance    float64 // of best
	exact     bool    // there was nothing but one run
}

func (f *runFinder) add(tree *syntax.Regexp) {
	switch tree.Op {
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			f.add(sub)
		}
	case syntax.OpCapture:
		f.add(tree.Sub[0])
	case syntax.OpLiteral:
		for _, r := range tree.Rune {
			f.set(literalSet(r, tree.Flags&syntax.FoldCase != 0))
		}
	case syntax.OpCharClass:
		f.set(classSet(tree.Rune))
	case syntax.OpPlus: // the first stands behind what was, the last before what comes
		f.add(tree.Sub[0])
		f.broken()
		f.add(tree.Sub[0])
	case syntax.OpEmptyMatch:
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		f.exact = false // which stands between two bytes, and takes none
	default:
		f.broken()
	}
}

// set adds a place; not ok: other bytes than ASCII may stand there.
func (f *runFinder) set(s byteSet, ok bool) {
	if !ok {
		f.broken()
		return
	}
	if len(f.now) == maxRun {
		f.broken()
	}
	f.now = append(f.now, s)
}

// broken ends a run, and begins another.
func (f *runFinder) broken() {
	f.end()
	f.exact = false
}

func (f *runFinder) end() {
	chance := 1.0
	for i := range f.now {
		chance *= f.now[i].chance()
	}
	if len(f.now) >= minRun && (f.best == nil || chance < f.chance) {
		f.best, f.chance = f.now, chance
	}
	f.now = nil
}

// literalSet is a rune and, in any case, its other forms.
func literalSet(r rune, fold bool) (s byteSet, ok bool) {
	if r >= utf8.RuneSelf || r == '\n' {
		return s, false
	}
	s.add(byte(r))
	if !fold {
		return s, true
	}
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		if other >= utf8.RuneSelf {
			return s, false
		}
		s.add(byte(other))
	}
	return s, true
}

// classSet is a class of ASCII bytes. No line holds a newline.
func classSet(ranges []rune) (s byteSet, ok bool) {
	if len(ranges) == 0 || ranges[len(ranges)-1] >= utf8.RuneSelf {
		return s, false
	}
	for pair := range slices.Chunk(ranges, 2) {
		for c := pair[0]; c <= pair[1]; c++ {
			if c != '\n' {
				s.add(byte(c))
			}
		}
	}
	return s, true
}

// index is where the run first is at or after at; -1 if it is not.
func (r *byteRun) index(text []byte, at int) int {
	last, first := r.size-1, uint64(1)<<(r.size-1)
	for at+last < len(text) {
		// might has the places of the run where what was read from the window's end on
		// may stand; next is the nearest place where that can begin the run.
		next := r.size
		for might, i := r.at[text[at+last]], last; might != 0; {
			if might&first != 0 {
				if i == 0 {
					return at
				}
				next = i
			}
			i--
			might = might << 1 & r.at[text[at+i]]
		}
		at += next
	}
	return -1
}

// in reports whether a line holds the run.
func (r *byteRun) in(line []byte) bool { return r.index(line, 0) >= 0 }
