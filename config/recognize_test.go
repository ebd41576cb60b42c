package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stopgate/gate"
	"stopgate/internal/contract"
)

func TestDialectOf(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		want             gate.Dialect
		fault            string
	}{
		{"an agent", "a.json", `{"name":"a","properties":{"hooks":{"Stop":[]}}}`, gate.Azure, ""},
		{"a manifest in JSON", "", `{"api_version":"azuresre.ai/v2","kind":"ExtendedAgent","metadata":{},"spec":{}}`, gate.Azure, ""},
		{"a type alone", "", `{"type":"GlobalHook"}`, gate.Azure, ""},
		{"a manifest with a stray list", "a.json", `{"kind":"ExtendedAgent","hooks":[]}`, gate.Azure, ""},
		{"a group by the name of spec", "", `{"spec":{"pre_tool_execution":[]}}`, "", "hooks of azure .* or of antigravity"},
		{"YAML is azure's", "hooks.yaml", "hooks: []", gate.Azure, ""},
		{"what cannot be read is azure's to refuse", "hooks.json", `{`, gate.Azure, ""},
		{"groups", "x.json", `{"g":{"enabled":true,"post_tool_execution":[]}}`, gate.Antigravity, ""},
		{"events without a group", "x.json", `{"pre_tool_execution":[]}`, gate.Antigravity, ""},
		{"a group by the name of hooks", "x.json", `{"hooks":{"pre_tool_execution":[]}}`, gate.Antigravity, ""},
		{"a list of hooks", "x.json", `{"hooks":[]}`, gate.AXCode, ""},
		{"packs alone", "", `{"packs":["block-force-push"]}`, gate.AXCode, ""},
		{"settings", "x.json", `{"model":"m","hooks":{"Stop":[]}}`, gate.ClaudeCode, ""},
		{"events that stand in the wrong place", "x.json", `{"PreToolUse":[]}`, gate.ClaudeCode, ""},
		{"settings without hooks, by name", "d/settings.local.json", `{"model":"m"}`, gate.ClaudeCode, ""},
		{"the place decides", "p/.ax-code/hooks.json", `{"hooks":{"Stop":[]}}`, gate.AXCode, ""},
		{"also of what cannot be read", ".agents/hooks.json", `{`, gate.Antigravity, ""},
		{"a place is whole names", "x.claude/settings.txt", `{"hooks":[]}`, gate.AXCode, ""},
		{"nothing", "hooks.json", `{}`, "", "nothing tells whose hooks these are: .* name the dialect"},
		{"a list", "", `[]`, "", "nothing tells"},
		{"a recorded evaluation", "x.json", `{"evaluation_id":"1","decision":"allow","hooks":[{"name":"a","outcome":"allow"}],"payload":{}}`, "", "this is a recorded evaluation, and holds no hooks"},
		{"an event", "x.json", `{"hook_event_name":"Stop"}`, "", "this is an event, and holds no hooks"},
		{"hooks with an event's word", "x.json", `{"hook_event_name":"Stop","hooks":[]}`, gate.AXCode, ""},
		{"two", "hooks.json", `{"g":{"pre_tool_execution":[]},"packs":[]}`, "", `could be hooks of antigravity \(the Gemini API's sandbox\) or of ax-code \(AX Code\); name the dialect`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := DialectOf(c.file, []byte(c.text))
			if d != c.want || (err == nil) != (c.fault == "") || err != nil && !regexp.MustCompile(c.fault).MatchString(err.Error()) {
				t.Errorf("%q, %v; want %q, %s", d, err, c.want, c.fault)
			}
		})
	}
}

func TestProjectOf(t *testing.T) {
	for name, want := range map[string]string{
		"/p/.claude/settings.local.json": "/p", "p/.agents/hooks.json": "p", ".ax-code/hooks.json": ".", "/.agents/hooks.json": "/",
		"/p/x.claude/settings.json": "/p/x.claude", "/p/agent.yaml": "/p", "hooks.json": ".",
	} {
		if got := ProjectOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestReadHooks(t *testing.T) {
	for _, c := range []struct {
		name    string
		dialect gate.Dialect
		file    string
		text    string
		hooks   int // -1: no spec
		finding string
	}{
		{"named against its form", gate.AXCode, "x.json", `{"g":{"pre_tool_execution":[]}}`, 0, `warning: g: AX Code drops "g"`},
		{"in another system's place", "", ".ax-code/hooks.json", `{"g":{"pre_tool_execution":[]}}`, 0,
			"1:1: warning: file lies where AX Code looks for its hooks, and reads like one of the Gemini API's sandbox"},
		{"hooks of a file with errors are counted", "", "x.json", `{"hooks":[{"event":"Stop","command":"a"},{"event":"Stop"}]}`, 2,
			"error: hooks\\[1\\]: AX Code ignores this whole file, because hooks\\[1\\] has no command"},
		{"a network", "", "network.json", `{"allowlist":[{"domain":"*"}]}`, -1, ""},
		{"a network with its schema", "", "network.json", `{"$schema":"x","network":"disabled"}`, -1, ""},
		{"a network with a fault", "", "network.json", `{"allowlist":[{"domian":"*"}]}`, -1, "domian"},
		{"what was recorded has no hooks, and no errors", "", "x.json", `{"evaluation_id":"1","decision":"allow","hooks":[]}`, -1, "^1:1: warning: this is a recorded evaluation"},
		{"an event neither", "", "x.json", "\n{\"hook_event_name\":\"Stop\"}", -1, "^2:1: warning: this is an event"},
		{"unless somebody says whose they are", gate.AXCode, "x.json", `{"evaluation_id":"1","decision":"allow","hooks":[{"name":"a"}]}`, 1, "AX Code ignores"},
		{"an event in the place of a spec", gate.Azure, "x.json", `{"hook_event_name":"Stop"}`, -1, "error: this is an event"},
		{"nobody's", "", "package.json", `{"name":"x"}`, -1, "1:1: error: nothing tells"},
	} {
		t.Run(c.name, func(t *testing.T) {
			specs, list := ReadHooks(c.dialect, c.file, []byte(c.text))
			n := -1
			if len(specs) > 0 {
				n = len(specs[0].Hooks)
			}
			if text := textOf(list); n != c.hooks || (text == "") != (c.finding == "") || !regexp.MustCompile(c.finding).MatchString(text) {
				t.Errorf("%d hooks, want %d; findings:\n%s\nwant %s", n, c.hooks, text, c.finding)
			}
		})
	}
}

// Every example that people have is known for what it is, and has no error.
func TestReadHooksOfExamples(t *testing.T) {
	roots := []string{examples}
	if dir, wanted := contract.Find("spec/examples"); wanted {
		roots = append(roots, dir)
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !specExtension(filepath.Ext(path)) {
				return err
			}
			data, err := os.ReadFile(path)
			if specs, list := ReadHooks("", path, data); gate.HasErrors(list) || len(specs) == 0 && !strings.HasSuffix(path, "network.json") && !IsTestFile(path) {
				t.Errorf("%s: %d specs, findings:\n%s", path, len(specs), textOf(list))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
