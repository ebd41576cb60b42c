package server

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"stopgate/gate"
)

func document(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	rec := newWorld(t).must(t, 200, "GET", "/openapi.yaml", "")
	if err := yaml.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// openAPIPath is a route's path as the document spells it.
func openAPIPath(path string) string {
	return regexp.MustCompile(`:(\w+)`).ReplaceAllString(path, "{$1}")
}

// at follows keys into nested objects.
func at(t *testing.T, v any, keys ...string) any {
	t.Helper()
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok || m[k] == nil {
			t.Fatalf("openapi.yaml has no %q of %q", k, keys)
		}
		v = m[k]
	}
	return v
}

func TestOpenAPIHasEveryRouteAndNoOther(t *testing.T) {
	var documented, registered []string
	for path, item := range at(t, document(t), "paths").(map[string]any) {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				documented = append(documented, strings.ToUpper(method)+" "+path)
			}
		}
	}
	for _, r := range newWorld(t).echo.Routes() {
		if r.Method != http.MethodHead {
			registered = append(registered, r.Method+" "+openAPIPath(r.Path))
		}
	}
	slices.Sort(documented)
	slices.Sort(registered)
	if d := cmp.Diff(registered, documented); d != "" {
		t.Errorf("routes (-registered +documented):\n%s", d)
	}
}

func TestOpenAPISaysWhatScopeARouteNeeds(t *testing.T) {
	doc := document(t)
	for _, r := range newWorld(t).routes() {
		operation := at(t, doc, "paths", openAPIPath(r.path), strings.ToLower(r.method)).(map[string]any)
		want := []any{}
		if !r.access.open {
			for _, scheme := range []string{"bearer", "certificate"} {
				want = append(want, map[string]any{scheme: []any{string(r.access.scope)}})
			}
		}
		if d := cmp.Diff(any(want), operation["security"]); d != "" {
			t.Errorf("%s %s (-route +documented):\n%s", r.method, r.path, d)
		}
	}
}

func TestOpenAPIListsWhatTheGateLists(t *testing.T) {
	doc := document(t)
	strs := func(n int, at func(int) string) (list []string) {
		for i := range n {
			list = append(list, at(i))
		}
		slices.Sort(list)
		return list
	}
	var codes []string
	for code := range statuses {
		for _, path := range []string{"/api/x", "/v1/x"} {
			codes = append(codes, string(codeOn(path, code)))
		}
	}
	slices.Sort(codes)
	for schema, want := range map[string][]string{
		"EventName":   strs(len(gate.EventNames), func(i int) string { return string(gate.EventNames[i]) }),
		"Note":        strs(len(gate.Notes), func(i int) string { return string(gate.Notes[i]) }),
		"FailureCode": strs(len(gate.FailureCodes), func(i int) string { return string(gate.FailureCodes[i]) }),
		"ErrorCode":   slices.Compact(codes),
		"Action":      strs(len(gate.Actions), func(i int) string { return string(gate.Actions[i]) }),
		"Dialect":     strs(len(gate.Dialects), func(i int) string { return string(gate.Dialects[i]) }),
		"Scope":       strs(len(gate.Scopes), func(i int) string { return string(gate.Scopes[i]) }),
	} {
		enum := at(t, doc, "components", "schemas", schema, "enum").([]any)
		if d := cmp.Diff(want, strs(len(enum), func(i int) string { return enum[i].(string) })); d != "" {
			t.Errorf("%s (-code +document):\n%s", schema, d)
		}
	}
}

// shape is a JSON value with its leaves replaced by their types.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, x := range v {
			m[k] = shape(x)
		}
		return m
	case []any:
		if len(v) == 0 {
			return []any{}
		}
		return []any{shape(v[0])}
	case string:
		return "string"
	case int, float64:
		return "number"
	}
	return v
}

