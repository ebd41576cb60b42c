// Package loopback says which names of hosts are this machine's own, for every
// package that trusts an address only because nobody else is there.
package loopback

import "net/netip"

// Host reports whether a host, as it stands in a URL or an address but without
// brackets and port, is this machine itself: localhost in lower case, or a
// loopback address, also an IPv4 one written as IPv6. No other name is trusted
// to stay one.
func Host(name string) bool {
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}
