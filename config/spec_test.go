package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
	"stopgate/internal/contract"
)

const (
	asJSON = "application/json"
	asYAML = "application/yaml"
)

// compareSpecs compares matchers by their pattern and documents as text.
var compareSpecs = cmp.Options{
	cmp.Comparer(func(a, b gate.Matcher) bool { return a.String() == b.String() }),
	cmp.Transformer("text", func(b []byte) string { return string(b) }),
}

// agentWith is a JSON agent whose hooks are given.
func agentWith(hooks string) string {
	return `{"name":"a","properties":{"handoffs":[],"hooks":` + hooks + `}}`
}

// stopHook is a JSON agent with one Stop hook of these fields.
func stopHook(fields string) string { return agentWith(`{"Stop":[{` + fields + `}]}`) }

// globalHook is a JSON agent-level hook of these properties.
func globalHookWith(properties string) string {
	return `{"name":"g","type":"GlobalHook","properties":{` + properties + `}}`
}

// refused are the error findings of a body that is not accepted.
func refused(t *testing.T, contentType, body string) *gate.Error {
	t.Helper()
	spec, _, err := ReadSpec(contentType, []byte(body))
	if err == nil {
		t.Fatalf("accepted: %s", spec.Document)
	}
	e, ok := errors.AsType[*gate.Error](err)
	if !ok || len(e.Details) == 0 {
		t.Fatalf("error %v is no *gate.Error with details", err)
	}
	return e
}

// accepted is a body's spec and the texts of its warnings.
func accepted(t *testing.T, contentType, body string) (*gate.Spec, string) {
	t.Helper()
	spec, warnings, err := ReadSpec(contentType, []byte(body))
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return spec, textOf(warnings)
}

func textOf(findings []gate.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

// bodyCase is one document: what must be in the findings' text ("" = no
// finding), and whether they refuse it.
type bodyCase struct {
	name, body string
	refused    bool
	want       string
}

func runBodies(t *testing.T, cases []bodyCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var text string
			if c.refused {
				text = textOf(refused(t, asJSON, c.body).Details)
			} else {
				_, text = accepted(t, asJSON, c.body)
			}
			if !strings.Contains(text, c.want) || c.want == "" && text != "" {
				t.Errorf("findings:\n%swant %q", text, c.want)
			}
		})
	}
}

func TestAzure01AgentJSON(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(contract.Dir(t, "spec/examples"), "azure-agent.json"))
	if err != nil {
		t.Fatal(err)
	}
	spec, warnings := accepted(t, "application/json; charset=utf-8", string(body))
	if warnings != "" {
		t.Errorf("warnings:\n%s", warnings)
	}
	if spec.Kind != gate.AgentSpec || spec.Name != "my_hooked_agent" || len(spec.Hooks) != 2 {
		t.Fatalf("spec is %+v", spec)
	}
	stop, tool := spec.Hooks[0], spec.Hooks[1]
	if stop.Name != "Stop[0]" || stop.Event != gate.Stop || stop.Type != gate.PromptHook || stop.Level != gate.CustomLevel ||
		stop.Timeout != 30*time.Second || stop.MaxRejections != 3 || stop.Dialect != gate.Azure {
		t.Errorf("Stop hook is %+v", stop)
	}
	if tool.Name != "PostToolUse[0]" || tool.Type != gate.CommandHook || !tool.Matcher.Match("Anything") || tool.Script == "" {
		t.Errorf("PostToolUse hook is %+v", tool)
	}
	for _, part := range []string{`{"name":"my_hooked_agent","type":"ExtendedAgent","tags":["demo"],"owner":"platform","properties":{`,
		`"instructions":"You are a helpful assistant."`, `"enableVanillaMode":true`, `"failMode":"allow"`} {
		if !strings.Contains(string(spec.Document), part) {
			t.Errorf("document lacks %s:\n%s", part, spec.Document)
		}
	}
	t.Run("type, tags and owner are optional", func(t *testing.T) {
		spec, _ := accepted(t, asJSON, `{"name":"a","properties":{}}`)
		want := `{"name":"a","type":"ExtendedAgent","properties":{"handoffs":[]}}`
		if got := string(spec.Document); got != want {
			t.Errorf("document is %s, want %s", got, want)
		}
	})
}

