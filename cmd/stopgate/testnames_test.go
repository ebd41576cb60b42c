package main

import (
	"bytes"
	"path/filepath"
	"testing"
)

// An agent's hook and one of the agent level may have one name: that one of them does
// what is wanted says nothing of the other.
func TestTestTellsHooksOfOneNameApart(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata: {name: a}\nspec:\n  hooks:\n    PreToolUse:\n      - {name: guard, type: rule, matcher: Bash, rules: [{if: 'true', then: block, reason: x}]}\n")
	write(t, filepath.Join(dir, "g.yaml"), "api_version: azuresre.ai/v2\nkind: GlobalHook\nmetadata: {name: guard}\nspec:\n  eventType: PreToolUse\n  activationMode: always\n  hook: {type: rule, matcher: Bash, rules: [{if: 'false', then: block, reason: x}]}\n")
	write(t, filepath.Join(dir, "a.test.yaml"), "spec: [a.yaml, g.yaml]\ntests:\n  - name: guard blocks\n    event: {hook_event_name: PreToolUse, tool_name: Bash, tool_input: {command: x}}\n    want: {decision: block, hooks: {guard: block}}\n")
	var out, errs bytes.Buffer
	p := process{ctx: t.Context(), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }}
	if code := run(p, []string{"test", "--sandbox", "off", "-v", dir}); code == exitDone {
		t.Errorf("passes: %s%s", &out, &errs)
	}
}
