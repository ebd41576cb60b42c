package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"stopgate/internal/hostname"
)

// HTTP is how the service is reached, beyond its address.
type HTTP struct {
	// Hosts are names that requests may have in Host although the service
	// listens on a loopback address: those of a proxy before it. Without port, in
	// the spelling that requests have.
	Hosts []string
	// Origins are those of web pages that may call, as a browser writes them:
	// "https://console.example".
	Origins []string
	// ShutdownGrace is how long running evaluations may go on once the service
	// is told to stop.
	ShutdownGrace time.Duration
}

func readHTTP(o *object) HTTP {
	defer o.unknown(true)
	h := HTTP{ShutdownGrace: duration(o, "shutdown_grace", 30*time.Second)}
	if n := o.value("shutdown_grace"); n != nil && h.ShutdownGrace < time.Second {
		o.errorf(o.child("shutdown_grace"), n.pos, "shutdown_grace is less than one second")
	}
	for _, host := range checked(o, "hosts", hostFault) {
		name, _, _ := hostname.Read(host)
		h.Hosts = append(h.Hosts, name)
	}
	h.Origins = checked(o, "origins", originFault)
	return h
}

// checked is a list of texts in which fault finds nothing.
func checked(o *object, name string, fault func(string) string) []string {
	if o.value(name) == nil {
		return nil
	}
	var list []string
	for i, n := range o.list(name) {
		item := fmt.Sprintf("%s[%d]", name, i)
		switch what := fault(n.text); {
		case n.kind != textKind:
			o.errorf(o.child(item), n.pos, "%s is %s, want text", item, n.describe())
		case what != "":
			o.errorf(o.child(item), n.pos, "%s is %q: %s", item, cut(n.text), what)
		default:
			list = append(list, n.text)
		}
	}
	return list
}

// hostFault says what is wrong with a name of http.hosts; empty: nothing.
func hostFault(text string) string {
	switch _, _, fault := hostname.Read(text); {
	case fault == "":
		return ""
	case strings.Contains(text, "://"):
		return "want a host alone, without http://"
	case strings.Contains(text, ":"):
		return "want a host without its port"
	case strings.Contains(text, "*"):
		return "patterns are not supported, name each host"
	default:
		return "it " + fault
	}
}

// originFault says what is wrong with one of http.origins; empty: nothing.
func originFault(origin string) string {
	u, err := url.Parse(origin)
	switch {
	case origin == "*" || origin == "null":
		return "that would let every web page call, name each origin"
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "want scheme and host, as https://console.example"
	case u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80":
		return "browsers leave the usual port out, so it would never match"
	case origin != u.Scheme+"://"+strings.ToLower(u.Host) || !asSent(u.Hostname()):
		return "want scheme, host and perhaps a port in lower case and nothing more, as https://console.example"
	}
	return ""
}

// asSent reports whether a host stands as browsers write it.
func asSent(text string) bool {
	host, _, fault := hostname.Read(text)
	return fault == "" && host == text
}
