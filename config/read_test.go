package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
	"stopgate/internal/contract"
)

func TestUnreadableText(t *testing.T) {
	deep := func(open, shut string, n int) string { return strings.Repeat(open, n) + strings.Repeat(shut, n) }
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+p+",", 9), ",") + "]\n"
	}
	for _, c := range []struct {
		name, media, body string
		want              string // of the finding
		line, column      int
	}{
		{"empty JSON", asJSON, " \n", "body is empty", 1, 1},
		{"empty YAML", asYAML, "# nothing\n", "body is empty", 1, 1},
		{"broken JSON", asJSON, "{\n  \"name\": é}", "text is not JSON: invalid character", 2, 11},
		{"JSON cut short", asJSON, `{"name":`, "unexpected end", 1, 8},
		{"two JSON values", asJSON, `{"name":"a"} {}`, "after top-level value", 1, 14},
		{"YAML sent as JSON", asJSON, "name: a", "text is not JSON", 1, 2},
		{"not UTF-8", asJSON, "{\"name\":\n\"\xff\"}", "text is not UTF-8: byte 0xff", 2, 2},
		{"not UTF-8 in YAML", asYAML, "name: \xc3(", "text is not UTF-8: byte 0xc3", 1, 7},
		{"JSON too deep", asJSON, deep("[", "]", 65), "nested deeper than 64", 1, 65},
		{"JSON far too deep", asJSON, deep("[", "]", 100_000), "exceeded max depth", 1, 10001},
		{"YAML too deep", asYAML, deep("[", "]", 65), "nested deeper than 64", 1, 65},
		{"YAML far too deep", asYAML, deep("[", "]", 100_000), "text is not YAML", 1, 1},
		{"broken YAML", asYAML, "name: a\n  b: c\n", "text is not YAML: mapping values", 2, 3},
		{"tab in YAML", asYAML, "spec:\n\ta: b\n", "text is not YAML: found character that cannot start any token", 2, 2},
		{"two YAML documents", asYAML, "name: a\n---\nname: b\n", "body holds 2 documents, want one", 3, 1},
		{"aliases that multiply", asYAML, bomb, "aliases repeat more than", 0, 0},
		{"an alias to itself", asYAML, "a: &a [*a]\n", "nested deeper than 64", 1, 8},
		{"unknown alias", asYAML, "a: *b\n", "text is not YAML: unknown anchor 'b' referenced", 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := refused(t, c.media, c.body)
			f := e.Details[0]
			if e.Code != gate.CodeInvalidJSON || !strings.Contains(f.Message, c.want) {
				t.Errorf("error %s: %v, want %q", e.Code, e, c.want)
			}
			if c.line > 0 && (f.Line != c.line || f.Column != c.column) {
				t.Errorf("place is %d:%d, want %d:%d", f.Line, f.Column, c.line, c.column)
			}
		})
	}
}

func TestTextThatCannotBeKept(t *testing.T) {
	for _, c := range []struct{ name, media, body, want string }{
		{"key twice in JSON", asJSON, `{"name":"a","properties":{},"na\u006de":"b"}`, `1:29: error: name: key "name" is given twice (first on line 1)`},
		{"key twice in YAML", asYAML, "name: a\nproperties: {}\nname: b\n", `3:1: error: name: key "name" is given twice (first on line 1)`},
		{"half a surrogate pair", asJSON, `{"name":"a","properties":{"x":"\ud83d!"}}`, "half a surrogate pair"},
		{"surrogates the wrong way round", asJSON, `{"name":"a","properties":{"x":"\ude00\ud83d"}}`, "half a surrogate pair"},
		{"NUL in JSON", asJSON, `{"name":"a","properties":{"x":"a\u0000"}}`, "NUL"},
		{"NUL in YAML", asYAML, `{name: a, properties: {x: "a\0"}}`, "NUL"},
		{"merge key", asYAML, "x: &x {name: a}\n<<: *x\nproperties: {}\n", "2:1: error: merge key << is not read"},
		{"tag", asYAML, "name: !secret a\nproperties: {}\n", `1:7: error: tag "!secret" is not read here`},
		{"binary", asYAML, "name: a\nproperties: {x: !!binary aGk=}\n", `tag "!!binary"`},
		{"set", asYAML, "name: a\nproperties: {x: !!set {a: ~}}\n", `tag "!!set"`},
		{"infinity", asYAML, "name: a\nproperties: {x: .inf}\n", "number .inf has no JSON form"},
		{"key that is a list", asYAML, "name: a\nproperties: {[x]: y}\n", "key is not plain text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if text := textOf(refused(t, c.media, c.body).Details); !strings.Contains(text, c.want) {
				t.Errorf("findings:\n%swant %q", text, c.want)
			}
		})
	}
}

