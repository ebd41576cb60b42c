package expressions

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// rules compiles cases that are written as "then: if: reason".
func rules(t testing.TB, cases ...string) Rules {
	t.Helper()
	var c Compiler
	var all Rules
	for _, text := range cases {
		p := strings.SplitN(text, ": ", 3)
		condition, problems := c.Condition(gate.PreToolUse, p[1])
		reason, more := c.Template(gate.PreToolUse, p[2])
		if problems != nil || more != nil {
			t.Fatal(text, problems, more)
		}
		all = append(all, Rule{If: condition, Then: gate.Outcome(p[0]), Reason: reason})
	}
	return all
}

func TestRules(t *testing.T) {
	const sudo = `shell(tool_input.command).exists(c, c.program == "sudo")`
	const lost = `tool_input.path == "x"` // there is no path
	for _, tt := range []struct {
		name  string
		rules []string
		want  gate.Outcome
		says  string
	}{
		{"none holds", []string{`block: ` + sudo + `: no`}, gate.Allow, ""},
		{"one holds", []string{`block: tool_input.command.startsWith("git"): {{ tool_name }} {{ turn }} {{ tool_input.command }}`}, gate.Block, "Bash 3 git push"},
		{"the first that holds", []string{`block: ` + sudo + `: no`, `ask: true: may it?`, `block: true: no`}, gate.Ask, "may it?"},
		{"allow before block", []string{`allow: true: `, `block: true: no`}, gate.Allow, ""},
		{"an open one, then the same", []string{`block: ` + lost + `: first`, `block: true: second`}, gate.Block, "second"},
		{"an open one, then another", []string{`block: ` + lost + `: first`, `ask: true: second`}, gate.NoVerdict, "no such key"},
		{"an open one, then nothing", []string{`block: ` + lost + `: first`}, gate.NoVerdict, "no such key"},
		{"an open allow, then block", []string{`allow: ` + lost + `: `, `block: true: no`}, gate.NoVerdict, "no such key"},
		{"an open allow, then nothing", []string{`allow: ` + lost + `: `}, gate.Allow, ""},
		{"an open one behind what holds", []string{`block: true: no`, `block: ` + lost + `: x`}, gate.Block, "no"},
		{"a block whose words are not known blocks", []string{`block: true: not {{ tool_input.path }}`}, gate.Block, "not [not known: tool_input.path: no such key: path]"},
		{"words that are none", []string{`block: true: {{ dyn(tool_input) }}`}, gate.Block, "[not a text]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := call("git push")
			in.Event.Turn = 3
			v := rules(t, tt.rules...).Evaluate(t.Context(), in)
			said := v.Reason
			if v.Failure != nil {
				said = v.Failure.Message
			}
			if v.Outcome != tt.want || tt.want != gate.NoVerdict && !strings.HasSuffix(said, tt.says) || !strings.Contains(said, tt.says) {
				t.Errorf("%s %q %+v", v.Outcome, v.Reason, v.Failure)
			}
		})
	}
}

func TestRulesEndWithTheirTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := rules(t, `block: tool_input.command == "x": no`).Evaluate(ctx, call("ls"))
	if v.Outcome != gate.NoVerdict || v.Failure.Code != gate.Timeout {
		t.Errorf("%+v", v)
	}
}

func TestTemplateProblems(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Problem
	}{
		{"é {{ turn }} {{ turns }}", Problem{16, `"turns" is not known; on Stop there are event, agent, session, turn, max_turns, labels, user_prompt, tools_used, final_output; did you mean "turn"?`}},
		{"x {{ turn", Problem{2, "{{ is not closed by }}"}},
		{"{{ tools_used }}", Problem{2, "is of type list(string), want a text, a number or a bool: of a list say which of it, or join it"}},
		{"{{ }}", Problem{2, "is empty"}},
		{strings.Repeat("{{turn}}", 21), Problem{160, "has more than 20 places for expressions"}},
		{strings.Repeat("x", MaxTemplateBytes+1), Problem{0, "is 4097 bytes long, want at most 4096"}},
	} {
		var c Compiler
		_, problems := c.Template(gate.Stop, tt.text)
		if diff := cmp.Diff([]Problem{tt.want}, problems); diff != "" {
			t.Errorf("%.30s: %s", tt.text, diff)
		}
	}
}

// Twenty places of the longest text are no more than a reason may be, or little.
func TestTemplatesDoNotExplode(t *testing.T) {
	var c Compiler
	template, problems := c.Template(gate.PreToolUse, strings.Repeat("{{ tool_input.command }}", 20))
	if problems != nil {
		t.Fatal(problems)
	}
	in := call(strings.Repeat("é", 1<<20))
	if text := template.render(t.Context(), &asked{Context: t.Context(), in: in}); len(text) > 20*(2*maxPutRunes+3) {
		t.Errorf("%d bytes", len(text))
	}
}
