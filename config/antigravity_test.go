package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// antigravityHooks reads a hooks.json; the findings are one a line, with their
// places.
func antigravityHooks(t testing.TB, text string) (*gate.Spec, string) {
	t.Helper()
	spec, list := ReadAttached(gate.Antigravity, "a", []byte(text))
	if (spec == nil) != gate.HasErrors(list) {
		t.Fatalf("spec %v with the findings %v", spec, list)
	}
	var lines strings.Builder
	for _, f := range list {
		fmt.Fprintln(&lines, f)
	}
	return spec, lines.String()
}

// handler is a hooks.json whose one handler has these fields.
func handler(fields string) string {
	return `{"g":{"pre_tool_execution":[{"matcher":"*","hooks":[{` + fields + `}]}]}}`
}

// matching is a hooks.json whose one handler is about what a pattern matches.
func matching(pattern string) string {
	return `{"g":{"pre_tool_execution":[{"matcher":` + text(pattern) + `,"hooks":[{"type":"command","command":"true"}]}]}}`
}

func TestAntigravity01Groups(t *testing.T) {
	const file = `{
	"z": {"enabled": true, "post_tool_execution": [{"matcher": ".*", "hooks": [{"type": "command", "command": "audit"}]}],
	      "pre_tool_execution": [
	        {"matcher": "code_execution", "hooks": [{"type": "command", "command": "one", "timeout": 5}, {"type": "command", "command": "two"}]},
	        {"matcher": "read_file", "hooks": [{"type": "http", "url": "https://h.example/x", "headers": {"X-B": "1", "X-A": "2"}}]}]},
	"off": {"enabled": false, "pre_tool_execution": [{"matcher": "*", "hooks": [{"type": "command", "command": "never"}]}]},
	"a": {"pre_tool_execution": [{"matcher": "*", "hooks": [{"type": "command", "command": "last"}]}]}}`
	spec, found := antigravityHooks(t, file)
	if found != "" {
		t.Errorf("findings:\n%s", found)
	}
	if spec.Kind != gate.Attached(gate.Antigravity) || spec.Name != "a" || string(spec.Document) != file {
		t.Errorf("spec is %q %q with the document %s", spec.Kind, spec.Name, spec.Document)
	}
	type hook struct {
		Name, Command, URL, Matcher string
		Event                       gate.EventName
		Timeout                     time.Duration
		Headers                     []gate.Header
	}
	var got []hook
	for _, h := range spec.Hooks {
		if h.Dialect != gate.Antigravity || h.Level != gate.CustomLevel || h.FailMode != gate.FailAllow {
			t.Errorf("hook %+v", h)
		}
		got = append(got, hook{h.Name, h.Command, h.URL, h.Matcher.String(), h.Event, h.Timeout, h.Headers})
	}
	const usual = 30 * time.Second
	want := []hook{
		{"z.pre_tool_execution[0].hooks[0]", "one", "", "code_execution", gate.PreToolUse, 5 * time.Second, nil},
		{"z.pre_tool_execution[0].hooks[1]", "two", "", "code_execution", gate.PreToolUse, usual, nil},
		{"z.pre_tool_execution[1].hooks[0]", "", "https://h.example/x", "read_file", gate.PreToolUse, usual, []gate.Header{{Name: "X-B", Value: "1"}, {Name: "X-A", Value: "2"}}},
		{"z.post_tool_execution[0].hooks[0]", "audit", "", ".*", gate.PostToolUse, usual, nil},
		{"a.pre_tool_execution[0].hooks[0]", "last", "", "*", gate.PreToolUse, usual, nil},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks (-want +got)\n%s", diff)
	}
}

