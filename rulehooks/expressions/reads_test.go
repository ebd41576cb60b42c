package expressions

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

func TestReads(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		turn       bool
		literals   []string
	}{
		{"a constant", "true", false, nil},
		{"a variable", "turn > 1", true, nil},
		{"another one", "final_output == 'a'", false, []string{"a"}},
		{"deep inside", `tools_used.exists(u, u.matches("^B") && {"k": turn}["k"] == 1)`, true, []string{"^B", "k"}},
		{"a name that a loop binds counts, to be careful", "tools_used.exists(turn, turn == 'x' || turn == 'x')", true, []string{"x"}},
		{"a text and a member are none", `labels.turn == "turn"`, false, []string{"turn"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c Compiler
			condition, problems := c.Condition(gate.Stop, tt.text)
			if problems != nil {
				t.Fatal(problems)
			}
			if got := condition.Reads("turn", "max_turns"); got != tt.turn {
				t.Errorf("reads: %v, want %v", got, tt.turn)
			}
			if diff := cmp.Diff(tt.literals, condition.Literals()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMembers(t *testing.T) {
	var c Compiler
	condition, problems := c.Condition(gate.PreToolUse, `has(tool_input.path) && tool_input["other"] == tool_input.path || labels.x == tool_input.deep.name || tool_input[tool_name] == 1 ||
		tool_input.?may.orValue("x") == "x" || tool_input[?"be"].hasValue()`)
	if problems != nil {
		t.Fatal(problems)
	}
	if diff := cmp.Diff([]string{"path", "other", "deep", "may", "be"}, condition.Members("tool_input")); diff != "" {
		t.Error(diff)
	}
}
