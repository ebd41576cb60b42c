// Package hostname reads hosts, and lists of them, for what checks a
// configuration and for what connects: both must mean the same.
package hostname

import (
	"net/netip"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

var (
	name = regexp.MustCompile(`\A([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\z`)
	// A name whose last label is a number, in whatever base, is an address to many
	// systems and a name to others: 127.1, 2130706433, 0x7f.1, 0177.0.0.1.
	endsInNumber = regexp.MustCompile(`(\A|\.)([0-9]+|0x[0-9a-f]*)\z`)
)

// Read is a host in its one spelling: letters of any script and case, their
// wide forms and a trailing dot are gone, and an address has no brackets. addr
// is valid where the host is an address. fault ends a sentence that begins with
// the host; empty: there is none.
func Read(text string) (host string, addr netip.Addr, fault string) {
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
	case len(host) > 253 || !name.MatchString(host):
		return "", addr, "is no host name"
	case endsInNumber.MatchString(host):
		return "", addr, "is an address in a form that systems read differently: write four numbers with dots"
	}
	return host, addr, ""
}

// IsLocalhost reports whether a name, as [Read] has it, stands for this machine
// wherever it is resolved (RFC 6761, 6.3).
func IsLocalhost(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
