package config

import (
	"strings"
	"testing"

	"stopgate/gate"
)

func TestRulesAreRead(t *testing.T) {
	h := example(t, "dangerous-command-rule.yaml", gate.PreToolUse)
	if h.Type != gate.RuleHook || h.Rules == nil {
		t.Fatalf("%+v", h)
	}
	in := gate.Input{Hook: &h, Event: &gate.Event{ToolName: "Bash", ToolInput: []byte(`{"command":"sudo ls"}`)}}
	if v := h.Rules.Evaluate(t.Context(), in); v.Outcome != gate.Block || !strings.Contains(v.Reason, "rights") {
		t.Errorf("%+v", v)
	}
}

func TestRulesRefused(t *testing.T) {
	hook := func(event, rest string) string {
		return "kind: ExtendedAgent\napi_version: azuresre.ai/v2\nmetadata: {name: a}\nspec:\n  hooks:\n    " + event + ":\n      - type: rule\n        matcher: x\n        rules: " + rest + "\n"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"none", hook("PreToolUse", "[]"), "9:16: error: spec.hooks.PreToolUse[0].rules: rules is missing"},
		{"no list", hook("PreToolUse", "x"), "rules is the text \"x\", want a list"},
		{"no object", hook("PreToolUse", "[x]"), "rules[0] is the text \"x\", want an object"},
		{"no condition", hook("PreToolUse", "[{then: block}]"), "if is missing"},
		{"a bool", hook("PreToolUse", "[{if: true, then: block}]"), "if is true, want text"},
		{"no consequence", hook("PreToolUse", "[{if: turn > 1}]"), "then is missing"},
		{"another consequence", hook("PreToolUse", "[{if: turn > 1, then: deny}]"), "then is \"deny\", want one of block, ask, allow"},
		{"ask on Stop", hook("Stop", "[{if: turn > 1, then: ask, reason: x}]"), "a meaning on PreToolUse only"},
		{"a Stop without a reason", hook("Stop", "[{if: turn > 1, then: block, reason: ' '}]"), "counts as approved"},
		{"an unknown key", hook("PreToolUse", "[{if: turn > 1, then: block, resaon: x}]"), "key \"resaon\" is unknown; did you mean \"reason\"?"},
		{"a condition's fault", hook("PreToolUse", "\n          - if: turns > 1\n            then: block"), "10:17: error: spec.hooks.PreToolUse[0].rules[0].if: if: \"turns\" is not known"},
		{"a reason's fault", hook("PreToolUse", "\n          - if: turn > 1\n            then: block\n            reason: 'x {{ turns }}'"), "12:27: error: spec.hooks.PreToolUse[0].rules[0].reason: reason: \"turns\" is not known"},
		{"too many", hook("PreToolUse", "["+strings.Repeat("{if: turn > 1, then: block},", 51)+"]"), "rules has 51 cases, want at most 50"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, findings := ReadSpecFile("a.yaml", []byte(tt.text))
			if !gate.HasErrors(findings) || !strings.Contains(textOf(findings), tt.want) {
				t.Errorf("%s", textOf(findings))
			}
		})
	}
}
