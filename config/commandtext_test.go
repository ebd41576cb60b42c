package config

import (
	"strings"
	"testing"

	"stopgate/gate"
)

// The advice for a variable that a server does not keep does not lead to a secret
// in a command.
func TestAdviceForVariablesThatAreNotKept(t *testing.T) {
	_, findings := ReadAttached(gate.ClaudeCode, "a", []byte(`{"env":{"POLICY":"x","API_TOKEN":"y","INDEX":"https://u:p@h/"},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"python3 x.py"}]}]}}`))
	said := lines(findings)
	if len(said) != 2 || !strings.Contains(said[0]+said[1], "does not keep POLICY, as no hook's command names them: a script that reads one needs it in its command") ||
		!strings.Contains(said[0]+said[1], "does not keep API_TOKEN, INDEX, which look like credentials: where a script reads one, have the command read it from a file") {
		t.Errorf("got %q", said)
	}
}

// In every dialect a credential that stands in a command is warned of, once, and its
// value is not shown.
func TestACredentialInACommandOfEachDialect(t *testing.T) {
	const command = `API_TOKEN=s3cretvalue ./x.sh; API_TOKEN=s3cretother ./x.sh`
	for dialect, text := range map[gate.Dialect]string{
		gate.Azure:       `{"api_version":"azuresre.ai/v2","kind":"ExtendedAgent","metadata":{"name":"a"},"spec":{"hooks":{"Stop":[{"type":"command","script":"` + command + `"}]}}}`,
		gate.Antigravity: `{"g":{"pre_tool_execution":[{"matcher":"*","hooks":[{"type":"command","command":"` + command + `"}]}]}}`,
		gate.AXCode:      axEntry(`"event":"PreToolUse","command":"` + command + `"`),
		gate.ClaudeCode:  claudeHook("Stop", "", `{"type":"command","command":"`+command+`"}`),
	} {
		_, findings := ReadHooks(dialect, "x.json", []byte(text))
		said := strings.Join(lines(findings), "\n")
		if strings.Count(said, "looks like a credential") != 1 || strings.Contains(said, "s3cret") {
			t.Errorf("%s: got %s", dialect, said)
		}
	}
}

// What is wrong with a list of hosts is said once.
func TestAWrongListOfTheServerFileIsSaidOnce(t *testing.T) {
	for text, want := range map[string]string{
		`http_hooks: {allow: localhost}`:    `allow is the text "localhost", want a list`,
		`http_hooks: {allow: [1]}`:          `allow[0] is the number 1, want text`,
		`http_hooks: {allow: ["127.1"]}`:    `allow[0] is "127.1"`,
		`http: {hosts: "x", origins: [[]]}`: `hosts is the text "x", want a list`,
	} {
		_, err := LoadServer(serverFile(t, text), atHome, nil)
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("%s: got %v, want once %q", text, err, want)
		}
	}
}
