package config

import (
	"encoding/json"
	"strings"
	"testing"

	"stopgate/gate"
)

// Of settings a server keeps what hooks need, and shows no secret of it.
func TestSettingsKeepAndShowNoSecrets(t *testing.T) {
	const settings = `{"apiKeyHelper":"s3cret","env":{"POLICY":"strict","OTHER":"s3cret","DEPLOY_TOKEN":"s3cret","LD_PRELOAD":"s3cret"},
"hooks":{"Stop":[{"hooks":[{"type":"command","command":"test \"$POLICY\" = strict || exit 2; : $DEPLOY_TOKEN"},
{"type":"http","url":"https://h.example/x","headers":{"Authorization":"Bearer h1dden","X-Key":"${KEY}"},"allowedEnvVars":["KEY"]}]}]}}`
	spec, findings := ReadAttached(gate.ClaudeCode, "a", []byte(settings))
	if spec == nil {
		t.Fatal(findings)
	}
	if text := string(spec.Document); strings.Contains(text, "s3cret") || !strings.Contains(text, `"POLICY":"strict"`) {
		t.Errorf("kept: %s", text)
	}
	if env := spec.Hooks[0].Env; len(env) != 1 || env["POLICY"] != "strict" {
		t.Errorf("the command finds %v", env)
	}
	said := ""
	for _, f := range findings {
		said += f.Path + ": " + f.Message + "\n"
	}
	for _, want := range []string{"env.DEPLOY_TOKEN looks like a credential", "does not keep OTHER", `"Authorization" has a credential written out`} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing says %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "s3cret") || strings.Contains(said, "h1dden") {
		t.Errorf("a finding quotes a secret:\n%s", said)
	}
	shown := HideSecrets(spec.Kind, spec.Document)
	if text := string(shown); strings.Contains(text, "strict\"}") || strings.Contains(text, "h1dden") || !strings.Contains(text, `"X-Key":"${KEY}"`) {
		t.Errorf("shown: %s", text)
	}
	if again, list := ReadAttached(gate.ClaudeCode, "a", shown); again != nil || !strings.Contains(list[0].Message, "[hidden]") {
		t.Errorf("what was shown is taken: %v", list)
	}
	if again, list := ReadShown(gate.ClaudeCode, "a", shown); again == nil || len(again.Hooks) != 2 {
		t.Errorf("what was shown is not read: %v", list)
	}
	old := HideSecrets(spec.Kind, json.RawMessage(settings)) // as an older version stored it
	if text := string(old); strings.Contains(text, "s3cret") || strings.Contains(text, "apiKeyHelper") {
		t.Errorf("shown of an older document: %s", text)
	}
	const plain = `{"g": {"pre_tool_execution": []}}`
	if got := string(HideSecrets(gate.Attached(gate.Antigravity), json.RawMessage(plain))); got != plain {
		t.Errorf("hooks without secrets: %s", got)
	}
	const headed = `{"b":{"headers":{"X":"v"}},"a":{}}`
	if got := string(HideSecrets(gate.Attached(gate.Antigravity), json.RawMessage(headed))); got != `{"b":{"headers":{"X":"[hidden]"}},"a":{}}` {
		t.Errorf("the order of groups, which fire in it: %s", got)
	}
}

// What the gate cannot evaluate costs no other hook, and lets nothing pass.
func TestPlayedSettingsAskOnceMore(t *testing.T) {
	const good = `{"type":"command","command":"good"}`
	for _, tt := range []struct{ name, groups, said string }{
		{"a rule", `{"hooks":[{"type":"command","if":"Write([a])","command":"odd"},` + good + `]}`, "every call of the tool"},
		{"a matcher", `{"matcher":"^(?!Read)","hooks":[{"type":"command","command":"odd"}]},{"hooks":[` + good + `]}`, "everything on the event"},
		{"a shell", `{"hooks":[{"type":"command","command":"x","shell":"powershell"},` + good + `,` + good + `]}`, "this hook is left out here"},
	} {
		settings := []byte(`{"env":{"API_TOKEN":"t","PATH":"/x"},"hooks":{"PreToolUse":[` + tt.groups + `]}}`)
		spec, env, findings := ReadPlayed(gate.ClaudeCode, "a", settings)
		if spec == nil || len(spec.Hooks) != 2 || gate.HasErrors(findings) {
			t.Errorf("%s: %v", tt.name, findings)
			continue
		}
		said := ""
		for _, f := range findings {
			said += f.Message + "\n"
		}
		if !strings.Contains(said, tt.said) || !strings.Contains(said, "env.PATH does not reach hooks") {
			t.Errorf("%s: said %s", tt.name, said)
		}
		if len(env) != 1 || env["API_TOKEN"] != "t" {
			t.Errorf("%s: variables %v", tt.name, env)
		}
		if served, _ := ReadAttached(gate.ClaudeCode, "a", settings); served != nil {
			t.Errorf("%s: a server takes it", tt.name)
		}
	}
	if spec, _, _ := ReadPlayed(gate.ClaudeCode, "a", []byte(`{"hooks":`)); spec != nil {
		t.Error("what is no JSON was read")
	}
	if spec, _, list := ReadPlayed(gate.ClaudeCode, "a", []byte(`{"hooks":{"Stop":[{"matcher":5,"hooks":[`+good+`]}]}}`)); spec == nil || len(spec.Hooks) > 0 || !gate.HasErrors(list) {
		t.Errorf("a file that Claude Code skips: %v", list)
	}
}
