package config

import (
	"path/filepath"
	"slices"
	"strings"

	"stopgate/gate"
)

// DialectOf is the system whose hooks a file holds: by its name, as that system
// finds it; of a JSON file with another name by what is in it. A file that is
// none of the others' is azure's, an agent spec.
func DialectOf(name string, data []byte) gate.Dialect {
	base, dir := filepath.Base(name), filepath.Base(filepath.Dir(name))
	switch {
	case dir == ".ax-code" && base == "hooks.json":
		return gate.AXCode
	case dir == ".agents" && base == "hooks.json":
		return gate.Antigravity
	case dir == ".claude" && (base == "settings.json" || base == "settings.local.json"):
		return gate.ClaudeCode
	case strings.ToLower(filepath.Ext(base)) != ".json":
		return gate.Azure
	}
	var ignored findings
	docs, err := readDocuments(data, true, &ignored)
	if err != nil || docs[0].kind != objectKind {
		return gate.Azure
	}
	return dialectIn(docs[0])
}

func dialectIn(doc *node) gate.Dialect {
	if slices.ContainsFunc([]string{"properties", "spec", "kind"}, doc.has) {
		return gate.Azure
	}
	hooks, packs := doc.find("hooks"), doc.find("packs")
	switch {
	case hooks != nil && hooks.kind == listKind, hooks == nil && packs != nil && packs.kind == listKind:
		return gate.AXCode
	case hooks != nil && hooks.kind == objectKind:
		return gate.ClaudeCode
	case slices.ContainsFunc(doc.fields, func(f field) bool { return f.value.has("pre_tool_execution") || f.value.has("post_tool_execution") }):
		return gate.Antigravity
	}
	return gate.Azure
}
