package gate

import (
	"regexp/syntax"
	"strings"
)

// maxAlternatives of one matcher are told apart; beyond it, the matcher counts as
// one.
const maxAlternatives = 200

// Alternatives are the matchers that a pattern joins by "|", at its top and in
// groups that are not repeated, each as it would stand alone: together they match
// what m matches. A pattern that joins nothing, or that is not told apart, is its
// own only alternative.
func (m Matcher) Alternatives() []Matcher {
	whole := []Matcher{m}
	if m.all || m.source == "" {
		return whole
	}
	if m.re == nil {
		var alone []Matcher
		for _, name := range m.exact {
			alone = append(alone, Matcher{source: name, exact: []string{name}})
		}
		for _, start := range m.starts {
			alone = append(alone, Matcher{source: start + "*", starts: []string{start}})
		}
		if len(alone) == 0 {
			return whole
		}
		return alone
	}
	patterns := alternatives(m.source)
	if len(patterns) > maxAlternatives {
		return whole
	}
	var alone []Matcher
	for _, p := range patterns {
		a, err := CompileMatcher(p)
		if err != nil {
			return whole
		}
		alone = append(alone, a)
	}
	return alone
}

// alternatives writes a pattern out: `a(b|c)` is `a(b)` and `a(c)`.
func alternatives(pattern string) []string {
	flags := leadingFlags(pattern)
	rest := pattern[len(flags):]
	if strings.Contains(rest, "(?") && !strings.Contains(rest, "(?:") {
		return []string{pattern} // flags that begin in the middle, and named groups
	}
	var all []string
	for _, part := range splitTop(rest) {
		all = append(all, inGroups(flags, part)...)
		if len(all) > maxAlternatives {
			return []string{pattern}
		}
	}
	return all
}

// inGroups writes out the first group of a part that joins something.
func inGroups(flags, part string) []string {
	for i := 0; i < len(part); i = next(part, i) {
		if part[i] != '(' {
			continue
		}
		end := closing(part, i)
		inside := i + 1
		if strings.HasPrefix(part[i:], "(?:") {
			inside = i + 3
		}
		if end < 0 || end+1 < len(part) && strings.IndexByte("*+?{", part[end+1]) >= 0 {
			return []string{flags + part}
		}
		choices := splitTop(part[inside:end])
		if len(choices) == 1 {
			continue
		}
		var all []string
		for _, choice := range choices {
			all = append(all, inGroups(flags, part[:inside]+choice+part[end:])...)
			if len(all) > maxAlternatives {
				break
			}
		}
		return all
	}
	return []string{flags + part}
}

// leadingFlags is a `(?i)` that holds for the whole pattern.
func leadingFlags(pattern string) string {
	if !strings.HasPrefix(pattern, "(?") {
		return ""
	}
	end := strings.IndexByte(pattern, ')')
	if end < 0 || strings.Trim(pattern[2:end], "imsU-") != "" {
		return ""
	}
	return pattern[:end+1]
}

// splitTop parts a pattern at each "|" that stands in no group and no class.
func splitTop(pattern string) (parts []string) {
	from, depth := 0, 0
	for i := 0; i < len(pattern); i = next(pattern, i) {
		switch pattern[i] {
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth == 0 {
				parts = append(parts, pattern[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, pattern[from:])
}

// closing is where the group ends that begins at i; -1: nowhere.
func closing(pattern string, i int) int {
	for depth := 0; i < len(pattern); i = next(pattern, i) {
		switch pattern[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// next is where a pattern goes on after the byte, the escape or the class at i.
func next(pattern string, i int) int {
	switch {
	case strings.HasPrefix(pattern[i:], `\Q`):
		if end := strings.Index(pattern[i:], `\E`); end >= 0 {
			return i + end + 2
		}
		return len(pattern)
	case pattern[i] == '\\':
		return i + 2
	case pattern[i] != '[':
		return i + 1
	}
	j := i + 1
	if j < len(pattern) && pattern[j] == '^' {
		j++
	}
	for first := j; j < len(pattern); j++ {
		switch {
		case pattern[j] == '\\':
			j++
		case strings.HasPrefix(pattern[j:], "[:"):
			if end := strings.Index(pattern[j:], ":]"); end > 0 {
				j += end + 1
			}
		case pattern[j] == ']' && j > first:
			return j + 1
		}
	}
	return len(pattern)
}

// Example is a tool's name that the matcher matches; empty where none is found.
func (m Matcher) Example() string {
	name := ""
	switch {
	case m.all:
		name = "AnyTool"
	case len(m.exact) > 0:
		name = m.exact[0]
	case len(m.starts) > 0:
		name = m.starts[0]
	case m.re != nil:
		tree, err := syntax.Parse(m.source, syntax.Perl)
		if err != nil {
			return ""
		}
		var b strings.Builder
		writeExample(&b, tree)
		name = b.String()
	}
	if !m.Match(name) {
		return ""
	}
	return name
}

// exampleBytes is enough of a name: repetitions of repetitions grow.
const exampleBytes = 200

// writeExample writes the shortest text that a pattern matches, near enough.
func writeExample(b *strings.Builder, re *syntax.Regexp) {
	if b.Len() > exampleBytes {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if re.Flags&syntax.FoldCase != 0 {
			text = strings.ToLower(text)
		}
		b.WriteString(text)
	case syntax.OpCharClass:
		for _, wish := range "axAX0_-" {
			for i := 0; i+1 < len(re.Rune); i += 2 {
				if re.Rune[i] <= wish && wish <= re.Rune[i+1] {
					b.WriteRune(wish)
					return
				}
			}
		}
		if len(re.Rune) > 0 {
			b.WriteRune(re.Rune[0])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			writeExample(b, sub)
		}
	case syntax.OpAlternate, syntax.OpPlus:
		writeExample(b, re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			writeExample(b, re.Sub[0])
		}
	}
}
