package install

import (
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
)

// Runs reports whether the host runs an entry for a tool of that name, by the
// matcher that stands beside the entry. A pattern that this program cannot read
// is taken to match nothing: nobody can say that the entry runs.
func (h Host) Runs(e Entry, tool string) bool {
	if e.Matcher == "" || e.Matcher == "*" {
		return true
	}
	if h.Name == axCode {
		return gate.CompileAXCodeMatcher(e.Matcher).Match(tool)
	}
	if h.Name == "claude-code" && !strings.ContainsFunc(e.Matcher, noNameRune) { // spec/claude-code.md 2
		names := strings.FieldsFunc(e.Matcher, func(r rune) bool { return r == '|' || r == ',' })
		return slices.ContainsFunc(names, func(name string) bool { return strings.TrimSpace(name) == tool })
	}
	pattern := e.Matcher
	if h.Name == "copilot" { // documented: the whole name, where others search in it
		pattern = `\A(?:` + pattern + `)\z`
	}
	matched, err := regexp.MatchString(pattern, tool)
	return err == nil && matched
}

// noNameRune: a rune that makes a matcher of Claude Code's a pattern.
func noNameRune(r rune) bool {
	name := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_- ,|", r)
	return !name
}
