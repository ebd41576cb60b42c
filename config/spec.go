package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"stopgate/gate"
)

// ReadSpec reads one ExtendedAgent or GlobalHook, in JSON or as a YAML v2
// document (spec/azure.md 1, 2, 7). Without a type it is an ExtendedAgent.
//
// The findings are warnings. The error is an [*gate.Error] whose Details are
// all error findings: CodeUnsupportedMediaType, CodeInvalidJSON (no readable
// JSON or YAML), CodeInvalidObjectType (a type that is not expected) or
// CodeValidation.
func ReadSpec(contentType string, body []byte) (*gate.Spec, []gate.Finding, error) {
	return readBody("", contentType, body)
}

// ReadSpecAs is [ReadSpec] where the kind is known from the route: an agent's
// type may be left out, a hook's may not (spec/azure.md 7).
func ReadSpecAs(kind gate.SpecKind, contentType string, body []byte) (*gate.Spec, []gate.Finding, error) {
	return readBody(kind, contentType, body)
}

// mediaTypes are the content types read as JSON (true) and as YAML (false).
var mediaTypes = map[string]bool{"application/json": true, "application/yaml": false, "text/yaml": false,
	"application/x-yaml": false, "text/x-yaml": false}

func readBody(kind gate.SpecKind, contentType string, body []byte) (*gate.Spec, []gate.Finding, error) {
	media, _, _ := strings.Cut(contentType, ";")
	isJSON, ok := mediaTypes[strings.ToLower(strings.TrimSpace(media))]
	if !ok {
		return nil, nil, gate.Errorf(gate.CodeUnsupportedMediaType,
			"content type %q is not read, want application/json or application/yaml", contentType)
	}
	var f findings
	docs, err := readDocuments(body, isJSON, &f)
	switch {
	case err != nil:
		return nil, nil, err
	case len(docs) == 0:
		return nil, nil, syntaxError(pos{1, 1}, "body is empty, want one resource")
	case len(docs) > 1:
		return nil, nil, syntaxError(docs[1].pos, "body holds %d documents, want one", len(docs))
	}
	r := resource{findings: &f, want: kind}
	spec := r.read(docs[0])
	errs, warnings := split(f.sorted())
	if len(errs) == 0 {
		return spec, warnings, nil
	}
	code := gate.CodeValidation
	if r.wrongType {
		code = gate.CodeInvalidObjectType
	}
	return nil, warnings, refusal(code, errs)
}

func readDocuments(data []byte, isJSON bool, f *findings) ([]*node, error) {
	data, err := plainText(data)
	if err != nil {
		return nil, err
	}
	f.text = data
	if !isJSON {
		return readYAML(data, f)
	}
	n, err := readJSON(data, f)
	if err != nil {
		return nil, err
	}
	return []*node{n}, nil
}

// ReadSpecFile reads a file of resources: JSON with one, or YAML with any
// number of documents, agents and hooks mixed. The extension of name says
// which.
//
// The findings are errors and warnings, in the order of the text. Specs are
// returned only if no finding is an error; their Source is name.
func ReadSpecFile(name string, data []byte) ([]*gate.Spec, []gate.Finding) {
	specs, findings := ReadDraft(name, data)
	if gate.HasErrors(findings) {
		return nil, findings
	}
	return specs, findings
}

// ReadDraft is [ReadSpecFile] that returns the specs of a file with errors too,
// as far as they could be read: to be counted, never to be put in force.
func ReadDraft(name string, data []byte) ([]*gate.Spec, []gate.Finding) {
	var f findings
	return readDraft(name, data, &f), f.sorted()
}

// Extensions are the places of a file of azure's where it says what only stopgate
// understands, as errors: the file as it is does something else elsewhere.
func Extensions(name string, data []byte) []gate.Finding {
	var f findings
	readDraft(name, data, &f)
	return (&findings{list: f.extensions}).sorted()
}

func readDraft(name string, data []byte, f *findings) []*gate.Spec {
	extension := strings.ToLower(filepath.Ext(name))
	if !specExtension(extension) {
		f.errorf("", pos{}, "file name ends in %q, want .yaml, .yml or .json", extension)
		return nil
	}
	if IsTestFile(name) {
		f.errorf("", pos{}, "file holds tests, which stopgate test runs, and no resource")
		return nil
	}
	docs, err := readDocuments(data, extension == ".json", f)
	if err != nil {
		f.list = append(f.list, detailsOf(err)...)
		return nil
	}
	if len(docs) == 0 {
		f.errorf("", pos{1, 1}, "file holds no resource")
	}
	var specs []*gate.Spec
	seen := map[string]pos{}
	for _, doc := range docs {
		if what := doc.testInput(); what != "" {
			f.errorf("", doc.pos, "%s", what)
			continue
		}
		r := resource{findings: f}
		spec := r.read(doc)
		if spec == nil {
			continue
		}
		spec.Source = name
		key := string(spec.Kind) + " " + spec.Name
		if first, twice := seen[key]; twice {
			f.errorf("", doc.pos, "%s %q is defined twice in this file (first on line %d)", spec.Kind, spec.Name, first.line)
		}
		seen[key] = doc.pos
		specs = append(specs, spec)
	}
	return specs
}

func specExtension(extension string) bool {
	return extension == ".yaml" || extension == ".yml" || extension == ".json"
}

// detailsOf is what a reader's error has to say, as findings.
func detailsOf(err error) []gate.Finding {
	if e, ok := errors.AsType[*gate.Error](err); ok && len(e.Details) > 0 {
		return e.Details
	}
	return []gate.Finding{{Severity: gate.SeverityError, Message: err.Error()}}
}

