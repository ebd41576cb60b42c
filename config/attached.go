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

// ReadShown is [ReadAttached] of what [HideSecrets] gives: its marks are no errors.
func ReadShown(d gate.Dialect, agent string, document []byte) (*gate.Spec, []gate.Finding) {
	spec, list := draftOf(d, agent, document, func(*node, *findings) {})
	if gate.HasErrors(list) {
		return nil, list
	}
	return spec, list
}

// draftAttached is [ReadAttached] that answers the spec of a file with errors
// too, as far as it could be read.
func draftAttached(d gate.Dialect, agent string, data []byte) (*gate.Spec, []gate.Finding) {
	return draftOf(d, agent, data, func(n *node, f *findings) { refuseHidden(gate.Attached(d), n, f) })
}

func draftOf(d gate.Dialect, agent string, data []byte, check func(*node, *findings)) (*gate.Spec, []gate.Finding) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // no part of the document
	var f findings
	docs, err := readDocuments(data, true, &f)
	if err != nil {
		return nil, append(f.list, detailsOf(err)...)
	}
	hooks := readAttached(d, docs[0], &f)
	check(docs[0], &f)
	spec := &gate.Spec{Kind: gate.Attached(d), Name: agent, Document: json.RawMessage(data), Hooks: hooks}
	if d == gate.ClaudeCode && docs[0].kind == objectKind {
		spec.Document = keepSettings(docs[0], hooks, &f, spec.Document)
	}
	return spec, f.sorted()
}

// keepSettings gives hooks the variables of their settings that a server keeps, and
// answers the document without what it does not: settings hold much that is nobody's
// business there.
func keepSettings(n *node, hooks []gate.Hook, f *findings, whole json.RawMessage) json.RawMessage {
	r := &claudeCodeReader{findings: f, hooks: hooks}
	kept := r.keep(n, r.env(n))
	giveEnv(hooks, kept)
	if !onlyHooks(n, kept) {
		return whole
	}
	return n.ordered()
}

// ReadPlayed reads the hooks of a file as run-hooks plays them, on the machine of
// the person whose file it is. It differs from [ReadAttached] for Claude Code: a
// hook that could not be asked exactly when that would ask it is asked more often,
// one that the gate cannot run is left out alone, and env are all variables that
// hooks get, for the caller to give: those of several files go together.
//
// The spec has no hooks where the system itself skips the file, as the findings
// say; it is nil where the file could not be read.
func ReadPlayed(d gate.Dialect, agent string, data []byte) (spec *gate.Spec, env map[string]string, list []gate.Finding) {
	if d != gate.ClaudeCode {
		spec, list = ReadAttached(d, agent, data)
		return spec, nil, list
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var f findings
	docs, err := readDocuments(data, true, &f)
	if err != nil {
		return nil, nil, append(f.list, detailsOf(err)...)
	}
	unread := f.errors
	r := &claudeCodeReader{findings: &f, events: claudeCodeEvents, played: true}
	r.read(docs[0])
	spec = &gate.Spec{Kind: gate.Attached(d), Name: agent, Document: json.RawMessage(data), Hooks: r.hooks}
	switch {
	case unread > 0 || r.ours > 0:
		spec = nil
	case f.errors > 0:
		spec.Hooks = nil
	default:
		env = r.env(docs[0])
	}
	return spec, env, f.sorted()
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
