package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

var update = flag.Bool("update", false, "rewrite schemas/ from what the code says")

// The files that editors are pointed to are what the code says.
func TestSchemaFilesAreCurrent(t *testing.T) {
	for name, text := range Schemas() {
		path := filepath.Join("..", "schemas", name+".json")
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		is, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(string(text), string(is)); diff != "" {
			t.Errorf("%s is not current: make update (-code +file)\n%s", path, diff)
		}
	}
}

func compiled(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schemas()[name]))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// against checks every document of a YAML text.
func against(t testing.TB, s *jsonschema.Schema, text string) error {
	t.Helper()
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc any
		if err := dec.Decode(&doc); err != nil {
			if err.Error() == "EOF" {
				return nil
			}
			t.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			return err
		}
	}
}

func TestExamplesValidate(t *testing.T) {
	spec, test := compiled(t, "spec"), compiled(t, "test")
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		schema, named := spec, "../schemas/spec.json"
		if IsTestFile(path) {
			schema, named = test, "../schemas/test.json"
		}
		if err := against(t, schema, string(data)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if !strings.HasPrefix(string(data), "# yaml-language-server: $schema="+named+"\n") {
			t.Errorf("%s does not name its schema", path)
		}
	}
	const network = "../examples/antigravity/network.json"
	data, err := os.ReadFile(network)
	if err != nil {
		t.Fatal(err)
	}
	if err := against(t, compiled(t, "network"), string(data)); err != nil {
		t.Errorf("%s: %v", network, err)
	}
	if !strings.HasPrefix(string(data), "{\n  \"$schema\": \"../../schemas/network.json\",\n") {
		t.Errorf("%s does not name its schema", network)
	}
	page, err := os.ReadFile("../docs/testing-hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		if err := against(t, test, text); err != nil {
			t.Errorf("docs/testing-hooks.md: %v\n%s", err, text)
		}
	}
}

// The server file of the documentation, whole.
func TestDocumentedServerFileValidates(t *testing.T) {
	page, err := os.ReadFile("../docs/server-file.md")
	if err != nil {
		t.Fatal(err)
	}
	server, blocks := compiled(t, "server"), regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, block := range blocks {
		if err := against(t, server, block[1]); err != nil {
			t.Errorf("%v\n%s", err, block[1])
		}
	}
	if len(blocks) == 0 {
		t.Error("no server file is there")
	}
}

func TestSchemasRefuse(t *testing.T) {
	hook := func(fields string) string {
		return "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata: {name: a}\nspec: {hooks: {Stop: [{" + fields + "}]}}\n"
	}
	for _, c := range []struct{ name, schema, good, bad string }{
		{"a prompt hook without a prompt", "spec", hook("prompt: x"), hook("timeout: 3")},
		{"a command hook with both", "spec", hook("type: command, command: x"), hook("type: command, command: x, script: y")},
		{"a time-out as a text", "spec", hook("prompt: x, timeout: 3"), hook("prompt: x, timeout: 3s")},
		{"another type", "spec", hook("prompt: x, type: prompt"), hook("prompt: x, type: http")},
		{"an unknown event", "spec", hook("prompt: x"), "kind: ExtendedAgent\nmetadata: {name: a}\nspec: {hooks: {Stopp: []}}\n"},
		{"a reserved name", "spec", hook("prompt: x, name: a"), hook("prompt: x, name: system__a")},
		{"a hook without its event", "spec", "kind: GlobalHook\nmetadata: {name: a}\nspec: {eventType: Stop, hook: {prompt: x}}\n",
			"kind: GlobalHook\nmetadata: {name: a}\nspec: {hook: {prompt: x}}\n"},
		{"a tool hook for all without a matcher", "spec", "kind: GlobalHook\nmetadata: {name: a}\nspec: {eventType: PreToolUse, hook: {prompt: x, matcher: a}}\n",
			"kind: GlobalHook\nmetadata: {name: a}\nspec: {eventType: PreToolUse, hook: {prompt: x}}\n"},
		{"a case without want", "test", goodCase, strings.Replace(goodCase, "want: allow", "timeout: 1", 1)},
		{"an event and a series", "test", goodCase, strings.Replace(goodCase, "want:", "series: [{event: {}, want: allow}]\n    want:", 1)},
		{"an unknown key of a case", "test", goodCase, strings.Replace(goodCase, "want:", "wishes: x\n    want:", 1)},
		{"a misspelt note", "test", strings.Replace(goodCase, "want: allow", "want: {decision: allow, notes: [capped]}", 1),
			strings.Replace(goodCase, "want: allow", "want: {decision: allow, notes: [cappd]}", 1)},
		{"a host without its name", "network", `{"allowlist": [{"domain": "*"}]}`, `{"allowlist": [{"transform": {"A": "b"}}]}`},
		{"a network that is half disabled", "network", `"disabled"`, `"enabled"`},
		{"a network in its environment", "network", `{"network": {"allowlist": [{"domain": "a", "transform": [{"A": "b"}]}]}}`, `{"network": {"allowlist": ["a"]}}`},
		{"an unknown key beside an allowlist", "network", `{"$schema": "x", "allowlist": []}`, `{"allow": []}`},
		{"an unknown key of the server file", "server", "listen: 127.0.0.1:1", "listn: 127.0.0.1:1"},
		{"a number that is a word", "server", "limits: {judge_rounds: '${ROUNDS}'}", "limits: {judge_rounds: many}"},
		{"a mode that is none", "server", "sandbox: {mode: auto}", "sandbox: {mode: none}"},
		{"a size in no unit", "server", "sandbox: {limits: {memory: 64MiB}}", "sandbox: {limits: {memory: 64 apples}}"},
	} {
		s := compiled(t, c.schema)
		if err := against(t, s, c.good); err != nil {
			t.Errorf("%s: what is right is refused: %v", c.name, err)
		}
		if against(t, s, c.bad) == nil {
			t.Errorf("%s: not refused", c.name)
		}
	}
}

// A field of an event that is misspelt is flagged in the editor, too; a host's own
// payload has the host's fields.
func TestTestSchemaKnowsEventFields(t *testing.T) {
	test := compiled(t, "test")
	for _, c := range []struct {
		name, keys string
		good       bool
	}{
		{"known fields", "event: {hook_event_name: Stop, final_output: x}", true},
		{"a misspelt one", "event: {hook_event_name: Stop, final_outputs: x}", false},
		{"native by name", "protocol: native\n    event: {hook_event_name: Stop, final_outputs: x}", false},
		{"a host's", "protocol: claude-code\n    event: {hook_event_name: Stop, last_assistant_message: x}", true},
		{"in a file", "event_file: x.json", true},
		{"hooks on demand", "active: [strict]\n    event: {hook_event_name: Stop, final_output: x}", true},
		{"no name of one", "active: strict\n    event: {hook_event_name: Stop, final_output: x}", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := against(t, test, "tests:\n  - name: x\n    "+c.keys+"\n    want: allow\n"); (err == nil) != c.good {
				t.Errorf("alone: %v", err)
			}
			series := "tests:\n  - name: x\n    series:\n      - " + strings.ReplaceAll(c.keys, "\n    ", "\n        ") + "\n        want: allow\n"
			if err := against(t, test, series); (err == nil) != c.good {
				t.Errorf("in a series: %v", err)
			}
		})
	}
}
