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

	// choices: a matching line holds a needle of each set, so that a search goes
	// by the one that is rarest in the text. Empty: none are known.
	choices [][]needle
	needles []needle // the choice as long as no text is known
	// enough: a line that holds a needle matches.
	enough bool
	// ordered: a line matches exactly if it holds these in their order.
	ordered [][]byte
	// run is held by every line that matches; nil where there are needles, or none
	// is known.
	run *byteRun
	// filter finds in a text of whole, valid UTF-8 lines where the first match
	// can begin, much faster than law. It is used where there are no needles, and no
	// run that tells lines apart; nil if RE2 has no program for it.
	filter *re2.Regexp
	// Neither can be interrupted, and in the worst case both take steps per byte
	// and instruction: so much text is a fraction of a second's work.
	lawBytes, filterBytes int
}

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
	if gate.PatternCost(tree) > gate.MaxPatternCost { // before RE2 sees it: it cannot be interrupted
		return bad("%q is too costly: shorten its repetitions", text)
	}
	if _, err := re2.Compile(text); err != nil {
		return bad("%q cannot run: %s", text, err)
	}
	tree = tree.Simplify()
	prog, err := syntax.Compile(tree)
	if err != nil || len(prog.Inst) > maxProgram {
		return bad("%q is too large: shorten its repetitions", text)
	}
	p := &pattern{lawBytes: 8 << 10, filterBytes: 64 << 10}
	if small := 100; len(prog.Inst) <= small {
		p.lawBytes, p.filterBytes = 64<<10, maxInPlace
	}
	if p.law, err = regexp.Compile(text); err != nil {
		return bad("%q cannot run: %s", text, explain(err))
	}
	p.all = !asserts(tree) && p.law.Match(nil)
	if p.all {
		return p, nil
	}
	if parts := ordered(tree); len(parts) > 0 {
		for _, part := range parts[:min(len(parts), maxChoices)] {
			p.choices = append(p.choices, []needle{newNeedle(part, false)})
		}
		p.needles = best(p.choices)
		if p.enough = len(parts) == 1; !p.enough {
			p.ordered = parts
		}
		return p, nil
	}
	if p.choices = required(tree); len(p.choices) > 0 {
		p.needles, p.enough = best(p.choices), literals(tree)
		return p, nil
	}
	if p.run = byteRunOf(tree); p.run != nil && p.run.whole {
		p.enough = true
		return p, nil
	}
	// Should RE2 refuse the rewritten pattern, every line is asked.
	p.filter, _ = re2.Compile(overLines(tree).String())
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
	switch {
	case p.all:
		return true
	case p.enough && p.run != nil:
		return p.run.index(line) >= 0
	case p.enough:
		return slices.ContainsFunc(p.needles, func(n needle) bool { return n.in(line) })
	case len(p.ordered) > 0:
		return holdsInOrder(line, p.ordered)
	case len(p.choices) > 1 && !p.holdsEach(line):
		return false
	case len(line) <= p.lawBytes:
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

// held is how long the longest is of what a matching line is known to hold, a needle
// or a run; 0 if nothing is known.
func (p *pattern) held() int {
	if p.run != nil {
		return p.run.length
	}
	longest := 0
	for _, n := range p.needles {
		longest = max(longest, len(n.text))
	}
	return longest
}

// holdsEach reports whether a line holds a needle of each set, which is asked
// much faster than the law is.
func (p *pattern) holdsEach(line []byte) bool {
	for _, set := range p.choices {
		if !slices.ContainsFunc(set, func(n needle) bool { return n.in(line) }) {
			return false
		}
	}
	return true
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
