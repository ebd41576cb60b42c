package gate

import (
	"slices"
	"testing"
)

// Which names a caller of /v1/evaluate may send is what docs/dialects.md says: the
// canonical ones and the dialect's own, and no other host's.
func TestNamesOfNativeEvents(t *testing.T) {
	matcher := func(m Matcher, err error) Matcher {
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	of := map[Dialect]Matcher{
		ClaudeCode:  matcher(CompileClaudeCodeMatcher("Bash")),
		AXCode:      CompileAXCodeMatcher("bash"),
		Antigravity: matcher(CompileMatcher("code_execution")),
		Azure:       matcher(CompileMatcher("Bash")),
	}
	for _, tt := range []struct {
		tool string
		by   []Dialect
	}{
		{"Bash", []Dialect{ClaudeCode, AXCode, Antigravity, Azure}},
		{"bash", []Dialect{AXCode}}, {"code_execution", []Dialect{Antigravity}},
		{"run_shell_command", nil}, {"exec_command", nil},
	} {
		for d, m := range of {
			h := Hook{Name: "h", Dialect: d, Event: PreToolUse, Type: CommandHook, Matcher: m}
			want := slices.Contains(tt.by, d)
			if got := h.Concerns(&Event{Name: PreToolUse, Protocol: Native, Agent: "a", ToolName: tt.tool}); got != want {
				t.Errorf("%s is about %s: %v, want %v", d, tt.tool, got, want)
			}
		}
	}
}
