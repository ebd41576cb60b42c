package httphooks

import (
	"net/netip"
	"net/url"

	"stopgate/gate"
	"stopgate/internal/hostname"
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
	if t.host, t.addr, fault = hostname.Read(u.Hostname()); fault != "" {
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

// here reports whether the URL itself says that the target is this machine.
func (t target) here() bool { return hostname.IsLocalhost(t.host) || reachOf(t.addr) == loopback }
