package config

import (
	"slices"
	"strings"

	"stopgate/gate"
)

// document is the resource as it is stored and read back: name, type, tags,
// owner, properties, then what we do not know, sorted. A YAML manifest's
// metadata beyond name, tags and owner stays under "metadata".
func (r *resource) document(kind gate.SpecKind) []byte {
	var fields []field
	put := func(name string, value *node) {
		if value != nil {
			fields = append(fields, field{name: name, value: value})
		}
	}
	var extra []field
	if r.meta != nil {
		put("name", r.meta.node.find("name"))
		put("type", &node{kind: textKind, text: typeNames[kind]})
		put("tags", r.meta.node.find("tags"))
		put("owner", r.meta.node.find("owner"))
		if rest := r.meta.rest(); r.meta != r.top && len(rest) > 0 {
			extra = append(extra, field{name: "metadata", value: &node{kind: objectKind, fields: rest}})
		}
	}
	if r.properties != nil {
		put("properties", r.properties.node)
	}
	extra = append(extra, r.top.rest()...)
	slices.SortFunc(extra, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return appendFields(nil, append(fields, extra...), true)
}
