package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"stopgate/gate"
	"stopgate/internal/hostname"
)

// ReadNetwork reads what an agent's http hooks may reach, the `network` of its
// environment (spec/antigravity.md 15):
//
//	{"allowlist": [{"domain": "telemetry.example.com", "transform": {"Authorization": "Bearer …"}}, {"domain": "*"}]}
//
// or "disabled". Either may also be the value of an object's only key,
// "network", as in the environment it is copied from. It is read strictly: a
// misspelt key would open, or close, more than was meant. Beside them an object may
// have a "$schema", for editors.
//
// The spec is nil where a finding is an error. No finding quotes a header's
// value. The spec's Document is an object and holds the secrets: it is to be
// shown through [HideSecrets] alone.
func ReadNetwork(agent string, data []byte) (*gate.Spec, []gate.Finding) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // no part of the document
	var f findings
	if word := string(bytes.TrimSpace(data)); word == disabled {
		f.errorf("", pos{1, 1}, `network is the word %s without quotes, want the JSON text "%[1]s", as curl -d '"%[1]s"'`, word)
		return nil, f.list
	}
	docs, err := readDocuments(data, true, &f)
	if err != nil {
		return nil, append(f.list, detailsOf(err)...)
	}
	network := readNetwork(docs[0], &f)
	list := f.sorted()
	if gate.HasErrors(list) {
		return nil, list
	}
	document := json.RawMessage(data)
	if docs[0].kind == textKind {
		document = fmt.Appendf(nil, `{"network":%s}`, docs[0].canonical())
	}
	return &gate.Spec{Kind: gate.NetworkSpec, Name: agent, Document: document, Network: network}, list
}

// disabled is the text that lets nothing out.
const disabled = "disabled"

// schemaMember is where a JSON document says by which schema an editor completes it.
const schemaMember = "$schema"

func readNetwork(n *node, f *findings) *gate.Network {
	path := ""
	if n.kind == objectKind && n.has("network") {
		o := &object{findings: f, node: n}
		inner := o.node.find("network")
		o.value("network")
		o.text(schemaMember)
		o.unknown(true)
		n, path = inner, "network"
	}
	switch {
	case n.kind == textKind && n.text == disabled:
		return &gate.Network{Disabled: true}
	case n.kind != objectKind:
		f.errorf(path, n.pos, `network is %s, want an object with an allowlist, or "disabled"`, n.describe())
		return nil
	}
	if n.has(disabled) {
		f.errorf(path, n.pos, `network is an object with %s, want the JSON text "%[1]s" in its place; without that, an object with an allowlist`, disabled)
		return nil
	}
	o := &object{findings: f, path: path, node: n}
	defer o.unknown(true)
	if path == "" {
		o.text(schemaMember)
	}
	if o.value("allowlist") == nil {
		if n.has("allowlist") {
			o.errorf(o.child("allowlist"), o.place("allowlist"), "allowlist is null, want a list")
			return nil
		}
		f.warnf(path, n.pos, `there is no allowlist, so every external host may be reached; "disabled" allows none`)
		return &gate.Network{}
	}
	items := o.list("allowlist")
	network := &gate.Network{Disabled: len(items) == 0, Allow: []gate.Destination{}} // nothing is listed, so nothing may be reached
	if network.Disabled {
		f.warnf(o.child("allowlist"), o.place("allowlist"), "allowlist is empty, so no host may be reached")
	}
	for i, item := range items {
		path := fmt.Sprintf("%s[%d]", o.child("allowlist"), i)
		if item.kind != objectKind {
			f.errorf(path, item.pos, `allowlist[%d] is %s, want an object, as {"domain": "hooks.example.com"}`, i, item.describe())
			continue
		}
		network.Allow = append(network.Allow, readDestination(&object{findings: f, path: path, node: item}))
	}
	return network
}

func readDestination(o *object) gate.Destination {
	defer o.unknown(true)
	d := gate.Destination{Domain: o.text("domain")}
	wrongType := d.Domain == "" && o.value("domain") != nil && o.value("domain").kind != textKind // which has been reported
	p, fault := hostname.ReadPattern(d.Domain)
	if fault == "" && p.Port != "" {
		fault = "has a port: want a host without its port"
	}
	if fault != "" && !wrongType {
		o.errorf(o.child("domain"), o.place("domain"), "domain is %q: it %s", cut(d.Domain), fault)
	}
	if thisMachine(p.Host) {
		o.warnf(o.child("domain"), o.place("domain"), "domain is %q, which is always refused: http hooks of this dialect reach no loopback address", d.Domain)
	}
	transform := o.value("transform")
	if transform == nil {
		return d
	}
	maps, path := []*node{transform}, o.child("transform")
	if transform.kind == listKind {
		maps = transform.items
	}
	seen := map[string]bool{}
	for i, m := range maps {
		at := path
		if transform.kind == listKind {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		if m.kind != objectKind {
			o.errorf(at, m.pos, "transform is neither an object of headers nor a list of them") // its value may be a secret
			continue
		}
		for _, f := range m.fields {
			if fault := headerFault(f, seen); fault != "" {
				o.errorf(at+"."+f.name, f.pos, "header %q %s", cut(f.name), fault)
				continue
			}
			if _, credentials, schemed := strings.Cut(f.value.text, " "); len(f.value.text) < gate.ShortestSecret || schemed && len(credentials) < gate.ShortestSecret {
				o.warnf(at+"."+f.name, f.pos, "header %q has a secret of fewer than %d bytes, which is not taken out of what a server says", cut(f.name), gate.ShortestSecret)
			}
			d.Transform = append(d.Transform, gate.Header{Name: f.name, Value: f.value.text})
		}
	}
	return d
}

// headerFault says what is wrong with a header of a transform, without its
// value.
func headerFault(f field, seen map[string]bool) string {
	name := strings.ToLower(f.name)
	switch {
	case f.value.kind != textKind:
		return "has a value that is no text"
	case f.value.text == hiddenSecret:
		return fmt.Sprintf("has the value %q, which an answer shows in the place of a secret: write the secret itself", hiddenSecret)
	case seen[name]:
		return "is given twice, in whatever letter case"
	}
	seen[name] = true
	return gate.HeaderFault(f.name, f.value.text)
}
