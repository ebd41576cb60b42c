package httphooks

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"stopgate/gate"
)

// target is where a request goes. Its URL has the host in the one spelling that
// is checked, resolved and dialled.
type target struct {
	url  *url.URL
	host string     // lower-case ASCII without a trailing dot, or an address
	port string     // as a number; the scheme's, where the URL has none
	addr netip.Addr // of a host that is an address; else not valid
}

// readTarget reads a hook's URL. What net/url and the C library, a proxy and a
// certificate would read differently is refused.
func readTarget(text string) (target, *gate.Failure) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return target{}, failf(gate.EgressDenied, "the hook's URL cannot be read: want https://host/path")
	case u.Scheme != "https" && u.Scheme != "http":
		return target{}, failf(gate.EgressDenied, "the hook's URL begins with %.20q: want https://", u.Scheme)
	case u.User != nil:
		return target{}, failf(gate.EgressDenied, "the hook's URL has a user or a password in it, which are not sent")
	}
	t := target{port: u.Port()}
	if t.port == "" {
		t.port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	var fault string
	if t.host, t.addr, fault = readHost(u.Hostname()); fault != "" {
		return target{}, failf(gate.EgressDenied, "the hook's host %.80q %s", u.Hostname(), fault)
	}
	sent := *u
	sent.Host, sent.Fragment, sent.RawFragment = t.host, "", ""
	if t.addr.Is6() {
		sent.Host = "[" + t.host + "]"
	}
	if u.Port() != "" {
		sent.Host += ":" + u.Port()
	}
	t.url = &sent
	return t, nil
}

var (
	hostName = regexp.MustCompile(`\A([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\z`)
	// A name whose last label is a number, in whatever base, is an address to many
	// systems and a name to others: 127.1, 2130706433, 0x7f.1, 0177.0.0.1.
	endsInNumber = regexp.MustCompile(`(\A|\.)([0-9]+|0x[0-9a-f]*)\z`)
)

// readHost is a host in its one spelling: letters of any script and case, their
// wide forms and a trailing dot are gone. fault ends a sentence that begins with
// the host; empty: there is none.
func readHost(text string) (host string, addr netip.Addr, fault string) {
	if strings.ContainsFunc(text, func(r rune) bool { return r > 0x7f }) {
		ascii, err := idna.Lookup.ToASCII(text)
		if err != nil || !utf8.ValidString(text) {
			return "", addr, "is no host name"
		}
		text = ascii
	}
	host = strings.TrimSuffix(strings.ToLower(text), ".")
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		if addr.Zone() != "" {
			return "", addr, "has a zone: want an address alone"
		}
		return addr.Unmap().String(), addr.Unmap(), ""
	}
	switch {
	case len(host) > 253 || !hostName.MatchString(host):
		return "", addr, "is no host name"
	case endsInNumber.MatchString(host):
		return "", addr, "is an address in a form that systems read differently: write four numbers with dots"
	}
	return host, addr, ""
}

// isLocalhost reports whether a name stands for this machine wherever it is
// resolved (RFC 6761, 6.3).
func isLocalhost(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// here reports whether the URL itself says that the target is this machine.
func (t target) here() bool { return isLocalhost(t.host) || reachOf(t.addr) == loopback }
