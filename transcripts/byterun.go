package transcripts

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// byteRun is a sequence of sets of ASCII bytes, as `[A-Z]{5} \d{3}` is one. Every
// line that its pattern matches holds a run: bytes side by side, one of each set.
// An ASCII byte is a rune wherever it stands, also between bytes that are not UTF-8,
// so that bytes can be asked where the law reads runes. No set has a newline.
type byteRun struct {
	// sets has for each byte the sets that it is in: the last one's bit is the lowest.
	sets   [256]uint64
	length int
	whole  bool // a line that holds a run matches
}

// maxRun is how many sets have a bit each.
const maxRun = 64

// byteRunOf is the run of a simplified pattern that is rarest in a text; nil if none
// is worth looking for.
func byteRunOf(tree *syntax.Regexp) *byteRun {
	parts := withoutLooseEnds(parts(nil, tree))
	var positions []position
	for _, part := range parts {
		positions = appendPositions(positions, part)
	}
	best := rarestRun(positions)
	whole := len(best) == len(positions) && !slices.ContainsFunc(parts, asserts)
	const least = 2 // a single byte is in too many lines to have each asked
	if len(best) == 0 || len(best) < least && !whole {
		return nil
	}
	r := &byteRun{length: len(best), whole: whole}
	for i, p := range best {
		for c := range byte(utf8.RuneSelf) {
			if p.has(c) {
				r.sets[c] |= 1 << (len(best) - 1 - i)
			}
		}
	}
	return r
}

// index is where a run first is in text; -1 if none is.
//
// It reads a window of the run's length from its end ("backward nondeterministic
// DAWG matching", Navarro and Raffinot 1998): where its last bytes can stand nowhere
// in a run, the window moves on by all of its length. What that costs grows with the
// length where a text is all but a run everywhere, so it gives way to [byteRun.forward].
func (r *byteRun) index(text []byte) int {
	const patience = 1 << 10 // bytes
	m := r.length
	first := uint64(1) << (m - 1)
	read := 0
	for at := 0; at+m <= len(text); {
		window := text[at : at+m]
		next, i := m, m-1
		for may := r.sets[window[i]]; may != 0; may &= r.sets[window[i]] {
			if may&first != 0 { // from here to the window's end a run can begin
				if i == 0 {
					return at
				}
				next = i
			}
			may <<= 1
			i--
		}
		at += next
		if read += m - i; read > at+at/2+patience {
			if i := r.forward(text[at:]); i >= 0 {
				return at + i
			}
			return -1
		}
	}
	return -1
}

// forward is what index is, in a time that is the same for every text: it reads each
// byte once and keeps which beginnings of a run end there ("shift-and").
func (r *byteRun) forward(text []byte) int {
	first := uint64(1) << (r.length - 1)
	begun := uint64(0)
	for i, c := range text {
		begun = (begun>>1 | first) & r.sets[c]
		if begun&1 != 0 {
			return i - r.length + 1
		}
	}
	return -1
}

// position is what may stand at one place of a match: a byte of an ASCII set, or with
// gap anything of any length.
type position struct {
	bytes [2]uint64
	gap   bool
}

func (p *position) add(c byte)      { p.bytes[c/64] |= 1 << (c % 64) }
func (p *position) has(c byte) bool { return p.bytes[c/64]&(1<<(c%64)) != 0 }

// rarity is how few bytes can stand there, as conversations have them: a set of the
// commonest bytes is worth least.
func (p *position) rarity() int {
	const all = len(common) * (len(common) + 1) / 2
	often := 1
	for c := range byte(utf8.RuneSelf) {
		if p.has(c) {
			often += commonness(c)
		}
	}
	return all / min(often, all)
}

// rarestRun is the part of positions without a gap that is rarest, as far as a byteRun
// has bits for it.
func rarestRun(positions []position) []position {
	var best []position
	most := 0
	for len(positions) > 0 {
		end := slices.IndexFunc(positions, func(p position) bool { return p.gap })
		if end < 0 {
			end = len(positions)
		}
		run := positions[:min(end, maxRun)]
		rarity := 0
		for _, p := range run {
			rarity += p.rarity()
		}
		if rarity > most {
			best, most = run, rarity
		}
		positions = positions[min(end+1, len(positions)):]
	}
	return best
}

// parts appends what stands side by side in a tree.
func parts(to []*syntax.Regexp, tree *syntax.Regexp) []*syntax.Regexp {
	switch tree.Op {
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range tree.Sub {
			to = parts(to, sub)
		}
		return to
	}
	return append(to, tree)
}

// withoutLooseEnds leaves out at both ends what may be nothing, and of what may be
// repeated all but once: the rest matches in the same lines.
func withoutLooseEnds(all []*syntax.Regexp) []*syntax.Regexp {
	loose := func(part *syntax.Regexp) bool { return part.Op == syntax.OpStar || part.Op == syntax.OpQuest }
	for len(all) > 0 && loose(all[0]) {
		all = all[1:]
	}
	for len(all) > 0 && loose(all[len(all)-1]) {
		all = all[:len(all)-1]
	}
	if len(all) == 0 {
		return nil
	}
	all = slices.Clone(all)
	for _, end := range []int{0, len(all) - 1} {
		if all[end].Op == syntax.OpPlus && !asserts(all[end]) {
			all[end] = all[end].Sub[0]
		}
	}
	return all
}

// appendPositions appends what a match of the tree is made of.
func appendPositions(to []position, tree *syntax.Regexp) []position {
	switch tree.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return to
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range tree.Sub {
			to = appendPositions(to, sub)
		}
		return to
	case syntax.OpPlus:
		once := appendPositions(nil, tree.Sub[0])
		to = append(append(to, once...), position{gap: true})
		if !slices.ContainsFunc(once, func(p position) bool { return p.gap }) { // else it would double with each level
			to = append(to, once...)
		}
		return to
	case syntax.OpLiteral:
		for _, r := range tree.Rune {
			to = append(to, runePosition(r, tree.Flags&syntax.FoldCase != 0))
		}
		return to
	case syntax.OpCharClass:
		return append(to, classPosition(tree.Rune))
	}
	return append(to, position{gap: true})
}

// runePosition is a rune's position, or with fold that of its cases, too: k and s have
// some beyond ASCII.
func runePosition(r rune, fold bool) position {
	ranges := []rune{r, r}
	if fold {
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			ranges = append(ranges, other, other)
		}
	}
	return classPosition(ranges)
}

func classPosition(ranges []rune) position {
	var p position
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1] >= utf8.RuneSelf {
			return position{gap: true}
		}
		for c := ranges[i]; c <= ranges[i+1]; c++ {
			if c != '\n' {
				p.add(byte(c))
			}
		}
	}
	return p
}