func TestAntigravity01WhatIsNoGroup(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"a list", `[]`, "error: hooks.json is a list, want an object of groups"},
		{"a group that is none", `{"g":true}`, `1:6: error: g: group "g" is true, want an object with pre_tool_execution`},
		{"an event that is no list", `{"g":{"pre_tool_execution":{}}}`, "1:28: error: g.pre_tool_execution: pre_tool_execution is an object, want a list"},
		{"handlers without their entry", `{"g":{"pre_tool_execution":["x"]}}`, `pre_tool_execution[0] is the text "x", want an object`},
		{"an entry without hooks", `{"g":{"pre_tool_execution":[{"matcher":"*","command":"x"}]}}`, `warning: g.pre_tool_execution[0].hooks: g.pre_tool_execution[0] has no hooks`},
		{"hooks that are no list", `{"g":{"pre_tool_execution":[{"matcher":"*","hooks":{}}]}}`, `hooks is an object, want a list`},
		{"a handler that is none", `{"g":{"pre_tool_execution":[{"matcher":"*","hooks":["true"]}]}}`, `hooks[0] is the text "true", want an object`},
		{"enabled is no flag", `{"g":{"enabled":"no"}}`, `enabled is the text "no", want true or false without quotes`},
		{"what is off is looked at too", `{"g":{"enabled":false,"pre_tool_execution":[{"matcher":"*","hooks":[{"type":"x"}]}]}}`, `type is "x"`},
		{"the whole file is lost", `{"g":1,"h":{}}`, "1:6: error: nothing of this file is loaded, as in an environment of the Gemini API"},
		{"an unknown key of a handler", handler(`"type":"command","command":"x","timeot":3`), `warning: g.pre_tool_execution[0].hooks[0].timeot: field "timeot" is unknown and has no effect; it is kept; did you mean "timeout"?`},
		{"no JSON", `{"g":`, "error: text is not JSON"},
		{"nothing", ``, "body is empty"},
		{"a group's name without end", `{"` + strings.Repeat("g", 300) + `":{}}`, "group's name is 300 bytes long, want at most 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, found := antigravityHooks(t, c.file); !strings.Contains(found, c.want) {
				t.Errorf("findings:\n%swant %q", found, c.want)
			}
		})
	}
}

func TestAntigravity03Handlers(t *testing.T) {
	for _, c := range []struct{ name, fields, want string }{
		{"command", `"type":"command","command":"python3 /.agents/gate.py","timeout":10`, ""},
		{"http", `"type":"http","url":"https://h.example/p?q=1","headers":{"X-Team":"a"},"timeout":3`, ""},
		{"another type", `"type":"prompt","prompt":"p"`, `error: g.pre_tool_execution[0].hooks[0].type: type is "prompt", want one of command, http`},
		{"a capital letter", `"type":"Command","command":"x"`, `type is "Command", want one of command, http; did you mean "command"?`},
		{"no type", `"command":"x"`, "type is missing, want command or http"},
		{"no command", `"type":"command"`, "command is missing"},
		{"a command that is no text", `"type":"command","command":["x"]`, "command is a list, want text"},
		{"a command of the other kind", `"type":"command","command":"x","url":"https://h.example"`, "warning: g.pre_tool_execution[0].hooks[0].url: url has no effect on a handler of type command"},
		{"a command that is none for bash", `"type":"command","command":"if"`, "warning: g.pre_tool_execution[0].hooks[0].command: command is not valid bash"},
		{"an exit that blocks elsewhere", `"type":"command","command":"grep -q x || exit 2"`, "command exits with 2, which denies nothing there"},
		{"http without TLS", `"type":"http","url":"http://h.example"`, `error: g.pre_tool_execution[0].hooks[0].url: url begins with http://, want https://`},
		{"no url", `"type":"http"`, "url is missing"},
		{"no host", `"type":"http","url":"https:///p"`, `url is "https:///p", want https://host/path`},
		{"a relative url", `"type":"http","url":"/hook"`, `want https://host/path`},
		{"a password", `"type":"http","url":"https://u:p@h.example"`, "url holds a user or password"},
		{"its own machine", `"type":"http","url":"https://localhost:8443"`, "warning: g.pre_tool_execution[0].hooks[0].url: url leads to localhost"},
		{"its own machine by address", `"type":"http","url":"https://[::ffff:127.0.0.1]/"`, "which is always refused"},
		{"a secret", `"type":"http","url":"https://h.example","headers":{"authorization":"Bearer x"}`, `header "authorization" looks like a secret`},
		{"a header that ends its line", `"type":"http","url":"https://h.example","headers":{"X-A":"1\r\nHost: evil"}`, `header "X-A" has a value with a line break`},
		{"a header that is no name", `"type":"http","url":"https://h.example","headers":{"X A":"1"}`, `header "X A" is no name of a header`},
		{"a header that is no text", `"type":"http","url":"https://h.example","headers":{"X-A":1}`, `header "X-A" is the number 1, want text`},
		{"no time", `"type":"command","command":"x","timeout":0`, "timeout is 0, want a whole number of 1 or more (seconds)"},
		{"milliseconds", `"type":"command","command":"x","timeout":10000`, "the unit is seconds, not milliseconds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, found := antigravityHooks(t, handler(c.fields)); !strings.Contains(found, c.want) || c.want == "" && found != "" {
				t.Errorf("findings:\n%swant %q", found, c.want)
			}
		})
	}
	if _, found := antigravityHooks(t, handler(`"type":"http","url":"https://h.example","headers":{"X-Key":"a\nb"}`)); strings.Contains(found, "a\nb") {
		t.Errorf("a header's value is shown:\n%s", found)
	}
}

