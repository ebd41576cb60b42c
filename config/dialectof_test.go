package config

import (
	"testing"

	"stopgate/gate"
)

func TestDialectOf(t *testing.T) {
	for _, tt := range []struct {
		name, file, content string
		want                gate.Dialect
	}{
		{"ax-code by its name", "p/.ax-code/hooks.json", `not JSON`, gate.AXCode},
		{"antigravity by its name", ".agents/hooks.json", `{"hooks":[]}`, gate.Antigravity},
		{"claude-code by its name", "/p/.claude/settings.json", `{}`, gate.ClaudeCode},
		{"claude-code by its other name", ".claude/settings.local.json", `{}`, gate.ClaudeCode},
		{"ax-code by its list of hooks", "a.json", `{"hooks":[]}`, gate.AXCode},
		{"ax-code by its packs", "a.json", `{"packs":["x"]}`, gate.AXCode},
		{"claude-code by its events", "a.json", `{"model":"x","hooks":{"Stop":[]}}`, gate.ClaudeCode},
		{"antigravity by its events", "a.json", `{"g":{"enabled":true,"post_tool_execution":[]}}`, gate.Antigravity},
		{"an agent spec", "a.json", `{"name":"a","properties":{"hooks":{"Stop":[]}}}`, gate.Azure},
		{"a manifest", "a.json", `{"kind":"ExtendedAgent","spec":{"hooks":{}}}`, gate.Azure},
		{"a manifest with a stray list", "a.json", `{"kind":"ExtendedAgent","hooks":[]}`, gate.Azure},
		{"YAML", "a.yaml", `hooks: []`, gate.Azure},
		{"another hooks.json", "x/hooks.json", `[]`, gate.Azure},
		{"broken", "a.json", `{"hooks":[`, gate.Azure},
		{"nothing", "a.json", ``, gate.Azure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := DialectOf(tt.file, []byte(tt.content)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