// resource reads one document into a spec.
type resource struct {
	*findings
	want      gate.SpecKind // "" = either
	wrongType bool

	top        *object // the document
	meta       *object // where name, tags and owner stand: top, or its metadata
	properties *object // properties, or spec
	typeField  string  // "type", or "kind"
}

// Resource types, as documents name them.
const (
	extendedAgent = "ExtendedAgent"
	globalHook    = "GlobalHook"
)

var typeNames = map[gate.SpecKind]string{gate.AgentSpec: extendedAgent, gate.HookSpec: globalHook}

// read answers nil when there is no name or type to speak of; else the spec,
// which is only of use when no finding is an error.
func (r *resource) read(doc *node) *gate.Spec {
	if doc.kind != objectKind {
		r.errorf("", doc.pos, "resource is %s, want an object", doc.describe())
		return nil
	}
	r.top = &object{findings: r.findings, node: doc}
	r.meta, r.typeField = r.top, "type"
	body := "properties"
	if manifest(doc) {
		r.typeField, body = "kind", "spec"
		r.readManifest()
	} else if !doc.has("type") && doc.has("kind") {
		r.typeField = "kind"
	}
	kind, ok := r.readType(body)
	if !ok {
		return nil
	}
	if r.properties = r.top.object(body); r.properties == nil && r.top.value(body) == nil {
		r.errorf(body, doc.pos, "%s is missing, want an object", body)
	}
	spec := &gate.Spec{Kind: kind}
	if r.meta != nil {
		spec.Name = readName(r.meta, string(kind))
		r.meta.texts("tags")
		r.meta.text("owner")
	}
	if r.properties != nil {
		if kind == gate.AgentSpec {
			r.agent(spec)
		} else {
			r.globalHook(spec)
		}
		r.properties.unknown(false)
	}
	r.top.unknown(false)
	if r.meta != nil && r.meta != r.top {
		r.meta.unknown(false)
	}
	spec.Document = r.document(kind)
	return spec
}

// manifest reports whether a document has the YAML v2 shape.
func manifest(doc *node) bool {
	if doc.has("properties") {
		return false
	}
	return doc.has("spec") || doc.has("metadata") || doc.has("api_version") || doc.has("kind")
}

const apiVersion = "azuresre.ai/v2"

func (r *resource) readManifest() {
	switch version := r.top.value("api_version"); {
	case version == nil:
		r.warnf("api_version", r.top.node.pos, "api_version is missing; read as %s", apiVersion)
	case version.kind != textKind || version.text != apiVersion:
		r.errorf("api_version", version.pos, "api_version is %s, want %s", version.describe(), apiVersion)
	}
	if r.meta = r.top.object("metadata"); r.meta == nil && r.top.value("metadata") == nil {
		r.errorf("metadata.name", r.top.node.pos, "metadata.name is missing")
	}
	for _, f := range r.top.node.fields {
		switch f.name {
		case "name", "type", "tags", "owner":
			r.errorf(f.name, f.pos, "%q has no place beside metadata and spec: name, tags and owner belong under metadata, type is kind", f.name)
		}
	}
}

// readType is the document's kind. What says nothing is what was wanted, or an
// agent, unless a hook must say so.
func (r *resource) readType(body string) (gate.SpecKind, bool) {
	legal := []string{extendedAgent, globalHook}
	if r.want != "" {
		legal = []string{typeNames[r.want]}
	}
	n := r.top.value(r.typeField)
	if n == nil {
		properties := r.top.node.find(body)
		looksLikeHook := properties != nil && (properties.has("eventType") || properties.has("hook"))
		if r.want == gate.HookSpec || r.want == "" && looksLikeHook {
			r.wrongType = true
			r.errorf(r.typeField, r.top.node.pos, "%s is missing, want %s", r.typeField, globalHook)
			return "", false
		}
		return gate.AgentSpec, true
	}
	for kind, name := range typeNames {
		if n.kind == textKind && n.text == name && (r.want == "" || r.want == kind) {
			return kind, true
		}
	}
	r.wrongType = true
	r.errorf(r.typeField, n.pos, "%s is %s, want %s%s", r.typeField, n.describe(), strings.Join(legal, " or "), DidYouMean(n.text, legal))
	return "", false
}

// maxNameBytes is how long a name may be: it becomes a path segment, a file
// name and a label.
const maxNameBytes = 128

// readName reads a resource's name by the rule of spec/azure.md 9, which holds
// for agents too.
func readName(o *object, what string) string {
	n := o.value("name")
	if n == nil {
		o.errorf(o.child("name"), o.node.pos, "%s is missing", o.child("name"))
		return ""
	}
	if n = o.typed("name", textKind, "text"); n == nil {
		return ""
	}
	if err := CheckName(what, n.text); err != nil {
		o.errorf(o.child("name"), n.pos, "%s", err)
	}
	return n.text
}

// CheckName says what is wrong with a name of an agent or a hook; nil: nothing.
func CheckName(what, name string) error {
	if problem := nameProblem(name); problem != "" {
		return fmt.Errorf("%s name %q %s", what, cut(name), problem)
	}
	return nil
}

func nameProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxNameBytes:
		return fmt.Sprintf("is longer than %d bytes", maxNameBytes)
	case strings.HasPrefix(name, "system__"):
		return "begins with system__, which is reserved"
	}
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
		default:
			return fmt.Sprintf("holds %q: only letters a-z A-Z, digits, - and _ are allowed", r)
		}
	}
	return ""
}