func TestAntigravity04TwoEvents(t *testing.T) {
	for _, c := range []struct{ name, key, value, want string }{
		{"an event of other systems", "PreToolUse", `[{"matcher":"*","hooks":[]}]`, `did you mean "pre_tool_execution"?`},
		{"another of them", "AfterTool", `[{"matcher":"*","hooks":[]}]`, `did you mean "post_tool_execution"?`},
		{"faults gx-031 and gx-035: an event of the desktop program", "Stop", `[{"matcher":"*","hooks":[]}]`, `1:7: error: g.Stop: "Stop" is no event of these hooks: they have pre_tool_execution and post_tool_execution`},
		{"misspelt", "pre_tool_executions", `[]`, `did you mean "pre_tool_execution"?`},
		{"another system's", "PreToolUse", `[]`, `"PreToolUse" is no event`},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, found := antigravityHooks(t, `{"g":{`+text(c.key)+`:`+c.value+`}}`)
			if spec != nil || !strings.Contains(found, c.want) {
				t.Errorf("findings:\n%swant %q", found, c.want)
			}
		})
	}
}

func TestAntigravity05EveryTool(t *testing.T) {
	for _, pattern := range []string{"*", "", ".*"} {
		spec, found := antigravityHooks(t, matching(pattern))
		for _, tool := range gate.AntigravityTools {
			if !spec.Hooks[0].Matcher.Match(tool) || found != "" {
				t.Errorf("%q does not match %s, or has the findings %s", pattern, tool, found)
			}
		}
	}
}

func TestAntigravity06TheWholeName(t *testing.T) {
	for _, c := range []struct {
		pattern string
		about   []string
		want    string
	}{
		{"code_execution", []string{"code_execution"}, ""},
		{"read_file|write_file", []string{"read_file", "write_file"}, ""},
		{"(?:read|write)_file", []string{"read_file", "write_file"}, ""},
		{".*_file", []string{"read_file", "write_file", "delete_file"},
			`warning: g.pre_tool_execution[0].matcher: matcher ".*_file" is about read_file, write_file, delete_file, and not about list_files: the whole name must match`},
		{"file", nil, "is about none of the five tools, and not about read_file, write_file, list_files, delete_file: the whole name must match"},
		{"^read", nil, "and not about read_file"},
		{"read_fil", nil, "and not about read_file"},
		{"Bash", nil, `is about none of the five tools (code_execution, read_file, write_file, list_files, delete_file), so its hooks are never asked`},
		{"read_files", nil, `did you mean "read_file"?`},
	} {
		t.Run(c.pattern, func(t *testing.T) {
			spec, found := antigravityHooks(t, matching(c.pattern))
			var about []string
			for _, tool := range gate.AntigravityTools {
				if spec.Hooks[0].Matcher.Match(tool) {
					about = append(about, tool)
				}
			}
			if !slices.Equal(about, c.about) || !strings.Contains(found, c.want) || c.want == "" && found != "" {
				t.Errorf("about %q, want %q; findings:\n%swant %q", about, c.about, found, c.want)
			}
		})
	}
}

