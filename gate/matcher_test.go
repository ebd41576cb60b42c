package gate

import (
	"strings"
	"testing"
)

func TestAzure24Matcher(t *testing.T) {
	for _, c := range []struct {
		pattern, tool string
		want          bool
	}{
		{"*", "Bash", true},
		{"*", "anything at all", true},
		{"Bash", "Bash", true},
		{"Bash", "bash", false},
		{"Bash", "BashX", false},
		{"Bash", "XBash", false},
		{"Bash|ExecuteShellCommand", "Bash", true},
		{"Bash|ExecuteShellCommand", "ExecuteShellCommand", true},
		{"Bash|ExecuteShellCommand", "ExecuteShellCommands", false},
		{"Bash|ExecuteShell.*", "XBash", false},
		{"Bash|ExecuteShell.*", "BashX", false},
		{"^Run.*$", "RunCommand", true},
		{"^Run.*$", "DryRun", false},
		{"Bash", "Bash\n", false},
		{"^Bas.$", "Bash\n", false},
		{"Bas[h]", "Bash\n", false},
		{"", "Bash", false},
		{"", "", false},
		{"mcp__srv__.*", "mcp__srv__do", true}, // fault context-04, fault G54
		{"mcp__linear__create_issue", "mcp__plugin_linear_linear__create_issue", false}, // fault match-04
		{"(?i)bash", "BASH", true},
		{"Bash|", "Bash", true},
		{"a-b", "a-b", true},
		{`\Qread_file`, "read_file", true},
		{`\Qread_file`, "read_files", false},
		{`\Qa.b\E|\Qc.d`, "c.d", true},
		{`\Qa.b\E|\Qc.d`, "c.de", false},
		{`\Qa.b\E.`, "a.bc", true},
		{`\\Qx`, `\Qx`, true},
		{`\Qa\`, `a\`, true},
	} {
		m, err := CompileMatcher(c.pattern)
		if err != nil {
			t.Errorf("CompileMatcher(%q): %v", c.pattern, err)
			continue
		}
		if got := m.Match(c.tool); got != c.want {
			t.Errorf("matcher %q on %q = %v, want %v", c.pattern, c.tool, got, c.want)
		}
	}
	if (Matcher{}).Match("Bash") {
		t.Error("the zero Matcher matches")
	}
}

func TestAzure22MatcherErrorsNameWhatRE2Lacks(t *testing.T) {
	for pattern, want := range map[string]string{
		"(?=x)a":        "look-ahead",
		"(?!x)a":        "negative look-ahead",
		"(?<=x)a":       "look-behind",
		"(?<!x)a":       "negative look-behind",
		`(a)\1`:         "back-reference",
		`(?P<n>a)\k<n>`: "back-reference",
		"(?>a)":         "atomic",
		"*_file":        "missing argument to repetition operator",
		"a(":            "missing closing )",
		"a)(b":          "unexpected )",
		"[":             "missing closing ]",
	} {
		_, err := CompileMatcher(pattern)
		if err == nil {
			t.Errorf("CompileMatcher(%q): no error", pattern)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "RE2") {
			t.Errorf("CompileMatcher(%q): %v, want it to name %q", pattern, err, want)
		}
	}
}

func TestCostlyPatterns(t *testing.T) {
	for _, p := range []string{`\pL{600}`, `[\pL\pN]{990}x`, `(\pL{1,30}){30}z`, `[^\n]{500}[^\n]{500}$`, `(?i)\pL{90}`} {
		if _, err := CompileMatcher(p); err == nil || !strings.Contains(err.Error(), "too costly") {
			t.Errorf("%s: %v, want it refused for its cost", p, err)
		}
	}
	for _, p := range []string{`mcp__.*__(read|write)_\w+`, `(?i).*(deploy|delete|destroy|drop|purge|rollback).*`, `[A-Za-z_]{1,64}`, `\pL+`, `[^ ]{1,100}`} {
		if _, err := CompileMatcher(p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}
