package config

import "regexp"

// Sink is somewhere that records are sent to.
type Sink struct {
	Name string // of the sink in the store: one with another name is another
	Kind SinkKind

	// Of a file: its path, the size in bytes at which it is put aside (0: never),
	// and how many of those are kept (0: all).
	Path    string
	MaxSize int64
	Keep    int

	// Of the others, as in [Telemetry].
	URL         string
	Headers     map[string]Secret
	HeaderFiles map[string]string
	CAFile      string
}

// SinkKind says what a sink is.
type SinkKind string

const (
	FileSink SinkKind = "file" // lines of JSON
	HTTPSink SinkKind = "http" // the same, posted
	OTLPSink SinkKind = "otlp" // logs, as OTLP over HTTP
)

// SinkKinds lists every [SinkKind].
var SinkKinds = []SinkKind{FileSink, HTTPSink, OTLPSink}

// sinkName is what a sink may be called: it is a metric's label and a row's key.
var sinkName = regexp.MustCompile(`\A[a-z0-9][a-z0-9_-]{0,62}\z`)

func (r *serverReader) export(o *object) []Sink {
	defer o.unknown(true)
	list := o.object("sinks")
	if list == nil {
		return nil
	}
	var sinks []Sink
	for _, f := range list.node.fields {
		if !sinkName.MatchString(f.name) {
			list.errorf(list.child(f.name), f.pos, "%q is no name of a sink: want a-z, 0-9, - and _, 63 at most", cut(f.name))
		}
		if one := list.object(f.name); one != nil {
			sinks = append(sinks, r.sink(one, f.name))
		}
	}
	return sinks
}

func (r *serverReader) sink(o *object, name string) Sink {
	defer o.unknown(true)
	s := Sink{Name: name, Kind: SinkKind(o.oneOf("kind", string(FileSink), string(HTTPSink), string(OTLPSink)))}
	switch s.Kind {
	case FileSink:
		s.Path = r.path(o, "path", "")
		if s.Path == "" {
			o.errorf(o.child("path"), o.node.pos, "path is missing: a sink of kind file writes to one")
		}
		s.MaxSize, s.Keep = bound(o, "max_size", 1<<20), number(o, "keep", 0, 0)
	case HTTPSink, OTLPSink:
		s.Headers, s.HeaderFiles = r.headers(o)
		s.CAFile = r.path(o, "ca_file", "")
		path := ""
		if s.Kind == OTLPSink {
			path = "/v1/logs"
		}
		if s.URL = o.text("url"); s.URL == "" {
			o.errorf(o.child("url"), o.node.pos, "url is missing: a sink of kind %s is posted to it", s.Kind)
		} else {
			s.URL = readEndpoint(o, "url", s.URL, path, true)
		}
	default:
		if o.value("kind") == nil {
			o.errorf(o.child("kind"), o.node.pos, "kind is missing: want one of %q", SinkKinds)
		}
	}
	return s
}
