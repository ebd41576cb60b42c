package httphooks

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"stopgate/gate"
)

// permit checks the target as far as its URL tells: antigravity's by the agent's
// network (spec/antigravity.md 15), claude-code's by the server file's list
// (DESIGN §8).
func (c *Caller) permit(d gate.Dialect, t target, network *gate.Network) *gate.Failure {
	if d == gate.ClaudeCode {
		if !c.listed(t) {
			return failf(gate.EgressDenied, "host %q is not one of http_hooks.allow in the server file", t.host)
		}
	} else if failure := inNetwork(t, network); failure != nil {
		return failure
	}
	switch {
	case t.url.Scheme != "https" && d != gate.ClaudeCode:
		return failf(gate.EgressDenied, "the hook's URL begins with %s://: hooks of %s are sent by https:// alone", t.url.Scheme, d)
	case t.url.Scheme != "https" && !t.here():
		return failf(gate.EgressDenied, "the hook's URL begins with http://, which is for localhost alone: want https://")
	case isLocalhost(t.host):
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
	switch {
	case reach == external,
		reach == private && c.named(host, port),
		reach == loopback && c.named(host, port) && d == gate.ClaudeCode:
		return nil
	case host == addr.String():
		return failf(gate.EgressDenied, "host %q %s, which hooks of %s do not reach", host, reach, d)
	}
	return failf(gate.EgressDenied, "host %q stands for %s, which %s, which hooks of %s do not reach", host, addr, reach, d)
}

// inNetwork: the host must be in the agent's allowlist, if there is one.
func inNetwork(t target, network *gate.Network) *gate.Failure {
	switch {
	case network == nil:
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
		if p, err := readPattern(d.Domain); err == nil && p.port == "" && p.matches(t.host, t.port) {
			found = append(found, d)
		}
	}
	return found
}

// pattern is one entry of a list of hosts.
type pattern struct {
	host   string // whole; empty: suffix decides
	suffix string // ".example.com"; empty, with no host: every host
	port   string // empty: every port
}

func readPattern(text string) (pattern, error) {
	var p pattern
	if text == "*" {
		return p, nil
	}
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return p, errors.New("has no port 1…65535 after its colon")
		}
		host, p.port = h, port
		if host == "*" {
			return p, nil
		}
	}
	below, wild := strings.CutPrefix(host, "*.")
	name, addr, fault := readHost(below)
	switch {
	case fault != "":
		return p, errors.New(fault)
	case wild && addr.IsValid():
		return p, errors.New("has * before an address")
	case wild:
		p.suffix = "." + name
	default:
		p.host = name
	}
	return p, nil
}

func (p pattern) matches(host, port string) bool {
	switch {
	case p.port != "" && p.port != port:
		return false
	case p.host != "":
		return host == p.host
	}
	return p.suffix == "" || strings.HasSuffix(host, p.suffix) && len(host) > len(p.suffix)
}

// listed reports whether the server file's list has the host, or a pattern of
// it.
func (c *Caller) listed(t target) bool {
	for _, p := range c.allow {
		if p.matches(t.host, t.port) {
			return true
		}
	}
	return false
}

// named reports whether the server file's list has the host itself.
func (c *Caller) named(host, port string) bool {
	for _, p := range c.allow {
		if p.host != "" && p.matches(host, port) {
			return true
		}
	}
	return false
}