func TestOpenAPIExamplesAreWhatHandlersAnswer(t *testing.T) {
	doc := document(t)
	w := newWorld(t)
	w.judge = needsMarker
	w.agent(t, "my_agent", gate.Stop, "Stop[0]")
	post := at(t, doc, "paths", "/v1/evaluate", "post")

	event, err := json.Marshal(at(t, post, "requestBody", "content", "application/json", "examples", "stop", "value"))
	if err != nil {
		t.Fatal(err)
	}
	decision := fields(t, w.must(t, 200, "POST", "/v1/evaluate", string(event)))
	example := at(t, post, "responses", "200", "content", "application/json", "examples", "rejected", "value")
	if d := cmp.Diff(shape(decision), shape(example)); d != "" {
		t.Errorf("evaluate (-handler +example):\n%s", d)
	}

	refused := fields(t, w.must(t, 400, "PUT", "/api/v2/extendedAgent/agents/bad", `{"name":"bad"}`))
	example = at(t, doc, "components", "responses", "Error", "content", "application/json", "examples", "invalid", "value")
	if d := cmp.Diff(shape(refused), shape(example)); d != "" {
		t.Errorf("error (-handler +example):\n%s", d)
	}
}

func TestOpenAPIRequiresWhatHandlersAnswer(t *testing.T) {
	doc := document(t)
	w := newWorld(t)
	w.agent(t, "marker", gate.Stop, "ends")
	w.must(t, 202, "PUT", "/api/v2/extendedAgent/hooks/h", `{"name":"h","type":"GlobalHook","properties":{"eventType":"Stop"}}`)
	w.must(t, 200, "PUT", "/v1/sessions/s1/transcript", "a\n", "Content-Type: text/plain")
	w.opt.MintKey = func() (string, string, [32]byte) { return "id1", "sg_id1", [32]byte{1} }
	decision := fields(t, w.must(t, 200, "POST", "/v1/evaluate", stop))
	key := fields(t, w.must(t, 201, "POST", "/v1/keys", `{"name":"ci","scopes":["read"],"expires":"2100-01-01T00:00:00Z"}`))
	delete(key, "key")
	first := func(m map[string]any, list string) map[string]any { return m[list].([]any)[0].(map[string]any) }
	id := decision["evaluation_id"].(string)
	if of := first(decision, "hooks")["dialect"]; of != "azure" {
		t.Errorf("the hook's dialect is %v", of)
	}

	for schema, answer := range map[string]map[string]any{
		"Decision":       decision,
		"Verdict":        first(decision, "hooks"),
		"Record":         fields(t, w.must(t, 200, "GET", "/v1/evaluations/"+id, "")),
		"RecordSummary":  first(fields(t, w.must(t, 200, "GET", "/v1/evaluations", "")), "value"),
		"ThreadHook":     first(fields(t, w.must(t, 200, "GET", "/api/v1/threads/s1/hooks", "")), "hooks"),
		"Session":        fields(t, w.must(t, 200, "GET", "/v1/sessions/s1", "")),
		"Key":            key,
		"HooksOfDialect": first(fields(t, w.must(t, 200, "GET", "/v1/agents/marker/hooks", "")), "value"),
		"AuditEntry":     first(fields(t, w.must(t, 200, "GET", "/v1/audit", "")), "value"),
		"Resource":       fields(t, w.must(t, 200, "GET", "/api/v2/extendedAgent/agents/marker", "")),
	} {
		required, known := propertiesOf(t, doc, at(t, doc, "components", "schemas", schema))
		for _, k := range required {
			if _, ok := answer[k]; !ok {
				t.Errorf("%s: the answer lacks the required %q: %v", schema, k, answer)
			}
		}
		for k := range answer {
			if !slices.Contains(known, k) {
				t.Errorf("%s: the answer's %q is not documented", schema, k)
			}
		}
	}
}

// propertiesOf are a schema's required and known properties, references and
// allOf included.
func propertiesOf(t *testing.T, doc map[string]any, schema any) (required, known []string) {
	s := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return propertiesOf(t, doc, at(t, doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...))
	}
	if all, ok := s["allOf"].([]any); ok {
		for _, part := range all {
			r, k := propertiesOf(t, doc, part)
			required, known = append(required, r...), append(known, k...)
		}
		return required, known
	}
	if list, ok := s["required"].([]any); ok {
		for _, r := range list {
			required = append(required, r.(string))
		}
	}
	for k := range s["properties"].(map[string]any) {
		known = append(known, k)
	}
	return required, known
}

func TestOpenAPIReferencesLeadSomewhere(t *testing.T) {
	doc := document(t)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				at(t, doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(doc)
}