func TestAzure02YAMLAndJSONAreOneObject(t *testing.T) {
	yaml := `
api_version: azuresre.ai/v2
kind: ExtendedAgent
metadata:
  name: same
  owner: me
  tags: [x, "2"]
spec:
  temperature: 0.50
  maxReflectionCount: 3
  extra: {a: [1, 1.5, true, ~, 2026-01-02, "ünï"], 7: on}
  hooks:
    Stop:
    - prompt: |
        Is it <done> & dusted?
        $ARGUMENTS
      timeout: 45
      failMode: Block
`
	flat := `{"properties":{"hooks":{"Stop":[{"timeout":45,"failMode":"BLOCK","prompt":"Is it <done> & dusted?\n$ARGUMENTS\n"}]},
 "maxReflectionCount":3,"temperature":0.50,"extra":{"7":"on","a":[1,1.5,true,null,"2026-01-02","\u00fcn\u00ef"]}},
 "tags":["x","2"],"owner":"me","name":"same","type":"ExtendedAgent"}`
	fromYAML, warnings := accepted(t, "text/yaml", yaml)
	fromJSON, _ := accepted(t, asJSON, flat)
	if diff := cmp.Diff(fromYAML, fromJSON, compareSpecs); diff != "" {
		t.Errorf("YAML and JSON differ:\n%s", diff)
	}
	if !strings.Contains(warnings, `field "extra" is unknown`) {
		t.Errorf("warnings:\n%s", warnings)
	}
	for _, media := range []string{"application/x-yaml", "text/x-yaml", "Application/YAML ; charset=utf-8"} {
		if spec, _ := accepted(t, media, yaml); string(spec.Document) != string(fromYAML.Document) {
			t.Errorf("%s stores %s", media, spec.Document)
		}
	}
	t.Run("JSON sent as YAML keeps its escapes", func(t *testing.T) {
		spec, _ := accepted(t, asYAML, `{"name":"a","properties":{"instructions":"\ud83d\ude00\/"}}`)
		if !strings.Contains(string(spec.Document), `"instructions":"😀/"`) {
			t.Errorf("document is %s", spec.Document)
		}
	})
	t.Run("another media type", func(t *testing.T) {
		_, _, err := ReadSpec("text/plain", []byte(flat))
		if gate.CodeOf(err) != gate.CodeUnsupportedMediaType {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("another API version", func(t *testing.T) {
		e := refused(t, asYAML, strings.Replace(yaml, "ai/v2", "ai/v1", 1))
		if !strings.Contains(e.Message, "want azuresre.ai/v2") || e.Details[0].Line != 2 || e.Details[0].Column != 14 {
			t.Errorf("details are %v", e.Details)
		}
	})
}

func TestAzure03DocumentHoldsOnlyWhatWasSent(t *testing.T) {
	spec, _ := accepted(t, asJSON, stopHook(`"prompt":"p"`))
	if strings.Contains(string(spec.Document), "PostToolUse") || strings.Contains(string(spec.Document), "timeout") {
		t.Errorf("document is %s", spec.Document)
	}
}

func TestAzure05PropertiesAreKept(t *testing.T) {
	properties := `{"agentType":"t","allowParallelToolCalls":false,"allowedSkills":["s"],"commonPrompts":["c"],"customReflectionNote":"n",` +
		`"enableSkills":true,"enableVanillaMode":false,"handoffDescription":"","handoffs":["b"],"instructions":"i",` +
		`"maxReflectionCount":2,"mcpTools":["m"],"model":"gpt","temperature":0.7,"tools":["t"]}`
	spec, warnings := accepted(t, asJSON, `{"name":"a","properties":`+properties+`}`)
	if warnings != "" || !strings.Contains(string(spec.Document), `"properties":`+properties) {
		t.Errorf("warnings %q, document %s", warnings, spec.Document)
	}
	t.Run("unknown fields are kept wherever they are, and warned about", func(t *testing.T) {
		body := `{"name":"a","zeta":1,"properties":{"big":12345678901234567890.10,"handoffs":[],"hooks":{"Stop":[{"note":{"x":[]},"prompt":"p"}]}}}`
		spec, warnings := accepted(t, asJSON, body)
		for _, part := range []string{`"zeta":1`, `"big":12345678901234567890.10`, `"note":{"x":[]}`} {
			if !strings.Contains(string(spec.Document), part) {
				t.Errorf("document lacks %s: %s", part, spec.Document)
			}
		}
		for _, field := range []string{`"zeta"`, `"big"`, `"note"`} {
			if !strings.Contains(warnings, "field "+field+" is unknown") {
				t.Errorf("no warning of %s:\n%s", field, warnings)
			}
		}
	})
	t.Run("a manifest's other metadata is kept", func(t *testing.T) {
		spec, warnings := accepted(t, asYAML, "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata: {name: a, labels: {x: y}}\nspec: {}\n")
		if !strings.Contains(string(spec.Document), `"metadata":{"labels":{"x":"y"}}`) || !strings.Contains(warnings, "metadata.labels") {
			t.Errorf("document %s, warnings %s", spec.Document, warnings)
		}
	})
	runBodies(t, []bodyCase{
		{"wrong type of text", `{"name":"a","properties":{"instructions":3}}`, true, "1:42: error: properties.instructions: instructions is the number 3, want text"},
		{"wrong type of list", `{"name":"a","properties":{"tools":"x"}}`, true, `tools is the text "x", want a list`},
		{"wrong type of flag", `{"name":"a","properties":{"enableSkills":"true"}}`, true, "want true or false without quotes"},
		{"properties missing", `{"name":"a"}`, true, "properties is missing"},
		{"properties a list", `{"name":"a","properties":[]}`, true, "properties is a list, want an object"},
		{"tags of numbers", `{"name":"a","tags":["x",1],"properties":{}}`, true, "tags[1] is the number 1, want text"},
		{"not an object", `[1]`, true, "resource is a list, want an object"},
	})
}

// An agent may wait for its own tasks; the key is ours.
func TestClaudeCode11DeferIsSaidInTheSpec(t *testing.T) {
	agent := func(properties string) string { return `{"name":"a","properties":{"handoffs":[]` + properties + `}}` }
	for value, want := range map[string]bool{"": false, `,"deferStopForBackgroundTasks":true`: true, `,"deferStopForBackgroundTasks":false`: false} {
		if spec, warnings := accepted(t, asJSON, agent(value)); spec.DeferForBackground != want || warnings != "" {
			t.Errorf("%q: %v %s", value, spec.DeferForBackground, warnings)
		}
	}
	if e := refused(t, asJSON, agent(`,"deferStopForBackgroundTasks":"yes"`)); e.Details[0].Path != "properties.deferStopForBackgroundTasks" {
		t.Errorf("%+v", e.Details)
	}
}

func TestAzure06Handoffs(t *testing.T) {
	e := refused(t, asJSON, `{"name":"a","properties":{"handoffs":null}}`)
	if e.Message != "Handoffs cannot be null" || e.Code != gate.CodeValidation || e.Details[0].Path != "properties.handoffs" {
		t.Errorf("error is %+v", e)
	}
	spec, warnings := accepted(t, asJSON, `{"name":"a","properties":{}}`)
	if warnings != "" || !strings.Contains(string(spec.Document), `"handoffs":[]`) {
		t.Errorf("absent: warnings %q, document %s", warnings, spec.Document)
	}
}

func TestAzure07GlobalHookType(t *testing.T) {
	properties := `"properties":{"eventType":"Stop","hook":{"prompt":"p"}}`
	for _, c := range []struct {
		name, body string
		kind       gate.SpecKind
	}{
		{"type missing", `{"name":"g",` + properties + `}`, gate.HookSpec},
		{"type missing, kind not known from the route", `{"name":"g",` + properties + `}`, ""},
		{"type null", `{"name":"g","type":null,` + properties + `}`, gate.HookSpec},
		{"type of another kind", `{"name":"g","type":"ExtendedAgent",` + properties + `}`, gate.HookSpec},
		{"type unknown", `{"name":"g","type":"Hook",` + properties + `}`, ""},
		{"type in another case", `{"name":"g","type":"globalhook",` + properties + `}`, gate.HookSpec},
		{"type not text", `{"name":"g","type":7,` + properties + `}`, gate.HookSpec},
		{"a hook where an agent is wanted", `{"name":"g","type":"GlobalHook",` + properties + `}`, gate.AgentSpec},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := readBody(c.kind, asJSON, []byte(c.body))
			if gate.CodeOf(err) != gate.CodeInvalidObjectType || !strings.Contains(err.Error(), "want ") {
				t.Errorf("error is %v", err)
			}
		})
	}
	spec, _, err := ReadSpecAs(gate.HookSpec, asJSON, []byte(`{"name":"g","type":"GlobalHook",`+properties+`}`))
	if err != nil || spec.Kind != gate.HookSpec || len(spec.Hooks) != 1 || spec.Hooks[0].Level != gate.AgentLevel || spec.Hooks[0].Name != "g" {
		t.Errorf("spec is %+v, error %v", spec, err)
	}
	if _, _, err := ReadSpecAs(gate.AgentSpec, asJSON, []byte(`{"name":"a","properties":{}}`)); err != nil {
		t.Errorf("an agent without a type: %v", err)
	}
}

func TestAzure08GlobalHookFields(t *testing.T) {
	hook := `"hook":{"type":"prompt","prompt":"p"}`
	for _, event := range []string{"Start", "Stop", "PreToolUse", "PostToolUse"} {
		spec, _ := accepted(t, asJSON, globalHookWith(`"eventType":"`+event+`","hook":{"prompt":"p","matcher":"*"}`))
		if string(spec.Hooks[0].Event) != event {
			t.Errorf("%s is read as %s", event, spec.Hooks[0].Event)
		}
	}
	for given, want := range map[string]gate.Activation{`"always"`: gate.Always, `"onDemand"`: gate.OnDemand, `"on-demand"`: gate.OnDemand, `null`: gate.Always} {
		spec, warnings := accepted(t, asJSON, globalHookWith(`"eventType":"Stop","description":"d","activationMode":`+given+`,`+hook))
		if h := spec.Hooks[0]; h.Activation != want || spec.Description != "d" || warnings != "" {
			t.Errorf("%s is read as %s, warnings %q", given, h.Activation, warnings)
		}
		if given == `"on-demand"` && !strings.Contains(string(spec.Document), `"activationMode":"onDemand"`) {
			t.Errorf("the alias is stored as %s", spec.Document)
		}
	}
	runBodies(t, []bodyCase{
		{"eventType unknown", globalHookWith(`"eventType":"stop",` + hook), true, `eventType is "stop", want one of Start, Stop, PreToolUse, PostToolUse; did you mean "Stop"?`},
		{"eventType missing", globalHookWith(hook), true, "eventType is missing, want one of Start, Stop"},
		{"activationMode unknown", globalHookWith(`"eventType":"Stop","activationMode":"never",` + hook), true, `activationMode is "never", want one of always, onDemand`},
		{"hook missing", globalHookWith(`"eventType":"Stop"`), true, "hook is missing"},
		{"hook a list", globalHookWith(`"eventType":"Stop","hook":[]`), true, "hook is a list"},
		{"hook type unknown", globalHookWith(`"eventType":"Stop","hook":{"type":"webhook"}`), true, `type is "webhook", want one of prompt, command`},
	})
}

func TestAzure09Names(t *testing.T) {
	for _, name := range []string{"a", "A-b_9", "my_hooked_agent", "system_", strings.Repeat("n", 128)} {
		if spec, _ := accepted(t, asJSON, `{"name":"`+name+`","properties":{}}`); spec.Name != name {
			t.Errorf("%q is read as %q", name, spec.Name)
		}
	}
	for name, want := range map[string]string{`""`: "is empty", `"a b"`: `holds ' '`, `"a.b"`: `holds '.'`, `"ü"`: `holds 'ü'`, `"a/b"`: "holds '/'",
		`"a\n"`: `holds '\n'`, `"system__x"`: "reserved", `7`: "is the number 7, want text", `null`: "name is missing", `"` + strings.Repeat("n", 129) + `"`: "longer than 128"} {
		for _, kind := range []string{`"ExtendedAgent","properties":{}`, `"GlobalHook","properties":{"eventType":"Stop","hook":{"prompt":"p"}}`} {
			if e := refused(t, asJSON, `{"name":`+name+`,"type":`+kind+`}`); !strings.Contains(e.Message, want) || e.Code != gate.CodeValidation {
				t.Errorf("%s: %v, want %q", name, e, want)
			}
		}
	}
	t.Run("a hook inside an agent may have one", func(t *testing.T) {
		spec, _ := accepted(t, asJSON, agentWith(`{"Stop":[{"prompt":"p"},{"name":"done","prompt":"p"},{"prompt":"p"}]}`))
		if got := spec.Hooks[0].Name + spec.Hooks[1].Name + spec.Hooks[2].Name; got != "Stop[0]doneStop[2]" {
			t.Errorf("names are %s", got)
		}
		e := refused(t, asJSON, agentWith(`{"Stop":[{"name":"x","prompt":"p"},{"name":"x","prompt":"p"},{"name":"a b","prompt":"p"}]}`))
		if text := textOf(e.Details); !strings.Contains(text, `"x" is used twice`) || !strings.Contains(text, `"a b" holds`) {
			t.Errorf("details:\n%s", text)
		}
	})
}

func TestAzure10AcceptedFieldsReadBack(t *testing.T) {
	hook := `{"failMode":"block","matcher":"*","maxRejections":7,"model":"Fast","prompt":"p","timeout":30.0,"type":"prompt"}`
	spec, _ := accepted(t, asJSON, agentWith(`{"PostToolUse":[`+hook+`]}`))
	if !strings.Contains(string(spec.Document), `"PostToolUse":[`+hook+`]`) {
		t.Errorf("document is %s", spec.Document)
	}
	t.Run("fault G31: failMode block survives reading, storing and reading again", func(t *testing.T) {
		spec, _ := accepted(t, asYAML, "kind: ExtendedAgent\napi_version: azuresre.ai/v2\nmetadata: {name: a}\nspec: {hooks: {Stop: [{prompt: p, failMode: BLOCK, maxRejections: 5}]}}")
		again, _ := accepted(t, asJSON, string(spec.Document))
		if h := again.Hooks[0]; h.FailMode != gate.FailBlock || h.MaxRejections != 5 {
			t.Errorf("hook is %+v", h)
		}
	})
}

func TestAzure11TypeOfHookIsTheOneSent(t *testing.T) {
	first, _ := accepted(t, asJSON, globalHookWith(`"eventType":"Stop","hook":{"type":"prompt","prompt":"p"}`))
	second, _ := accepted(t, asJSON, globalHookWith(`"eventType":"Stop","hook":{"type":"command","command":"true"}`))
	if first.Hooks[0].Type != gate.PromptHook || second.Hooks[0].Type != gate.CommandHook {
		t.Errorf("types are %s and %s", first.Hooks[0].Type, second.Hooks[0].Type)
	}
}

func TestSpecificationExamplesReadUnchanged(t *testing.T) {
	examples := contract.Dir(t, "spec/examples")
	files, _ := filepath.Glob(filepath.Join(examples, "azure-*"))
	if len(files) < 5 {
		t.Fatalf("%d examples in %s", len(files), examples)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		specs, findings := ReadSpecFile(file, data)
		if len(specs) != 1 || len(findings) != 0 || specs[0].Source != file {
			t.Errorf("%s: %d specs, findings:\n%s", file, len(specs), textOf(findings))
		}
	}
}
