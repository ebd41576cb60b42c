package httphooks

import (
	"fmt"
	"net"
	"net/netip"

	"stopgate/gate"
	"stopgate/internal/hostname"
)

// permit checks the target as far as its URL tells: antigravity's by the agent's
// network (spec/antigravity.md 15), claude-code's by the server file's list
// (DESIGN §8).
func (c *Caller) permit(d gate.Dialect, t target, network *gate.Network) *gate.Failure {
	if d == gate.ClaudeCode {
		if !c.listed(t) {
			return failf(gate.EgressDenied, "host %q is not one of http_hooks.allow in the server file: name %s there", t.host, net.JoinHostPort(t.host, t.port))
		}
	} else if failure := inNetwork(t, network); failure != nil {
		return failure
	}
	switch {
	case t.url.Scheme != "https" && d != gate.ClaudeCode:
		return failf(gate.EgressDenied, "the hook's URL begins with %s://: hooks of %s are sent by https:// alone", t.url.Scheme, d)
	case t.url.Scheme != "https" && !t.here():
		return failf(gate.EgressDenied, "the hook's URL begins with http://, which is for localhost alone: want https://")
	case hostname.IsLocalhost(t.host):
		return c.refusal(d, t.host, t.port, netip.IPv6Loopback())
	case t.addr.IsValid():
		return c.refusal(d, t.host, t.port, t.addr)
	}
	return nil
}

// refusal says why the address that a host stands for is not reached; nil: it
// may be. This machine is there for claude-code alone.
func (c *Caller) refusal(d gate.Dialect, host, port string, addr netip.Addr) *gate.Failure {
	reach := reachOf(addr)
	which := fmt.Sprintf(", which hooks of %s do not reach", d)
	switch {
	case reach == loopback && d == gate.ClaudeCode: // it may be listed by a pattern, or under another name
		which = fmt.Sprintf(": name %s in http_hooks.allow of the server file", net.JoinHostPort(host, port))
	case reach == private:
		which += fmt.Sprintf(": name %s in http_hooks.allow of the server file", net.JoinHostPort(host, port))
	}
	switch {
	case reach == external,
		reach == private && c.named(host, port),
		reach == loopback && c.named(host, port) && d == gate.ClaudeCode:
		return nil
	case host == addr.String():
		return failf(gate.EgressDenied, "host %q %s%s", host, reach, which)
	}
	return failf(gate.EgressDenied, "host %q stands for %s, which %s%s", host, addr, reach, which)
}

// inNetwork: the host must be in the agent's allowlist, if there is one.
func inNetwork(t target, network *gate.Network) *gate.Failure {
	switch {
	case network == nil:
	case network.Disabled && network.Allow != nil:
		return failf(gate.EgressDenied, "the agent's network has an empty allowlist: no host may be reached")
	case network.Disabled:
		return failf(gate.EgressDenied, "the agent's network is disabled")
	case len(network.Allow) > 0 && len(destinations(t, network)) == 0:
		return failf(gate.EgressDenied, "host %q is not in the agent's network allowlist", t.host)
	}
	return nil
}

// destinations are the entries of the agent's allowlist that are about the
// target. One that cannot be read is about nothing.
func destinations(t target, network *gate.Network) (found []gate.Destination) {
	if network == nil {
		return nil
	}
	for _, d := range network.Allow {
		if p, fault := hostname.ReadPattern(d.Domain); fault == "" && p.Port == "" && p.Matches(t.host, t.port) {
			found = append(found, d)
		}
	}
	return found
}

// listed reports whether the server file's list has the host, or a pattern of
// it.
func (c *Caller) listed(t target) bool {
	for _, p := range c.allow {
		if p.Matches(t.host, t.port) {
			return true
		}
	}
	return false
}

// named reports whether the server file's list has the host itself.
func (c *Caller) named(host, port string) bool {
	for _, p := range c.allow {
		if p.Host != "" && p.Matches(host, port) {
			return true
		}
	}
	return false
}
