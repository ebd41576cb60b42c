package gate

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/wasilibs/go-re2"
)

// Matcher decides which tools a hook is about. The zero Matcher matches
// nothing (spec/azure.md 24). It is safe for concurrent use.
type Matcher struct {
	source string
	all    bool
	exact  []string // alternatives when the pattern holds only literal names
	starts []string // beginnings of names, of a dialect without patterns
	re     *re2.Regexp
}

// CompileMatcher reads an azure tool matcher: "*" matches every tool; any
// other pattern is RE2 and must match the whole name, case-sensitively; empty
// matches nothing (spec/azure.md 22, 24). The error names a look-around or a
// back-reference as such.
func CompileMatcher(pattern string) (Matcher, error) {
	m := Matcher{source: pattern}
	switch {
	case pattern == "":
		return m, nil
	case pattern == "*":
		m.all = true
		return m, nil
	case literalNames(pattern):
		m.exact = strings.Split(pattern, "|")
		return m, nil
	}
	end := `)\z`
	if quotes(pattern) {
		end = `\E` + end
	}
	re, err := compilePattern(pattern, `\A(?:`+pattern+end)
	if err != nil {
		return Matcher{}, err
	}
	m.re = re
	return m, nil
}

// quotes reports whether a pattern ends in a quotation, which needs no \E: what
// follows it would be quoted too.
func quotes(pattern string) bool {
	for {
		_, rest, escaped := strings.Cut(pattern, `\`)
		if !escaped || rest == "" {
			return false
		}
		if pattern = rest[1:]; rest[0] == 'Q' {
			_, after, closed := strings.Cut(pattern, `\E`)
			if !closed {
				return true
			}
			pattern = after
		}
	}
}

// compilePattern compiles a matcher in the form that is run, if RE2 can run the
// pattern that was written.
func compilePattern(pattern, run string) (*re2.Regexp, error) {
	// The standard library reads the same syntax and is silent about what it
	// refuses, where RE2 writes to standard error. It also sees the pattern by
	// itself: the wrapping would rescue a broken one, as "a)(b" is.
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("matcher %q is not a valid RE2 pattern: %s", pattern, explainPattern(pattern, err))
	}
	if PatternCost(tree) > MaxPatternCost {
		return nil, fmt.Errorf("matcher %q is too costly: shorten its repetitions", pattern)
	}
	re, err := re2.Compile(run)
	if err != nil {
		return nil, fmt.Errorf("matcher %q is not a valid RE2 pattern: %w", pattern, err)
	}
	return re, nil
}

// Match reports whether the hook is about a tool of this name.
func (m Matcher) Match(tool string) bool {
	if tool == "" {
		return m.all
	}
	switch {
	case m.all:
		return true
	case m.re != nil:
		return m.re.MatchString(tool)
	}
	return slices.Contains(m.exact, tool) ||
		slices.ContainsFunc(m.starts, func(start string) bool { return strings.HasPrefix(tool, start) })
}

// String is the pattern as it was declared.
func (m Matcher) String() string { return m.source }

// literalNames reports whether the pattern is only names joined by "|", which
// need no automaton.
func literalNames(pattern string) bool {
	for _, r := range pattern {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '|':
		default:
			return false
		}
	}
	return !strings.Contains("|"+pattern+"|", "||")
}

// explainPattern names what RE2 leaves out on purpose; the parser's own words
// serve for the rest.
func explainPattern(pattern string, err error) string {
	for _, look := range []struct{ text, name string }{
		{"(?=", "look-ahead (?=…)"}, {"(?!", "negative look-ahead (?!…)"},
		{"(?<=", "look-behind (?<=…)"}, {"(?<!", "negative look-behind (?<!…)"},
		{"(?>", "an atomic group (?>…)"},
	} {
		if strings.Contains(pattern, look.text) {
			return "RE2 has no " + look.name
		}
	}
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] == '\\' {
			if c := pattern[i+1]; c >= '1' && c <= '9' || c == 'k' {
				return "RE2 has no back-references (" + pattern[i:i+2] + ")"
			}
			i++
		}
	}
	return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}
