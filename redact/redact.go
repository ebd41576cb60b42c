// Package redact takes secrets out of what is stored and shown: keys, tokens,
// e-mail addresses, card numbers, and what the operator's own patterns find. Each
// hit becomes "[redacted:NAME]".
//
// What decides sees the original; what is kept does not: [Redactor.Store] stands
// before a store, [Redactor.Handler] before a log, [Redactor.Reader] before a text
// on its way out, and [Redactor.Evaluator] before a judge, if it is not to see
// secrets either. [Masks] are for conversations, if nobody is: they are as long as
// what they hide, since conversations grow by offsets.
//
// Redacting takes time linear in the text and memory for one window of it, and
// doing it again changes nothing. It finds what stands there in plain: a secret in
// base64, or cut into two, passes.
package redact

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"github.com/wasilibs/go-re2"

	"stopgate/gate"
)

// Pattern is one of the operator's own: Name in what takes a hit's place, and an
// expression in RE2's syntax. Where it has a group, the first group's text is the
// secret, else all that it matches.
type Pattern struct{ Name, Expr string }

// Redactor knows secrets by patterns. It is safe for concurrent use.
type Redactor struct {
	finders []finder
	hints   hints
}

// finder finds the secrets of one kind.
type finder struct {
	name string
	find func(text string, found []span) []span
	// hint is its bit of the hints; 0: it has none, and could find something anywhere.
	hint uint64
}

// span is a secret's place in a text.
type span struct {
	from, to int
	name     string
	// begin and end are of all that it is known by, as the word before it.
	begin, end int
}

func spanOf(name string, from, to int) span { return span{from, to, name, from, to} }

// New makes a redactor of built-in patterns by their names, of own ones, and of
// secrets that are known as they are: those of at least [ShortestSecret] bytes, which
// are found whatever patterns there are, and become "[redacted:server_secret]". An
// error names the pattern that is wrong.
func New(builtIn []string, own []Pattern, known []string) (*Redactor, error) {
	r := &Redactor{}
	for _, name := range builtIn {
		if !slices.Contains(BuiltIn(), name) {
			return nil, fmt.Errorf("redaction has no built-in pattern %q, want some of %s", name, strings.Join(BuiltIn(), ", "))
		}
	}
	for _, f := range builtIns {
		if slices.Contains(builtIn, f.name) {
			r.add(f.finder(), f.allHints())
		}
	}
	if len(own) > maxOwn {
		return nil, fmt.Errorf("redaction has %d patterns of its own, want at most %d", len(own), maxOwn)
	}
	for _, p := range own {
		if err := p.Check(); err != nil {
			return nil, err
		}
		r.add(finder{name: p.Name, find: matches(p.Name, p.Expr, nil)}, nil)
	}
	if known = long(known); len(known) > 0 {
		r.add(finder{name: serverSecret, find: literals(known)}, known)
	}
	return r, nil
}

// add takes in a finder, which needs one of the hints, if there are any.
func (r *Redactor) add(f finder, hints []string) {
	if len(hints) > 0 {
		f.hint = r.hints.add(hints)
	}
	r.finders = append(r.finders, f)
}

// maxOwn patterns, as each is tried on every text.
const maxOwn = 50

// ShortestSecret is the fewest bytes of a known secret that is taken out: shorter
// ones are words, as the "none" that a local model's server wants for a key.
const ShortestSecret = 8

const serverSecret = "server_secret"

func long(secrets []string) []string {
	return slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return len(s) < ShortestSecret || len(s) > overlap })
}

// literals finds texts as they are.
func literals(secrets []string) func(string, []span) []span {
	return func(text string, found []span) []span {
		for _, secret := range secrets {
			for at := 0; ; {
				i := strings.Index(text[at:], secret)
				if i < 0 {
					break
				}
				found = append(found, spanOf(serverSecret, at+i, at+i+len(secret)))
				at += i + len(secret)
			}
		}
		return found
	}
}

// names are what may stand in a mark.
var names = asked(`\A[a-z][a-z0-9_]{0,39}\z`)

