package config

import (
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"stopgate/gate"
	"stopgate/internal/loopback"
)

// Telemetry is what an operator's tools are told, beside /metrics and the log.
type Telemetry struct {
	// Endpoint is the URL that traces are posted to, as OTLP over HTTP; empty:
	// there are none.
	Endpoint string
	// Headers go with them; HeaderFiles are those whose value is a file's text.
	Headers     map[string]Secret
	HeaderFiles map[string]string
	// CAFile holds certificates, in PEM, that may vouch for the collector beside
	// those that the system trusts; empty: none.
	CAFile string
	Sample float64 // share of the traces that begin here, above 0 and up to 1
	Queue  int     // spans that may wait to be sent
	// Pprof is the loopback address on which Go's profiles are served; empty: they
	// are not.
	Pprof string
}

func (r *serverReader) telemetry(o *object) Telemetry {
	defer o.unknown(true)
	t := Telemetry{Endpoint: o.text("endpoint"), CAFile: r.path(o, "ca_file", ""), Sample: 1,
		Queue: number(o, "queue", 2048, 1), Pprof: o.text("pprof")}
	if sample := o.share("sample"); sample > 0 {
		t.Sample = sample
	}
	t.Headers, t.HeaderFiles = r.headers(o)
	if t.Endpoint != "" {
		t.Endpoint = readEndpoint(o, "endpoint", t.Endpoint, "/v1/traces", len(t.Headers)+len(t.HeaderFiles) > 0)
	}
	if t.Pprof != "" {
		if local, err := IsLoopback(t.Pprof); err != nil || !local {
			o.errorf(o.child("pprof"), o.place("pprof"), "pprof is %q, want a loopback address with a port, as 127.0.0.1:6060: profiles are for nobody else", cut(t.Pprof))
		}
	}
	return t
}

// headers reads headers with their values, and those whose value is a file's
// text.
func (r *serverReader) headers(o *object) (values map[string]Secret, files map[string]string) {
	for _, h := range headersToSend(o, "headers", HeaderValue) {
		put(&values, h.Name, Secret(h.Value))
	}
	for _, h := range headersToSend(o, "header_files", func(file string) bool { return file != "" }) {
		put(&files, h.Name, r.path(o.object("header_files"), h.Name, ""))
	}
	for name := range files {
		if _, twice := values[name]; twice {
			o.errorf(o.child("header_files."+name), o.place("header_files"), "header %s is among headers too", name)
		}
	}
	return values, files
}

// A header's name and value (RFC 9110 5.5 and 5.6.2); obsolete forms are not
// for us to send.
var (
	headerName  = regexp.MustCompile("\\A[!#$%&'*+.^_`|~0-9A-Za-z-]+\\z")
	headerValue = regexp.MustCompile(`\A[!-~]([ \t!-~]*[!-~])?\z`)
)

// HeaderValue reports whether a text may be a header's value as we send it.
func HeaderValue(text string) bool { return headerValue.MatchString(text) }

// headersToSend are headers by their names as they were written. No value is
// shown.
func headersToSend(o *object, name string, legal func(value string) bool) []gate.Header {
	return o.headers(name, func(path string, f field) bool {
		switch {
		case !headerName.MatchString(f.name):
			o.errorf(path, f.pos, "%q is not the name of a header", cut(f.name))
		case !legal(f.value.text):
			o.errorf(path, f.value.pos, "the value of %s is empty, or has characters that a header may not have", f.name)
		default:
			return true
		}
		return false
	})
}

// put adds a header by its canonical name to a map, which is nil while there are
// none.
func put[V any](headers *map[string]V, name string, value V) {
	if *headers == nil {
		*headers = map[string]V{}
	}
	(*headers)[http.CanonicalHeaderKey(name)] = value
}

// readEndpoint checks a URL that is sent to; without a path it has the usual one.
// What is sent in clear text is read by whoever is on the way, so secrets go only
// to this machine like that.
func readEndpoint(o *object, name, text, usualPath string, secret bool) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		o.errorf(o.child(name), o.place(name), "%s is not http:// or https:// with a host and perhaps a path, as http://127.0.0.1:4318; keys go into headers", name)
		return ""
	case u.Scheme == "http" && secret && !loopback.Host(u.Hostname()):
		o.errorf(o.child(name), o.place(name), "%s is http:// on another machine, and headers and records would go there in clear text: use https://", name)
		return ""
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = usualPath
	}
	return u.String()
}
