package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stopgate/gate"
)

// systemNames is what the hook systems call themselves.
var systemNames = map[gate.Dialect]string{gate.Azure: "Azure SRE Agent", gate.Antigravity: "the Gemini API's sandbox", gate.AXCode: "AX Code",
	gate.ClaudeCode: "Claude Code"}

// SystemName is what the system of a dialect's hooks calls itself.
func SystemName(d gate.Dialect) string { return systemNames[d] }

// places is where each system looks for its hooks below a project's directory.
var places = []struct {
	dialect gate.Dialect
	path    string
}{
	{gate.Antigravity, ".agents/hooks.json"}, {gate.AXCode, ".ax-code/hooks.json"},
	{gate.ClaudeCode, ".claude/settings.json"}, {gate.ClaudeCode, ".claude/settings.local.json"},
}

// HookPlaces are the files below a project's directory, with slashes, in which
// systems other than azure look for their hooks; of those that are given, if any
// is, in their order.
func HookPlaces(of ...gate.Dialect) []string {
	var paths []string
	for _, p := range places {
		if len(of) == 0 || slices.Contains(of, p.dialect) {
			paths = append(paths, p.path)
		}
	}
	return paths
}

// ProjectOf is the directory of the project that a file of hooks belongs to: the
// one above the place where a system looks for it, else the file's own.
func ProjectOf(name string) string {
	if d, project := placed(name); d != "" {
		return project
	}
	return filepath.Dir(name)
}

// DialectOf says whose hooks a text is: by the place of a file where a system
// looks for its own, else by what is in it, and where that says nothing by the
// file's name. name is the path of a file, of YAML by its extension, or empty
// for JSON that came otherwise. A text that cannot be read is azure's, whose
// reader says why.
//
// The error says what the text could be, and that the dialect is to be named.
func DialectOf(name string, data []byte) (gate.Dialect, error) {
	if d, _ := placed(name); d != "" {
		return d, nil
	}
	n := jsonOf(name, data)
	if n == nil {
		return gate.Azure, nil
	}
	if what := n.testInput(); what != "" {
		return "", errors.New(what)
	}
	likely := n.likeness()
	switch base := filepath.Base(name); {
	case len(likely) == 1:
		return likely[0], nil
	case base == "settings.json" || base == "settings.local.json":
		return gate.ClaudeCode, nil
	}
	const how = "; name the dialect (--dialect D, over HTTP ?dialect=D)"
	if len(likely) > 1 {
		var could []string
		for _, d := range likely {
			could = append(could, fmt.Sprintf("%s (%s)", d, systemNames[d]))
		}
		return "", fmt.Errorf("these could be hooks of %s%s", strings.Join(could, " or of "), how)
	}
	return "", fmt.Errorf("nothing tells whose hooks these are: a spec of azure has properties or api_version, a hooks.json of antigravity groups with "+
		"pre_tool_execution or post_tool_execution, one of ax-code a list named hooks or packs, settings of claude-code an object named hooks%s", how)
}

// placed is the dialect whose system looks for its hooks in a place like this,
// and the directory of the project; empty: none does.
func placed(name string) (d gate.Dialect, project string) {
	name = filepath.ToSlash(filepath.Clean(name))
	for _, p := range places {
		if above, ok := strings.CutSuffix(name, p.path); ok && (above == "" || strings.HasSuffix(above, "/")) {
			return p.dialect, filepath.Clean(filepath.FromSlash(above))
		}
	}
	return "", ""
}

// jsonOf is a text's JSON; nil: it is YAML by its name, or cannot be read.
func jsonOf(name string, data []byte) *node {
	if extension := strings.ToLower(filepath.Ext(name)); extension == ".yaml" || extension == ".yml" {
		return nil
	}
	docs, err := readDocuments(data, true, &findings{})
	if err != nil {
		return nil
	}
	return docs[0]
}

// likeness are the dialects that a document has the form of.
func (n *node) likeness() []gate.Dialect {
	has := func(names ...string) bool { return slices.ContainsFunc(names, n.has) }
	hooks := n.find("hooks")
	ofKind := func(v *node, k kind) bool { return v != nil && v.kind == k }
	grouped := len(n.groups()) > 0
	var likely []gate.Dialect
	kind := n.find("type")
	switch spec := has("properties", "spec", "kind", "api_version", "metadata") || ofKind(kind, textKind) && (kind.text == extendedAgent || kind.text == globalHook); {
	case spec && !grouped: // what else stands in a spec is kept
		return []gate.Dialect{gate.Azure}
	case spec:
		likely = append(likely, gate.Azure)
	}
	if grouped {
		likely = append(likely, gate.Antigravity)
	}
	if ofKind(hooks, listKind) || ofKind(n.find("packs"), listKind) {
		likely = append(likely, gate.AXCode)
	}
	if ofKind(hooks, objectKind) && !slices.Contains(n.groups(), "hooks") || has("disableAllHooks") || !grouped && has(ClaudeCodeEvents()...) {
		likely = append(likely, gate.ClaudeCode)
	}
	return likely
}

