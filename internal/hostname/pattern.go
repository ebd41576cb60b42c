package hostname

import (
	"net"
	"strconv"
	"strings"
)

// Pattern is one entry of a list of hosts. The zero value is about every host.
type Pattern struct {
	Host   string // whole, as [Read] has it; empty: Suffix decides
	Suffix string // ".example.com"; empty, with no Host: every host
	Port   string // empty: every port
}

// ReadPattern reads a host, "*.example.com" or "*", each with a port after it or
// not. fault ends a sentence that begins with the text; empty: there is none.
func ReadPattern(text string) (p Pattern, fault string) {
	if strings.Contains(text, "://") {
		return p, "is a URL: want a host alone, without http://"
	}
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return p, "has no number after its colon: want a port 1…65535"
		}
		host, p.Port = h, port
	}
	if host == "*" {
		return p, ""
	}
	below, wild := strings.CutPrefix(host, "*.")
	if strings.Contains(below, "*") {
		return p, "has * in another place: want *, *.example.com or a whole host name"
	}
	name, addr, fault := Read(below)
	switch {
	case fault != "":
	case wild && addr.IsValid():
		fault = "has * before an address"
	case wild:
		p.Suffix = "." + name
	default:
		p.Host = name
	}
	return p, fault
}

// Matches reports whether the entry is about a host, as [Read] has it, and a
// port.
func (p Pattern) Matches(host, port string) bool {
	switch {
	case p.Port != "" && p.Port != port:
		return false
	case p.Host != "":
		return host == p.Host
	}
	return p.Suffix == "" || strings.HasSuffix(host, p.Suffix) && len(host) > len(p.Suffix)
}
