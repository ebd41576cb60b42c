package config

import (
	"encoding/json"
	"regexp"
	"slices"

	"stopgate/gate"
)

// hiddenSecret stands in an answer where a document has a secret.
const hiddenSecret = "[hidden]"

// HideSecrets is the document of a resource of that kind as an answer may have it:
// a mark stands for each header's value of a network's transform and of http hooks,
// and for each variable of settings; of settings the other members are left out.
// A header that is a variable alone is shown. What cannot be read is shown not at
// all, but hooks without secrets as they were written.
func HideSecrets(kind gate.SpecKind, document json.RawMessage) json.RawMessage {
	var f findings
	docs, err := readDocuments(document, true, &f)
	if err != nil {
		return json.RawMessage("{}")
	}
	n := docs[0]
	if kind == gate.NetworkSpec {
		hideSecrets(n, false)
		return n.canonical()
	}
	changed := kind == gate.Attached(gate.ClaudeCode) && onlyHooks(n, nil)
	eachSecret(kind, n, "", func(_ string, f field) {
		f.value.kind, f.value.text, changed = textKind, hiddenSecret, true
	})
	if !changed {
		return document
	}
	return n.ordered()
}

// hideSecrets marks every value below a "transform".
func hideSecrets(n *node, secret bool) {
	for _, f := range n.fields {
		hideSecrets(f.value, secret || f.name == "transform")
	}
	for _, item := range n.items {
		hideSecrets(item, secret)
	}
	if secret && n.kind != objectKind && n.kind != listKind {
		n.kind, n.text = textKind, hiddenSecret
	}
}

// eachSecret visits the values of a document with hooks that no answer shows.
func eachSecret(kind gate.SpecKind, n *node, path string, visit func(path string, f field)) {
	of := object{path: path}
	for _, f := range n.fields {
		at := of.child(f.name)
		settings := kind == gate.Attached(gate.ClaudeCode)
		switch {
		case f.name == "headers", path == "" && f.name == "env" && settings:
			for _, value := range f.value.fields {
				if f.name == "env" || !settings || !variableAlone.MatchString(value.value.text) {
					visit(at+"."+value.name, value)
				}
			}
		default:
			eachSecret(kind, f.value, at, visit)
		}
	}
	for _, item := range n.items {
		eachSecret(kind, item, path, visit)
	}
}

// variableAlone is a header's value that holds no secret itself: a variable,
// perhaps behind the name of a scheme.
var variableAlone = regexp.MustCompile(`^(?:(?:Bearer|Basic|Token|token|bearer|basic) )?\$(?:\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)$`)

// refuseHidden is an error for each mark that stands where a secret belongs: what
// an answer shows was put again, and would destroy what is there.
func refuseHidden(kind gate.SpecKind, n *node, f *findings) {
	eachSecret(kind, n, "", func(path string, v field) {
		if v.value.kind == textKind && v.value.text == hiddenSecret {
			f.errorf(path, v.value.pos, "%s is %q, which an answer shows in the place of a secret: write the secret itself", cut(v.name), hiddenSecret)
		}
	})
}

// onlyHooks takes from settings all that hooks do not need, and the variables that
// keep does not have (nil: it has all). It reports whether there was any.
func onlyHooks(n *node, keep map[string]string) (changed bool) {
	needed := func(f field) bool { return f.name == "hooks" || f.name == "disableAllHooks" || f.name == "env" }
	before := len(n.fields)
	n.fields = slices.DeleteFunc(n.fields, func(f field) bool { return !needed(f) })
	changed = len(n.fields) < before
	env := n.find("env")
	if env == nil || keep == nil {
		return changed
	}
	before = len(env.fields)
	env.fields = slices.DeleteFunc(env.fields, func(f field) bool { _, kept := keep[f.name]; return !kept })
	return changed || len(env.fields) < before || env.kind != objectKind
}
