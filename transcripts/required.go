package transcripts

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// asserts reports whether the tree looks at where it stands, as ^ and \b do.
func asserts(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(tree.Sub, asserts)
}

// ordered is the literals of a pattern like lit.*lit, in their order; nil if it
// is not of that kind.
func ordered(tree *syntax.Regexp) [][]byte {
	for tree.Op == syntax.OpCapture {
		tree = tree.Sub[0]
	}
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		parts = tree.Sub
	}
	var literals [][]byte
	adjacent := false
	for _, part := range parts {
		switch {
		case part.Op == syntax.OpLiteral && part.Flags&syntax.FoldCase == 0 && !adjacent:
			text, ok := literal(part.Rune)
			if !ok {
				return nil
			}
			literals, adjacent = append(literals, text), true
		case part.Op == syntax.OpStar && (part.Sub[0].Op == syntax.OpAnyCharNotNL || part.Sub[0].Op == syntax.OpAnyChar):
			adjacent = false
		default:
			return nil
		}
	}
	return literals
}

// literal is the bytes that a sequence of runes matches; false if it matches
// others, too, or spans lines.
func literal(rs []rune) ([]byte, bool) {
	if slices.Contains(rs, utf8.RuneError) || slices.Contains(rs, '\n') {
		return nil, false
	}
	return []byte(string(rs)), true
}

// minNeedle: shorter needles are found so often that RE2 is faster.
const minNeedle = 2

// maxNeedles bounds how often a text is scanned.
const maxNeedles = 16

// maxChoices bounds what a sample is counted for.
const maxChoices = 8

// required is sets of needles: every match of the tree holds one needle of each
// set. None if nothing is known, or only what is too short.
func required(tree *syntax.Regexp) [][]needle {
	switch tree.Op {
	case syntax.OpLiteral:
		if n, ok := needleOf(tree); ok && len(n.text) >= minNeedle {
			return [][]needle{{n}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return required(tree.Sub[0])
		}
	case syntax.OpConcat:
		var all [][]needle
		for _, sub := range tree.Sub {
			all = append(all, required(sub)...)
		}
		return all[:min(len(all), maxChoices)]
	case syntax.OpAlternate:
		var all []needle
		for _, sub := range tree.Sub {
			n := best(required(sub))
			if len(n) == 0 || len(all)+len(n) > maxNeedles {
				return nil
			}
			all = append(all, n...)
		}
		return [][]needle{all}
	}
	return nil
}

// best is the set whose shortest needle is the longest; nil if there is none.
func best(sets [][]needle) (found []needle) {
	for _, set := range sets {
		if shortest(set) > shortest(found) {
			found = set
		}
	}
	return found
}

// shortest is how long the shortest needle is; 0 if there are none.
func shortest(needles []needle) int {
	if len(needles) == 0 {
		return 0
	}
	least := len(needles[0].text)
	for _, n := range needles {
		least = min(least, len(n.text))
	}
	return least
}

// needleOf is a literal's needle. Without case only ASCII letters that have no
// other than their two forms are taken: k and s also match K (U+212A) and
// ſ (U+017F).
func needleOf(lit *syntax.Regexp) (needle, bool) {
	if lit.Flags&syntax.FoldCase == 0 {
		text, ok := literal(lit.Rune)
		return newNeedle(text, false), ok && len(text) > 0
	}
	var best, run []rune
	for _, r := range append(slices.Clone(lit.Rune), utf8.RuneError) {
		r = unicode.ToLower(r)
		if r < utf8.RuneSelf && r != 'k' && r != 's' && r != '\n' {
			run = append(run, r)
			continue
		}
		if len(run) > len(best) {
			best = run
		}
		run = nil
	}
	return newNeedle([]byte(string(best)), true), len(best) > 0
}

// literals reports whether the tree is a literal or a choice of them, each of
// which is a needle as a whole.
func literals(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpCapture:
		return literals(tree.Sub[0])
	case syntax.OpAlternate:
		return !slices.ContainsFunc(tree.Sub, func(sub *syntax.Regexp) bool { return !literals(sub) })
	case syntax.OpLiteral:
		n, ok := needleOf(tree)
		return ok && len(n.text) == len(string(tree.Rune))
	}
	return false
}

// overLines rewrites a tree that is meant for one line into one for a text of
// lines: what stands for the start or end of the text stands for that of a
// line, and nothing but these crosses a newline. A line that the old tree
// matches, the new one matches at the same place.
func overLines(tree *syntax.Regexp) *syntax.Regexp {
	t := *tree
	switch t.Op {
	case syntax.OpBeginText:
		t.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		t.Op, t.Flags = syntax.OpEndLine, t.Flags&^syntax.WasDollar
	case syntax.OpAnyChar:
		t.Op = syntax.OpAnyCharNotNL
	case syntax.OpCharClass:
		t.Rune = withoutNewline(t.Rune)
	}
	t.Sub = make([]*syntax.Regexp, len(tree.Sub))
	for i, sub := range tree.Sub {
		t.Sub[i] = overLines(sub)
	}
	return &t
}

// withoutNewline takes \n out of the ranges of a class.
func withoutNewline(ranges []rune) []rune {
	var out []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		if lo > '\n' || hi < '\n' {
			out = append(out, lo, hi)
			continue
		}
		if lo < '\n' {
			out = append(out, lo, '\n'-1)
		}
		if hi > '\n' {
			out = append(out, '\n'+1, hi)
		}
	}
	return out
}