func TestTextThatLooksOddAndIsFine(t *testing.T) {
	for _, c := range []struct{ name, media, body, want string }{
		{"byte order mark", asJSON, "\ufeff" + `{"name":"a","properties":{}}`, `"name":"a"`},
		{"byte order mark in YAML", asYAML, "\ufeffname: a\nproperties: {}\n", `"name":"a"`},
		{"the replacement character itself", asJSON, `{"name":"a","properties":{"x":"\ufffd�"}}`, `"x":"��"`},
		{"escaped backslash before ud800", asJSON, `{"name":"a","properties":{"x":"� \\ud800"}}`, `"x":"� \\ud800"`},
		{"numbers of YAML", asYAML, "name: a\nproperties: {x: [0x10, 1_000, +5, .5, 1e3, 0o17]}\n", `"x":[16,1000,5,0.5,1e3,15]`},
		{"words of YAML", asYAML, "name: a\nproperties: {x: [yes, on, True, ~, null, 2026-01-02]}\n", `"x":["yes","on",true,null,null,"2026-01-02"]`},
		{"an alias", asYAML, "name: a\nproperties: {x: &x {p: q}, y: *x}\n", `"x":{"p":"q"},"y":{"p":"q"}`},
		{"empty documents round one", asYAML, "---\n---\nname: a\nproperties: {}\n---\n", `"name":"a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, _ := accepted(t, c.media, c.body)
			if !strings.Contains(string(spec.Document), c.want) {
				t.Errorf("document is %s, want %s", spec.Document, c.want)
			}
		})
	}
}

func TestFindingsHaveTheirPlaceInJSON(t *testing.T) {
	body := "{\n  \"name\": \"a\",\n  \"properties\": {\"hooks\": {\"Stop\": [\n    {\"prompt\": \"äöü\", \"timeout\": 0, \"failMode\": \"x\"},\n    {\"type\": \"command\"}\n  ]}}\n}"
	e := refused(t, asJSON, body)
	want := []gate.Finding{
		{Severity: gate.SeverityError, Path: "properties.hooks.Stop[0].timeout", Line: 4, Column: 34, Message: "timeout is 0, want a whole number of 1 or more (seconds)"},
		{Severity: gate.SeverityError, Path: "properties.hooks.Stop[0].failMode", Line: 4, Column: 49, Message: `failMode is "x", want one of allow, block`},
		{Severity: gate.SeverityError, Path: "properties.hooks.Stop[1]", Line: 5, Column: 5, Message: "hook has neither command nor script: a command hook needs one of them"},
	}
	if diff := cmp.Diff(want, e.Details); diff != "" {
		t.Error(diff)
	}
	if e.Message != want[0].Message+" (and 2 more: see details)" {
		t.Errorf("message is %q", e.Message)
	}
}

func TestManifest(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"no metadata", "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nspec: {}\n", "metadata.name is missing"},
		{"name in the wrong place", "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nname: a\nmetadata: {name: a}\nspec: {}\n", `"name" has no place beside metadata and spec`},
		{"no spec", "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata: {name: a}\n", "spec is missing"},
		{"another kind", "api_version: v1\nkind: ConfigMap\nmetadata: {name: a}\nspec: {}\n", "want ExtendedAgent or GlobalHook"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if text := textOf(refused(t, asYAML, c.body).Details); !strings.Contains(text, c.want) {
				t.Errorf("findings:\n%swant %q", text, c.want)
			}
		})
	}
	_, warnings := accepted(t, asYAML, "apiVersion: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata: {name: a}\nspec: {}\n")
	if !strings.Contains(warnings, "api_version is missing") || !strings.Contains(warnings, `did you mean "api_version"?`) {
		t.Errorf("warnings:\n%s", warnings)
	}
}

func TestReadSpecFile(t *testing.T) {
	const (
		agent = "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata: {name: a}\nspec: {hooks: {Stop: [{prompt: p}]}}\n"
		hook  = "api_version: azuresre.ai/v2\nkind: GlobalHook\nmetadata: {name: a}\nspec: {eventType: Stop, hook: {prompt: p, colour: red}}\n"
	)
	for _, c := range []struct {
		name, file, data string
		specs            int
		want             string
	}{
		{"agents and hooks mixed", "x.yaml", agent + "---\n" + hook, 2, `9:43: warning: spec.hook.colour`},
		{"one bad document keeps all back", "x.yml", agent + "---\n" + strings.Replace(hook, "Stop", "Never", 1), 0, "9:19: error: spec.eventType"},
		{"one unreadable document keeps all back", "x.yml", agent + "---\n{", 0, "error: text is not YAML"},
		{"the same name twice", "x.yaml", agent + "---\n" + agent, 0, `6:1: error: agent "a" is defined twice in this file (first on line 1)`},
		{"JSON", "x.JSON", `{"name":"a","properties":{}}`, 1, ""},
		{"JSON with two values", "x.json", `{"name":"a","properties":{}}{}`, 0, "not JSON"},
		{"nothing in it", "x.yaml", "\n", 0, "file holds no resource"},
		{"another extension", "x.txt", agent, 0, `file name ends in ".txt"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			specs, findings := ReadSpecFile(c.file, []byte(c.data))
			if len(specs) != c.specs || !strings.Contains(textOf(findings), c.want) || c.want == "" && len(findings) > 0 {
				t.Errorf("%d specs, findings:\n%s", len(specs), textOf(findings))
			}
			for _, s := range specs {
				if s.Source != c.file {
					t.Errorf("source of %s is %q", s.Name, s.Source)
				}
			}
		})
	}
}

