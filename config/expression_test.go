package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// An expression's fault has the line and column where it stands in the document,
// however the document writes the text.
func TestWhenProblemsHaveTheirPlace(t *testing.T) {
	const head = "kind: GlobalHook\napi_version: azuresre.ai/v2\nmetadata: {name: h}\nspec:\n  eventType: Stop\n  hook:\n    prompt: x\n"
	for _, tt := range []struct{ name, file, text, want string }{
		{"plain", "h.yaml", head + "    when: turn > 1 && turns < 3\n", "8:23"},
		{"plain, over two lines", "h.yaml", head + "    when: turn > 1 &&\n        turns < 3\n", "9:9"},
		{"plain, behind letters of two bytes", "h.yaml", head + "    when: \"'é' == 'é' && turns < 3\"\n", "8:26"},
		{"single quotes", "h.yaml", head + "    when: 'agent == ''x'' && turns < 3'\n", "8:30"},
		{"double quotes", "h.yaml", head + "    when: \"agent == \\\"x\\\" && \\u0074urns < 3\"\n", "8:30"},
		{"double quotes, over two lines", "h.yaml", head + "    when: \"turn > 1 &&\n      turns < 3\"\n", "9:7"},
		{"a line continued", "h.yaml", head + "    when: \"turn > 1 && \\\n      turns < 3\"\n", "9:7"},
		{"a block", "h.yaml", head + "    when: |\n      turn > 1 &&\n        turns < 3\n", "10:9"},
		{"a block that is indented less behind", "h.yaml", head + "    when: |-\n\n      turn > 1\n      && turns < 3\n", "11:10"},
		{"a folded block", "h.yaml", head + "    when: >\n      turn > 1 &&\n      turns < 3\n", "10:7"},
		{"an anchor", "h.yaml", head + "    when: &w turns < 3\n", "8:14"},
		{"JSON", "h.json", "{\"type\":\"GlobalHook\",\"name\":\"h\",\"properties\":{\"eventType\":\"Stop\",\"hook\":{\"prompt\":\"x\",\n  \"when\": \"agent == \\\"\\ud83d\\ude00\\\" &&\\nturns < 3\"}}}", "2:42"},
		{"Windows line ends", "h.yaml", strings.ReplaceAll(head+"    when: |\n      turn > 1 &&\n      turns < 3\n", "\n", "\r\n"), "10:7"},
		{"the end of the text", "h.yaml", head + "    when: turn > \n", "8:17"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, findings := ReadSpecFile(tt.file, []byte(tt.text))
			for _, f := range findings {
				if f.Severity == gate.SeverityError && strings.HasSuffix(f.Path, "hook.when") {
					if got := fmt.Sprintf("%d:%d", f.Line, f.Column); got != tt.want {
						t.Errorf("at %s, want %s: %s", got, tt.want, f.Message)
					}
					return
				}
			}
			t.Errorf("no finding about when:\n%s", textOf(findings))
		})
	}
}

func TestWhenIsRead(t *testing.T) {
	spec, warnings, err := ReadSpec("application/yaml", []byte(`kind: ExtendedAgent
api_version: azuresre.ai/v2
metadata: {name: a}
spec:
  hooks:
    Stop:
      - {prompt: x, when: turn > 1}
    PreToolUse:
      - {type: command, command: "true", matcher: Bash, when: 'tool_name == "Bash"'}
      - {prompt: x, matcher: Bash}
`))
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	var got []string
	for _, h := range spec.Hooks {
		if h.When == nil {
			got = append(got, h.Name)
			continue
		}
		got = append(got, h.Name+": "+h.When.String())
	}
	if diff := cmp.Diff([]string{"Stop[0]: turn > 1", `PreToolUse[0]: tool_name == "Bash"`, "PreToolUse[1]"}, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(spec.Document), `"when":"turn > 1"`) {
		t.Errorf("it is not kept: %s", spec.Document)
	}
}

func TestWhenRefused(t *testing.T) {
	hook := func(when string) string {
		return "kind: ExtendedAgent\napi_version: azuresre.ai/v2\nmetadata: {name: a}\nspec: {hooks: {Stop: [{prompt: x, when: " + when + "}]}}\n"
	}
	many := "kind: ExtendedAgent\napi_version: azuresre.ai/v2\nmetadata: {name: a}\nspec: {hooks: {Stop: [" +
		strings.Repeat("{prompt: x, when: '"+strings.Repeat(" ", 7000)+"turn > 1'},", 60) + "]}}\n"
	for _, tt := range []struct{ name, text, want string }{
		{"no text", hook("true"), "when is true, want text"},
		{"an empty one", hook("''"), "when: is empty"},
		{"no condition", hook("turn"), "when: is of type int, want true or false"},
		{"a long one", hook("'" + strings.Repeat("true || ", 1<<17) + "true'"), "when: is 1048580 bytes long, want at most 8192"},
		{"many long ones", many, "all expressions together are longer than 262144 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := ReadSpec("application/yaml", []byte(tt.text))
			if gate.CodeOf(err) != gate.CodeValidation || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What is written in a document is found again in it, or its beginning is.
func FuzzWithin(f *testing.F) {
	for _, text := range []string{"a: |\n  x\n   y\n", "a: \"x\\u00e9\\\n  y\"\n", "a: 'x''y'\n", "a: >-\n\n x\n y\n\n z\n", "a: &b !!str x\n", "{\"a\":\"\\ud83d\\ude00x\"}"} {
		f.Add([]byte(text), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, nth int) {
		var found findings
		docs, err := readDocuments(text, false, &found)
		if err != nil || nth < 0 || nth > 1<<20 {
			return
		}
		lines := strings.Count(string(found.text), "\n") + 1
		for _, doc := range docs {
			for _, field := range doc.fields {
				if at := found.within(field.value, nth); at.line < field.value.line || at.line > lines || at.column < 1 {
					t.Errorf("%v of a value at %v", at, field.value.pos)
				}
			}
		}
	})
}
