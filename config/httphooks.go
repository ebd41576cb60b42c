package config

import (
	"net/url"

	"stopgate/internal/hostname"
)

// HTTPHooks is where hooks that are asked over HTTP may go, and how.
type HTTPHooks struct {
	// Allow are the hosts that hooks of claude-code may reach: a host,
	// "*.example.com" or "*", each with a port after it or not. A host named whole
	// may be a private address, for every dialect, and this machine.
	Allow []string
	// Proxy leads to every other host; nil: there is none.
	Proxy *url.URL
	// CAFile holds certificates, in PEM, that may vouch for a server beside those
	// that the system trusts; empty: none.
	CAFile string
	// Connections is how many requests run at once; more wait.
	Connections int
}

func (r *serverReader) httpHooks(o *object) HTTPHooks {
	defer o.unknown(true)
	return HTTPHooks{
		Allow:       checked(o, "allow", allowFault),
		Proxy:       readProxy(o),
		CAFile:      r.path(o, "ca_file", ""),
		Connections: number(o, "connections", 256, 1),
	}
}

// allowFault says what is wrong with one of http_hooks.allow; empty: nothing.
func allowFault(text string) string {
	if _, fault := hostname.ReadPattern(text); fault != "" {
		return "it " + fault
	}
	return ""
}

// readProxy shows no more of it than was written: it may hold a password.
func readProxy(o *object) *url.URL {
	text := o.text("proxy")
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		o.errorf(o.child("proxy"), o.place("proxy"), "proxy is not http:// or https:// with a host, as http://proxy.example.com:3128")
		return nil
	}
	return u
}
