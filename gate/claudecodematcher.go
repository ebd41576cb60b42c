package gate

import "strings"

// CompileClaudeCodeMatcher reads a matcher of Claude Code (spec/claude-code.md
// 2): "*" and the empty one match everything; one of only letters, digits, _, -,
// space, comma and | is a list of exact names, set apart by | or commas; any
// other is a regular expression that may match anywhere in a name. The error
// says what RE2 cannot run of it.
func CompileClaudeCodeMatcher(pattern string) (Matcher, error) {
	m := Matcher{source: pattern}
	if pattern == "" || pattern == "*" {
		m.all = true
		return m, nil
	}
	if names, ok := listedNames(pattern); ok {
		m.exact = names
		return m, nil
	}
	re, err := compilePattern(pattern, pattern)
	if err != nil {
		return Matcher{}, err
	}
	m.re = re
	return m, nil
}

// Names are the exact names that the matcher is a list of; nil: it is another
// kind.
func (m Matcher) Names() []string { return m.exact }

// listedNames are the names of a pattern that is nothing but a list of them.
func listedNames(pattern string) (names []string, ok bool) {
	names = []string{}
	for name := range strings.FieldsFuncSeq(pattern, func(r rune) bool { return r == '|' || r == ',' }) {
		for _, r := range name {
			switch {
			case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == ' ':
			default:
				return nil, false
			}
		}
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names, true
}
