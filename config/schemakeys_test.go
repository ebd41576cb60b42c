package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// objectsOf are the objects of a schema with the names of their members, by their
// place: a dot before a member, # before a definition, [] for the items of a list,
// * for the values of a map, /1 for the second of several forms.
func objectsOf(t *testing.T, name string) map[string][]string {
	t.Helper()
	var whole map[string]any
	if err := json.Unmarshal(Schemas()[name], &whole); err != nil {
		t.Fatal(err)
	}
	objects := map[string][]string{}
	var walk func(place string, part any)
	walk = func(place string, part any) {
		s, _ := part.(map[string]any)
		members, _ := s["properties"].(map[string]any)
		if members != nil && s["type"] == "object" { // not the halves of a condition
			objects[place] = slices.Sorted(maps.Keys(members))
		}
		for member, of := range members {
			walk(place+"."+member, of)
		}
		definitions, _ := s["$defs"].(map[string]any)
		for definition, of := range definitions {
			walk(place+"#"+definition, of)
		}
		forms, _ := s["anyOf"].([]any)
		for i, form := range forms {
			walk(fmt.Sprint(place, "/", i), form)
		}
		if items := s["items"]; items != nil {
			walk(place+"[]", items)
		}
		if values := s["additionalProperties"]; values != nil {
			walk(place+".*", values)
		}
	}
	walk(name, whole)
	return objects
}

// knownHere is what a strict reader says of an unknown key.
var knownHere = regexp.MustCompile(`(?:key "qqqqqqqqqqqq" is unknown; known here: |hooks has no event "qqqqqqqqqqqq", want one of )(.*)`)

// keysOf are the keys that the findings' reader knows.
func keysOf(t *testing.T, text string, findings []gate.Finding) []string {
	t.Helper()
	for _, f := range findings {
		if m := knownHere.FindStringSubmatch(f.Message); m != nil {
			return slices.Sorted(slices.Values(strings.Split(m[1], ", ")))
		}
	}
	t.Fatalf("%s: no reader says what it knows:\n%s", text, textOf(findings))
	return nil
}

// strictReaders is for each object of a schema a text in which it has a key that
// its reader does not know, and names those that it does; | stands between the texts of
// objects that come in several kinds.
var strictReaders = map[string]string{
	"test":                   "%",
	"test#case":              "tests: [{name: a, event: {}, want: allow, %}]",
	"test#case.counts":       "tests: [{name: a, event: {}, want: allow, counts: {%}}]",
	"test#event":             "tests: [{name: a, series: [{event: {}, want: allow, %}]}]",
	"test#want/1":            "tests: [{name: a, event: {}, want: {decision: allow, %}}]",
	"test#text/1":            "tests: [{name: a, event: {}, want: {decision: allow, reason: {%}}}]",
	"test#hookWant/1":        "tests: [{name: a, event: {}, want: {decision: allow, hooks: {h: {outcome: allow, %}}}}]",
	"test#request":           "tests: [{name: a, event: {}, want: {decision: allow, requests: [{%}]}}]",
	"test#httpAnswer":        "tests: [{name: a, event: {}, want: allow, http: [{%}]}]",
	"test#answers[]":         "tests: [{name: a, event: {}, want: allow, model: [{%}]}]",
	"test#answers[].calls[]": "tests: [{name: a, event: {}, want: allow, model: [{calls: [{%}]}]}]",

	"server":                    "%",
	"server.auth":               "auth: {%}",
	"server.auth.oidc":          "auth: {oidc: {%}}",
	"server.auth.oidc.rules[]":  "auth: {oidc: {rules: [{%}]}}",
	"server.auth.tls":           "auth: {tls: {%}}",
	"server.auth.tls.clients[]": "auth: {tls: {clients: [{%}]}}",
	"server.export":             "export: {%}",
	"server.export.sinks.*":     "export: {sinks: {a: {kind: file, %}}}|export: {sinks: {a: {kind: http, %}}}",
	"server.http":               "http: {%}",
	"server.http_hooks":         "http_hooks: {%}",
	"server.limits":             "limits: {%}",
	"server.models":             "models: {%}",
	"server.models.providers.*": "models: {providers: {a: {%}}}",
	"server.models.prices.*":    "models: {providers: {openai: {base_url: 'http://a/'}}, prices: {openai/a: {%}}}",
	"server.redaction":          "redaction: {%}",
	"server.retention":          "retention: {%}",
	"server.sandbox":            "sandbox: {%}",
	"server.sandbox.limits":     "sandbox: {limits: {%}}",
	"server.telemetry":          "telemetry: {%}",
	"server.transcripts":        "transcripts: {%}",

	"network/1":                       `{%}`,
	"network/1.allowlist[]":           `{"allowlist": [{"domain": "a.example.com", %}]}`,
	"network/2.network/1":             `{"network": {%}}`,
	"network/2.network/1.allowlist[]": `{"network": {"allowlist": [{"domain": "a.example.com", %}]}}`,
	"network/2":                       `{"network": "disabled", %}`,

	"spec#agent.hooks":      "{name: a, properties: {hooks: {%}}}",
	"spec#hook.rules[]":     "{name: a, properties: {hooks: {Stop: [{type: rule, rules: [{%}]}]}}}",
	"spec#toolHook.rules[]": "{name: a, properties: {hooks: {PreToolUse: [{type: rule, matcher: a, rules: [{%}]}]}}}",
}

