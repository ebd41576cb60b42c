package httphooks

import (
	"net/netip"
	"slices"
)

// reach says what kind of place an address is.
type reach int

const (
	unreachable reach = iota // never asked: see below
	loopback
	private
	external
)

var (
	loopbacks = prefixes("127.0.0.0/8", "::1/128")
	privates  = prefixes(
		"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // RFC 1918
		"100.64.0.0/10", // shared by carriers (RFC 6598)
		"fc00::/7",      // unique local (RFC 4193)
	)
	// A cloud's metadata service, which knows the machine's keys, where it is not
	// a link-local address.
	metadata = prefixes(
		"100.100.100.200/32",                                 // Alibaba Cloud
		"168.63.129.16/32",                                   // Azure's wire server
		"fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::/112", // AWS, Google Cloud, Scaleway
	)
	// Special-purpose IPv4 addresses (RFC 6890): this network, link-local with
	// metadata services, protocol assignments, examples, the 6to4 relay, benchmarks,
	// then multicast, reserved and broadcast.
	specials = prefixes("0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3")
	// The part of IPv6 that is handed out for the whole Internet, and what of it is
	// special: protocol assignments with Teredo, examples, 6to4.
	global6   = prefixes("2000::/3")
	specials6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// reachOf is what an address is. Link-local addresses, metadata services,
// multicast, unspecified, reserved and transition addresses are unreachable, and
// so are embedded IPv4 addresses that are not external; IPv4-mapped ones are what
// they map.
func reachOf(a netip.Addr) reach {
	a = a.Unmap()
	in := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	switch {
	case !a.IsValid(), a.Zone() != "", in(metadata):
		return unreachable
	case in(loopbacks):
		return loopback
	case in(privates):
		return private
	case a.Is4() && !in(specials), a.Is6() && in(global6) && !in(specials6):
		return external
	case nat64.Contains(a): // what an IPv6-only machine sees of the IPv4 Internet
		b := a.As16()
		if reachOf(netip.AddrFrom4([4]byte(b[12:]))) == external {
			return external
		}
	}
	return unreachable
}

// String ends a sentence that begins with the address.
func (r reach) String() string {
	switch r {
	case loopback:
		return "is this machine"
	case private:
		return "is a private address"
	case external:
		return "is an external address"
	}
	return "is a link-local, metadata, multicast or reserved address"
}
