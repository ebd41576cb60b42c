package gate

import (
	"strings"
	"testing"
)

func TestClaudeCode02Matcher(t *testing.T) {
	for _, c := range []struct {
		pattern, matches, others string
	}{
		{"", "Bash mcp__memory__read", ""},
		{"*", "Bash mcp__memory__read", ""},
		{"Bash", "Bash", "bash BashOutput"},
		{"Edit|Write", "Edit Write", "NotebookEdit TodoWrite MultiEdit"},
		{"Edit, Write", "Edit Write", "NotebookEdit"},
		{" Edit | Write ,, ", "Edit Write", ""},
		{"my-tool_2", "my-tool_2", "my-tool_22"},
		{"mcp__memory", "mcp__memory", "mcp__memory__read"},
		{"mcp__memory__.*", "mcp__memory__read x_mcp__memory__y", "mcp__memory"},
		{"Edit.*", "Edit EditX NotebookEdit", "Write"},
		{"^Edit$", "Edit", "NotebookEdit"},
		{"Notebook.*|Bash", "NotebookEdit Bash BashOutput", "Edit"},
		{",", "", "Bash"},
		{" ", "", "Bash"},
	} {
		m, err := CompileClaudeCodeMatcher(c.pattern)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		for _, name := range strings.Fields(c.matches) {
			if !m.Match(name) {
				t.Errorf("%q does not match %s", c.pattern, name)
			}
		}
		for _, name := range strings.Fields(c.others) {
			if m.Match(name) {
				t.Errorf("%q matches %s", c.pattern, name)
			}
		}
		if m.String() != c.pattern {
			t.Errorf("%q calls itself %q", c.pattern, m)
		}
	}
}

func TestClaudeCode02MatcherThatRE2CannotRun(t *testing.T) {
	for pattern, want := range map[string]string{
		"(?!Bash).*":        "negative look-ahead",
		`(\w)\1`:            "back-references",
		"Bash(":             "not a valid RE2 pattern",
		`[[:word:]]{1000}+`: "RE2",
		`(\pL{500}){2}`:     "too costly",
	} {
		if _, err := CompileClaudeCodeMatcher(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", pattern, err, want)
		}
	}
}