// readStrictly is what the reader of a file says.
func readStrictly(t *testing.T, file, text string) []gate.Finding {
	t.Helper()
	switch file {
	case "test":
		_, findings := ReadTestFile("a.test.yaml", []byte(text))
		return findings
	case "spec":
		_, findings := ReadDraft("a.yaml", []byte(text))
		return findings
	case "network":
		_, findings := ReadNetwork("a", []byte(text))
		return findings
	}
	path := filepath.Join(t.TempDir(), "stopgate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LoadServer(path, func(string) string { return "" }, nil)
	return detailsOf(err)
}

// The schemas have the keys that the readers read, no more and no fewer: each
// object of each schema.
func TestSchemasHaveWhatReadersRead(t *testing.T) {
	compared := map[string]bool{}
	for place := range lenientReaders(t) { // see TestSpecSchemaHasWhatIsRead
		compared[place] = true
	}
	for name := range Schemas() {
		for place, keys := range objectsOf(t, name) {
			text, strict := strictReaders[place]
			if !strict && !compared[place] {
				t.Errorf("nothing compares %s, which has %q", place, keys)
			}
			if !strict {
				continue
			}
			var known []string
			for _, text := range strings.Split(text, "|") {
				text = strings.Replace(text, "%", `"qqqqqqqqqqqq": 1`, 1)
				known = append(known, keysOf(t, text, readStrictly(t, name, text))...)
			}
			slices.Sort(known)
			if diff := cmp.Diff(slices.Compact(known), keys); diff != "" {
				t.Errorf("%s (-reader +schema)\n%s", place, diff)
			}
		}
	}
}

// lenientReader is an object whose unknown keys are kept: what its reader asks for,
// and a document that has what stands for %.
type lenientReader struct {
	asked    []string
	document string
}

func lenientReaders(t *testing.T) map[string]lenientReader {
	t.Helper()
	read := func(text string) *resource {
		docs, err := readDocuments([]byte(text), false, &findings{})
		if err != nil {
			t.Fatal(err)
		}
		r := &resource{findings: &findings{}}
		r.read(docs[0])
		return r
	}
	// What is asked for depends on a hook's type.
	hook := func(event gate.EventName) (asked []string) {
		for _, kind := range []gate.HookType{gate.PromptHook, gate.CommandHook, gate.RuleHook} {
			o := &object{findings: &findings{}, node: &node{kind: objectKind, fields: []field{{name: "type", value: &node{kind: textKind, text: string(kind)}}}}}
			readHook(o, event, gate.CustomLevel)
			asked = append(asked, slices.DeleteFunc(o.asked, func(key string) bool { return key == "hooks" })...) // which is refused
		}
		slices.Sort(asked)
		return slices.Compact(asked)
	}
	manifest, put := read("{kind: ExtendedAgent, metadata: {name: a}, spec: {}}"), read("{type: ExtendedAgent, name: a, properties: {}}")
	global := read("{type: GlobalHook, name: a, properties: {eventType: Stop}}")
	const (
		document = "{kind: ExtendedAgent, %}"
		metadata = "{kind: ExtendedAgent, spec: {}, metadata: {%}}"
		resource = "{type: ExtendedAgent, %}"
	)
	return map[string]lenientReader{
		"spec/0": {manifest.top.asked, document}, "spec/0.metadata": {manifest.meta.asked, metadata},
		"spec/1": {manifest.top.asked, document}, "spec/1.metadata": {manifest.meta.asked, metadata},
		"spec/2": {put.top.asked, resource}, "spec/3": {put.top.asked, resource},
		"spec#agent":      {put.properties.asked, "{name: a, properties: {%}}"},
		"spec#globalHook": {global.properties.asked, "{type: GlobalHook, name: a, properties: {%}}"},
		"spec#hook":       {hook(gate.Stop), "{name: a, properties: {hooks: {Stop: [{%}]}}}"},
		"spec#toolHook":   {hook(gate.PreToolUse), "{name: a, properties: {hooks: {PreToolUse: [{%}]}}}"},
	}
}

// A spec with every key that its schema has is read without one that is unknown, and
// its reader asks for no other.
func TestSpecSchemaHasWhatIsRead(t *testing.T) {
	objects := objectsOf(t, "spec")
	for place, reader := range lenientReaders(t) {
		for _, key := range reader.asked {
			if !slices.Contains(objects[place], key) {
				t.Errorf("%s lacks %q, which is read", place, key)
			}
		}
		var keys []string
		for _, key := range objects[place] {
			if !strings.Contains(reader.document, key+":") {
				keys = append(keys, key+": {}")
			}
		}
		_, findings := ReadDraft("a.yaml", []byte(strings.Replace(reader.document, "%", strings.Join(keys, ", "), 1)))
		for _, f := range findings {
			if strings.Contains(f.Message, "is unknown") {
				t.Errorf("%s: %s", place, f)
			}
		}
	}
}