func TestAntigravity07StarFileMatchesNothing(t *testing.T) {
	for pattern, want := range map[string]string{
		"*_file":        `so it matches nothing and its hooks are never asked; write ".*_file" for what ends so`,
		"(?!read).*":    "RE2 has no negative look-ahead (?!…), so it matches nothing",
		"read_file|(":   "is not a valid RE2 pattern",
		"a)(b":          "is not a valid RE2 pattern",
		`(read)_\1`:     `RE2 has no back-references (\1)`,
		"[":             "matches nothing",
		"*_file|(?!x)y": "matches nothing",
	} {
		t.Run(pattern, func(t *testing.T) {
			spec, found := antigravityHooks(t, matching(pattern))
			if spec == nil || !strings.Contains(found, "warning: g.pre_tool_execution[0].matcher: ") || !strings.Contains(found, want) {
				t.Fatalf("findings:\n%swant a warning with %q", found, want)
			}
			for _, tool := range gate.AntigravityTools {
				if spec.Hooks[0].Matcher.Match(tool) {
					t.Errorf("it matches %s", tool)
				}
			}
		})
	}
	t.Run("what only we refuse does not load", func(t *testing.T) {
		for _, pattern := range []string{`\pL{600}`, strings.Repeat("a|", 3000)} {
			if spec, found := antigravityHooks(t, matching(pattern)); spec != nil {
				t.Errorf("%.20s is taken, with the findings %s", pattern, found)
			}
		}
	})
}

func TestAntigravity08NoMatcher(t *testing.T) {
	for _, entry := range []string{`{"hooks":[{"type":"command","command":"x"}]}`, `{"matcher":null,"hooks":[{"type":"command","command":"x"}]}`} {
		spec, found := antigravityHooks(t, `{"g":{"post_tool_execution":[`+entry+`]}}`)
		if !strings.Contains(found, "warning: g.post_tool_execution[0]: g.post_tool_execution[0] has no matcher, so its hooks are about every tool") {
			t.Errorf("findings:\n%s", found)
		}
		for _, tool := range gate.AntigravityTools {
			if !spec.Hooks[0].Matcher.Match(tool) {
				t.Errorf("%s is not matched", tool)
			}
		}
	}
}

// However large a file is, what comes of it is bounded.
func TestAntigravityHostileFiles(t *testing.T) {
	one := `{"type":"command","command":"x"},`
	many := `{"g":{"pre_tool_execution":[{"matcher":"*","hooks":[` + strings.TrimSuffix(strings.Repeat(one, 20_000), ",") + `]}]}}`
	if spec, found := antigravityHooks(t, many); spec != nil || !strings.Contains(found, "want at most 1000") {
		t.Errorf("20,000 handlers: %.300s", found)
	}
	for name, text := range map[string]string{
		"deep":     `{"g":{"pre_tool_execution":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`,
		"NUL":      handler(`"type":"command","command":"a\u0000b"`),
		"twice":    `{"g":{},"g":{}}`,
		"long":     handler(`"type":"command","command":"` + strings.Repeat("x", gate.MaxScriptBytes+1) + `"`),
		"no UTF-8": "{\"g\xff\":{}}",
	} {
		if spec, found := antigravityHooks(t, text); spec != nil || found == "" {
			t.Errorf("%s: taken", name)
		}
	}
}

// FuzzReadAntigravity: whatever a file is, a spec comes without errors and
// errors without a spec, and its hooks can be asked.
func FuzzReadAntigravity(f *testing.F) {
	f.Add([]byte(handler(`"type":"command","command":"x","timeout":5`)))
	f.Add([]byte(handler(`"type":"http","url":"https://h.example/","headers":{"X-A":"b"}`)))
	f.Add([]byte(matching("*_file")))
	f.Add([]byte("\xef\xbb\xbf" + matching("")))
	f.Add([]byte(`{"g":{"enabled":false,"Stop":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, _ := antigravityHooks(t, string(data))
		if spec == nil {
			return
		}
		if !json.Valid(spec.Document) {
			t.Fatalf("document is no JSON: %q", spec.Document)
		}
		names := map[string]bool{}
		for _, h := range spec.Hooks {
			asked := map[gate.HookType]string{gate.CommandHook: h.Command, gate.HTTPHook: h.URL}[h.Type]
			if names[h.Name] || h.Timeout <= 0 || asked == "" {
				t.Fatalf("hook %+v", h)
			}
			names[h.Name] = true
		}
	})
}
