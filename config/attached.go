package config

import (
	"bytes"
	"encoding/json"

	"stopgate/gate"
)

// ReadAttached reads the hooks of an agent in another dialect than azure: a
// hooks.json of the Gemini API's agents (spec/antigravity.md 1), one of AX Code
// (spec/ax-code.md 2), or the hooks of a Claude Code settings.json
// (spec/claude-code.md 1).
//
// The findings say what that system would do with what it cannot take. The spec
// is nil where one is an error: a file that its own system drops whole is
// dropped whole here.
func ReadAttached(d gate.Dialect, agent string, data []byte) (*gate.Spec, []gate.Finding) {
	spec, list := draftAttached(d, agent, data)
	if gate.HasErrors(list) {
		return nil, list
	}
	return spec, list
}

// draftAttached is [ReadAttached] that answers the spec of a file with errors
// too, as far as it could be read.
func draftAttached(d gate.Dialect, agent string, data []byte) (*gate.Spec, []gate.Finding) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // no part of the document
	var f findings
	docs, err := readDocuments(data, true, &f)
	if err != nil {
		return nil, append(f.list, detailsOf(err)...)
	}
	hooks := readAttached(d, docs[0], &f)
	return &gate.Spec{Kind: gate.Attached(d), Name: agent, Document: json.RawMessage(data), Hooks: hooks}, f.sorted()
}

// readAttached reads the hooks in the order in which they fire.
func readAttached(d gate.Dialect, n *node, f *findings) []gate.Hook {
	switch d {
	case gate.Antigravity:
		return readAntigravity(n, f)
	case gate.AXCode:
		return readAXCode(n, f)
	case gate.ClaudeCode:
		return readClaudeCode(n, f)
	}
	f.errorf("", n.pos, "hooks of %s are not read here", d)
	return nil
}
