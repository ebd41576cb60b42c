package config

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"stopgate/gate"
)

// Locate gives findings about hooks of a spec, which have a hook's name for their
// path and no place, the path, line and column of the hook in the file that the
// spec was read from. name and data are as they were for [ReadHooks]; name may be
// empty.
func Locate(spec *gate.Spec, name string, data []byte, found []gate.Finding) []gate.Finding {
	sources := sourcesOf(spec, name, data)
	located := slices.Clone(found)
	for i, f := range located {
		if at, known := sources[f.Path]; known && f.Line == 0 {
			located[i].Path, located[i].Line, located[i].Column = at.path, at.node.line, at.node.column
		}
	}
	return located
}

// sourcesOf is where a spec's hooks stand, by their names.
func sourcesOf(spec *gate.Spec, name string, data []byte) map[string]sourced {
	at := slices.IndexFunc(gate.Dialects, func(d gate.Dialect) bool { return d != gate.Azure && spec.Kind == gate.Attached(d) })
	isJSON := at >= 0 || strings.EqualFold(filepath.Ext(name), ".json")
	docs, err := readDocuments(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), isJSON, &findings{})
	if err != nil {
		return nil
	}
	for _, doc := range docs {
		f := &findings{}
		if at >= 0 {
			readAttached(gate.Dialects[at], doc, f)
			return f.sources
		}
		r := resource{findings: f}
		if read := r.read(doc); read != nil && read.Kind == spec.Kind && read.Name == spec.Name {
			return f.sources
		}
	}
	return nil
}
