package transcripts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wasilibs/go-re2"

	"stopgate/gate"
)

// Bounds of a pattern. The pattern comes from a model that has read a hostile
// transcript; a program of n instructions can cost n steps per byte.
const (
	maxPattern = 1000 // bytes
	maxProgram = 2500 // instructions; x{1000} has about 1,000
)

// pattern finds lines. The law is the standard library's: a line matches if
// law.Match does on the line alone, bytes that are not UTF-8 standing for one
// U+FFFD each. Everything else finds the lines that are worth asking.
type pattern struct {
	law *regexp.Regexp
	all bool // every line matches

	// needles: a matching line holds one of them. Empty: none are known.
	needles []needle
	// enough: a line that holds a needle matches.
	enough bool
	// ordered: a line matches exactly if it holds these in their order.
	ordered [][]byte
	// filter finds in a text of whole, valid UTF-8 lines where the first match
	// can begin, much faster than law. It is used where there are no needles;
	// nil if RE2 has no program for it. It cannot be interrupted, so it gets
	// filtered bytes at most.
	filter   *re2.Regexp
	filtered int
}

// How much of a text a filter is asked about at once. RE2 may fall back to
// steps per byte and instruction: 1 MiB for 100 instructions, or 64 KiB for
// 2,500, take a fraction of a second.
const (
	smallProgram   = 100
	filteredBySome = 64 << 10
)

// compile reads a pattern of RE2's syntax. The error is a [*gate.Failure] with
// BadOutput, whose message tells a model what to do instead.
func compile(text string) (*pattern, error) {
	bad := func(format string, args ...any) (*pattern, error) {
		return nil, &gate.Failure{Code: gate.BadOutput, Message: "the pattern " + fmt.Sprintf(format, args...)}
	}
	switch {
	case text == "":
		return bad("is empty")
	case len(text) > maxPattern:
		return bad("has %d bytes; at most %d are allowed", len(text), maxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return bad("%q cannot run: %s", text, explain(err))
	}
	if _, err := re2.Compile(text); err != nil {
		return bad("%q cannot run: %s", text, err)
	}
	tree = tree.Simplify()
	prog, err := syntax.Compile(tree)
	if err != nil || len(prog.Inst) > maxProgram {
		return bad("%q is too large: shorten its repetitions", text)
	}
	p := &pattern{}
	if p.law, err = regexp.Compile(text); err != nil {
		return bad("%q cannot run: %s", text, explain(err))
	}
	p.all = !asserts(tree) && p.law.Match(nil)
	if p.all {
		return p, nil
	}
	if parts := ordered(tree); len(parts) > 0 {
		p.needles = []needle{longest(parts)}
		if p.enough = len(parts) == 1; !p.enough {
			p.ordered = parts
		}
		return p, nil
	}
	if p.needles = required(tree); shortest(p.needles) >= minNeedle {
		p.enough = literals(tree)
		return p, nil
	}
	p.needles = nil
	// Should RE2 refuse the rewritten pattern, every line is asked.
	p.filter, _ = re2.Compile(overLines(tree).String())
	if p.filtered = filteredBySome; len(prog.Inst) <= smallProgram {
		p.filtered = maxInPlace
	}
	return p, nil
}

func explain(err error) string {
	e, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return err.Error()
	}
	switch {
	case slices.Contains([]string{"(?=", "(?!", "(?<=", "(?<!"}, e.Expr) || strings.HasPrefix(e.Expr, "(?<"):
		return "RE2 has no look-ahead and look-behind (" + e.Expr + ")"
	case e.Code == syntax.ErrInvalidEscape && len(e.Expr) == 2 && unicode.IsDigit(rune(e.Expr[1])):
		return "RE2 has no back-references (" + e.Expr + ")"
	}
	return e.Error()
}

// matches is the law, asked of one line. A long line is read rune by rune, so
// that ctx can end it.
func (p *pattern) matches(ctx context.Context, line []byte) bool {
	const long = 32 << 10
	switch {
	case p.all:
		return true
	case p.enough:
		return slices.ContainsFunc(p.needles, func(n needle) bool { return n.in(line) })
	case len(p.ordered) > 0:
		return holdsInOrder(line, p.ordered)
	case len(line) <= long:
		return p.law.Match(line)
	}
	return p.matchesReader(ctx, bytes.NewReader(line))
}

// matchesReader is the law, asked of a line that need not be in memory. When
// ctx ends there is no match.
func (p *pattern) matchesReader(ctx context.Context, line io.RuneReader) bool {
	return p.all || (p.law.MatchReader(&runes{ctx: ctx, r: line}) && ctx.Err() == nil)
}

// runes ends when ctx does.
type runes struct {
	ctx  context.Context
	r    io.RuneReader
	read int
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.read++; r.read%1024 == 0 && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return r.r.ReadRune()
}

func holdsInOrder(line []byte, parts [][]byte) bool {
	for _, part := range parts {
		i := bytes.Index(line, part)
		if i < 0 {
			return false
		}
		line = line[i+len(part):]
	}
	return true
}

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

func longest(literals [][]byte) needle {
	best := literals[0]
	for _, l := range literals {
		if len(l) > len(best) {
			best = l
		}
	}
	return newNeedle(best, false)
}

// minNeedle: shorter needles are found so often that RE2 is faster.
const minNeedle = 2

// maxNeedles bounds how often a text is scanned.
const maxNeedles = 16

// required is a set of needles of which every match of the tree holds one; nil
// if none is known.
func required(tree *syntax.Regexp) []needle {
	switch tree.Op {
	case syntax.OpLiteral:
		if n, ok := needleOf(tree); ok {
			return []needle{n}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return required(tree.Sub[0])
		}
	case syntax.OpConcat:
		var best []needle
		for _, sub := range tree.Sub {
			if n := required(sub); shortest(n) > shortest(best) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all []needle
		for _, sub := range tree.Sub {
			n := required(sub)
			if len(n) == 0 || len(all)+len(n) > maxNeedles {
				return nil
			}
			all = append(all, n...)
		}
		return all
	}
	return nil
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
