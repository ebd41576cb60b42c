package expressions

import (
	"testing"

	"stopgate/gate"
)

// BenchmarkRule decides one call of a tool by four rules like those of
// examples/dangerous-command-rule.yaml: each of the commands is a first look at
// a new event, as every decision is.
func BenchmarkRule(b *testing.B) {
	var c Compiler
	var rules Rules
	for _, text := range []string{
		`shell(tool_input.command).exists(c, c.program == "rm" && c.args.exists(a, a == "--recursive" || a.matches("^-[a-zA-Z]*[rR]")) && c.args.exists(a, a == "--force" || a.matches("^-[a-zA-Z]*f")))`,
		`shell(tool_input.command).exists(c, c.program in ["sudo", "su", "doas"])`,
		`shell(tool_input.command).exists(c, c.program == "chmod" && c.args.exists(a, a.matches("^0?777$")))`,
		`shell(tool_input.command).exists(c, c.redirections.exists(r, r.operator.contains(">") && path.within(r.target, "/etc")))`,
	} {
		condition, problems := c.Condition(gate.PreToolUse, text)
		if problems != nil {
			b.Fatal(problems)
		}
		reason, problems := c.Template(gate.PreToolUse, "{{ tool_input.command }} is not allowed here.")
		if problems != nil {
			b.Fatal(problems)
		}
		rules = append(rules, Rule{If: condition, Then: gate.Block, Reason: reason})
	}
	for _, tt := range []struct {
		name, command string
		want          gate.Outcome
	}{
		{"block", `cd /srv/app && rm -rf "$BUILD" && make all`, gate.Block},
		{"allow", `cd /srv/app && go test ./...`, gate.Allow},
	} {
		in := call(tt.command)
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := rules.Evaluate(b.Context(), in); v.Outcome != tt.want {
					b.Fatalf("%+v", v)
				}
			}
		})
	}
}