// Check says what is wrong with the pattern; nil: nothing.
func (p Pattern) Check() error {
	if !names().MatchString(p.Name) {
		return fmt.Errorf("redaction pattern %.60q: a name has small letters, digits and _, at most 40, and begins with a letter", p.Name)
	}
	tree, err := syntax.Parse(p.Expr, syntax.Perl)
	if err != nil {
		return fmt.Errorf("redaction pattern %q: %w", p.Name, err)
	}
	if gate.PatternCost(tree) > gate.MaxPatternCost {
		return fmt.Errorf("redaction pattern %q is too large: repeat less, or smaller classes of characters", p.Name)
	}
	if _, err := re2.Compile(p.Expr); err != nil {
		return fmt.Errorf("redaction pattern %q: %w", p.Name, err)
	}
	if regexp.MustCompile(p.Expr).MatchString("") {
		return fmt.Errorf("redaction pattern %q matches the empty text", p.Name)
	}
	return nil
}

// short is up to how many bytes the standard library's engine, as linear, is the
// faster one: a call of RE2 alone takes longer than it does.
const short = 4 << 10

// mostHits is how many secrets of a kind are told apart in one window; one with
// more of them goes whole.
const mostHits = 4096

// matches finds what the pattern matches, or its first group, where that is a secret;
// without is it always is.
func matches(name, expr string, is func(secret string) bool) func(string, []span) []span {
	small := asked(expr)
	large := sync.OnceValue(func() *re2.Regexp { return re2.MustCompile(expr) })
	return func(text string, found []span) []span {
		var hits [][]int
		if len(text) <= short {
			hits = small().FindAllStringSubmatchIndex(text, mostHits+1)
		} else {
			hits = large().FindAllStringSubmatchIndex(text, mostHits+1)
		}
		if len(hits) > mostHits {
			return append(found, spanOf(name, 0, len(text)))
		}
		for _, at := range hits {
			from, to := at[0], at[1]
			if len(at) > 2 {
				from, to = at[2], at[3]
			}
			if from < to && (is == nil || is(text[from:to])) {
				found = append(found, span{from, to, name, at[0], at[1]})
			}
		}
		return found
	}
}

// window is how much of a text is looked at together, and overlap how much of it
// once more with what follows: a secret is known if it is no longer than overlap.
const (
	window  = 64 << 10
	overlap = 16 << 10
)

// Text is the text with a mark in each secret's place; the text itself where there
// is none.
func (r *Redactor) Text(text string) string {
	if len(text) <= window {
		return r.settled(text)
	}
	var out strings.Builder
	_, _ = io.Copy(&out, r.Reader(strings.NewReader(text))) // neither side fails
	return out.String()
}

// passes is how often at most a text is looked at: a mark in a secret's place may
// make another's neighbour a hit, as where a pattern asks for a word's beginning.
const passes = 3

func (r *Redactor) settled(text string) string {
	for range passes {
		spans := r.spans(text)
		if len(spans) == 0 {
			break
		}
		text = replaced(text, spans)
	}
	return text
}

// spans are the secrets of one window, in order and apart from each other; marks
// that stand there already are none.
func (r *Redactor) spans(text string) []span {
	var found []span
	could := r.hints.in(text)
	for _, f := range r.finders {
		if f.hint == 0 || could&f.hint != 0 {
			found = f.find(text, found)
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	merged := found[:1]
	for _, s := range found[1:] {
		if last := &merged[len(merged)-1]; s.from < last.to {
			last.to, last.begin, last.end = max(last.to, s.to), min(last.begin, s.begin), max(last.end, s.end)
		} else {
			merged = append(merged, s)
		}
	}
	return outside(merged, marks().FindAllStringIndex(text, -1))
}

// Marked reports whether secrets were taken out of a text, of JSON too; or whether it
// came with a mark, which nobody can tell apart.
func Marked(text []byte) bool {
	return bytes.Contains(text, []byte("[redacted:")) && marks().Match(text)
}

var marks = asked(`\[redacted:[a-z][a-z0-9_]{0,39}\]`)

// outside are the parts of the spans, in order, that lie in none of the marks().
func outside(spans []span, marks [][]int) []span {
	if len(marks) == 0 {
		return spans
	}
	var out []span
	for _, s := range spans {
		for len(marks) > 0 && marks[0][1] <= s.from {
			marks = marks[1:]
		}
		for _, m := range marks {
			if m[0] >= s.to {
				break
			}
			if s.from < m[0] {
				out = append(out, span{s.from, m[0], s.name, s.begin, s.end})
			}
			s.from = m[1]
		}
		if s.from < s.to {
			out = append(out, s)
		}
	}
	return out
}

func replaced(text string, spans []span) string {
	var out strings.Builder
	at := 0
	for _, s := range spans {
		out.WriteString(text[at:s.from])
		out.WriteString("[redacted:" + s.name + "]")
		at = s.to
	}
	out.WriteString(text[at:])
	return out.String()
}