// testInput says what a document is that belongs to tests, which may lie below a
// directory of specs: the record of an evaluation, whose hooks are the verdicts of
// then, or an event. "": it is neither.
func (n *node) testInput() string {
	const use = ", and holds no hooks: tests name it as their event_file, in a directory below the specs, where no server looks for any"
	text := func(name string) bool { v := n.find(name); return v != nil && v.kind == textKind }
	switch {
	case text("evaluation_id") && text("decision"):
		return "this is a recorded evaluation" + use
	case text("hook_event_name") && !n.has("hooks"):
		return "this is an event" + use
	}
	return ""
}

// isNetwork reports whether a document has the form of a network object.
func (n *node) isNetwork() bool {
	members := len(n.fields)
	if n.has(schemaMember) {
		members--
	}
	return n.has("allowlist") || members == 1 && n.has("network")
}

// groups are the names of members that have an event of antigravity.
func (n *node) groups() (names []string) {
	for _, f := range n.fields {
		for _, e := range antigravityEvents {
			if f.name == e.name || f.value.has(e.name) {
				names = append(names, f.name)
				break
			}
		}
	}
	return names
}

// ReadHooks reads a file of hooks of any dialect, d or, if that is empty, the
// one that [DialectOf] finds. A network object (spec/antigravity.md 15) is one
// of these files too, and so is a test file, which lies beside them. What tests
// name as their event has no specs, and nothing wrong with it: a warning says what
// it is. As with [ReadDraft] the specs are those of a file with errors too.
func ReadHooks(d gate.Dialect, name string, data []byte) ([]*gate.Spec, []gate.Finding) {
	if IsTestFile(name) {
		_, list := ReadTestFile(name, data)
		return nil, list
	}
	n := jsonOf(name, data)
	if d == "" {
		if n != nil && n.isNetwork() {
			_, list := ReadNetwork("", data)
			return nil, list
		}
		if n != nil && n.testInput() != "" {
			return nil, []gate.Finding{{Severity: gate.SeverityWarning, Line: n.line, Column: n.column, Message: n.testInput()}}
		}
		var err error
		if d, err = DialectOf(name, data); err != nil {
			return nil, []gate.Finding{{Severity: gate.SeverityError, Line: 1, Column: 1, Message: err.Error()}}
		}
	}
	if d == gate.Azure {
		if isServerFile(name, data) {
			return nil, []gate.Finding{{Severity: gate.SeverityError, Line: 1, Column: 1,
				Message: "this is a server file of stopgate, and holds no hooks: stopgate serve --check --config FILE says what is wrong with it"}}
		}
		return ReadDraft(name, data)
	}
	spec, list := draftAttached(d, "", data)
	if at, _ := placed(name); n != nil && at == d {
		if likely := n.likeness(); len(likely) == 1 && likely[0] != d {
			list = append([]gate.Finding{{Severity: gate.SeverityWarning, Line: n.line, Column: n.column,
				Message: fmt.Sprintf("file lies where %s looks for its hooks, and reads like one of %s", systemNames[d], systemNames[likely[0]])}}, list...)
		}
	}
	if spec == nil {
		return nil, list
	}
	spec.Source = name
	return []*gate.Spec{spec}, list
}

// isServerFile reports whether a text is a server file: all that stands in it does
// there, or by the file's name it is one and some of it does.
func isServerFile(name string, data []byte) bool {
	docs, err := readDocuments(data, strings.EqualFold(filepath.Ext(name), ".json"), &findings{})
	if err != nil || len(docs) != 1 || len(docs[0].fields) == 0 || len(docs[0].likeness()) > 0 {
		return false
	}
	keys, _ := serverSchema()["properties"].(schema)
	known := 0
	for _, f := range docs[0].fields {
		if _, is := keys[f.name]; is {
			known++
		}
	}
	return known == len(docs[0].fields) || known > 0 && slices.Contains([]string{"stopgate.yaml", "stopgate.yml"}, filepath.Base(name))
}