// FuzzReadSpec: nothing panics, an answer is JSON, and what was accepted reads
// back equal from its document.
func FuzzReadSpec(f *testing.F) {
	seeds := []string{"../examples/*.yaml"}
	if dir, wanted := contract.Find("spec/examples"); wanted {
		seeds = append(seeds, filepath.Join(dir, "azure-*"))
	}
	for _, pattern := range seeds {
		files, _ := filepath.Glob(pattern)
		if len(files) == 0 {
			f.Fatalf("no files %s", pattern)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
			if spec, _, err := ReadSpec(asYAML, data); err == nil {
				f.Add([]byte(spec.Document)) // as JSON
			}
		}
	}
	f.Add([]byte("name: &n a\nproperties: {x: *n, <<: {y: z}}\n"))
	f.Add([]byte(`{"name":"a","kind":"ExtendedAgent","metadata":{"x":"\ud83d\ude00"},"properties":{"temperature":1.0e-7}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, media := range []string{asJSON, asYAML} {
			spec, _, err := ReadSpec(media, body)
			if err != nil {
				continue
			}
			if !json.Valid(spec.Document) {
				t.Fatalf("document is not JSON: %s", spec.Document)
			}
			again, _, err := ReadSpecAs(spec.Kind, asJSON, spec.Document)
			if err != nil {
				t.Fatalf("document is refused: %v\n%s", err, spec.Document)
			}
			if diff := cmp.Diff(spec, again, compareSpecs); diff != "" {
				t.Fatalf("read back differs:\n%s", diff)
			}
		}
		ReadSpecFile("x.yaml", body)
	})
}

func BenchmarkReadSpec(b *testing.B) {
	for _, name := range []string{"azure-hooked.yaml", "azure-agent.json"} {
		data, err := os.ReadFile(filepath.Join(contract.Dir(b, "spec/examples"), name))
		if err != nil {
			b.Fatal(err)
		}
		media := asYAML
		if filepath.Ext(name) == ".json" {
			media = asJSON
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := ReadSpec(media, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestFindingsAreBounded(t *testing.T) {
	e := refused(t, asYAML, strings.Repeat("a: b\n", 5000))
	if n := len(e.Details); n != maxFindings || !strings.Contains(textOf(e.Details), "the rest is left out") {
		t.Errorf("%d findings, the last is %v", n, e.Details[n-1])
	}
	t.Run("warnings do not crowd out the error", func(t *testing.T) {
		var fields strings.Builder
		for i := range 500 {
			fields.WriteString(`"x` + strconv.Itoa(i) + `":1,`)
		}
		refused(t, asJSON, stopHook(fields.String()+`"prompt":""`))
	})
	t.Run("hooks of one event", func(t *testing.T) {
		hooks := strings.Repeat(`{"prompt":"p"},`, 100)
		accepted(t, asJSON, agentWith(`{"Stop":[`+strings.TrimSuffix(hooks, ",")+`]}`))
		e := refused(t, asJSON, agentWith(`{"Stop":[`+hooks+`{"prompt":"p"}]}`))
		if !strings.Contains(e.Message, "Stop has 101 hooks, want at most 100") {
			t.Errorf("error is %v", e)
		}
	})
	t.Run("documents of one file", func(t *testing.T) {
		if _, findings := ReadSpecFile("x.yaml", []byte(strings.Repeat("---\na: b\n", 1001))); !strings.Contains(textOf(findings), "documents or more") {
			t.Errorf("findings:\n%s", textOf(findings))
		}
	})
}
