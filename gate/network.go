package gate

import (
	"slices"
	"strings"
)

// Network is what the http hooks of an agent may reach (spec/antigravity.md 15).
type Network struct {
	// Disabled: nothing, since the network is, or since its allowlist is empty:
	// Allow is not nil then.
	Disabled bool
	// Allow are the destinations, in order; without any, and not Disabled, every
	// external host may be reached.
	Allow []Destination
}

// Destination is one host, or a pattern of hosts, and the headers that are put
// on requests to it. Their values are secrets: they appear in no record, log or
// answer (spec/antigravity.md 16).
type Destination struct {
	Domain    string // "telemetry.example.com", "*.example.com" or "*"
	Transform []Header
}

// HeaderFault says why an http hook may not set a header, as the end of a
// sentence that begins with its name; empty: it may. The value is not quoted:
// it may be a secret.
func HeaderFault(name, value string) string {
	switch lower := strings.ToLower(name); {
	case !isToken(name):
		return "is no name of a header"
	case slices.Contains(ownHeaders, lower), strings.HasPrefix(lower, "proxy-"):
		return "cannot be set: it belongs to the connection, or is the gate's own"
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return "has a value with a line break or another control character"
	case len(name)+len(value) > maxHeader:
		return "is too long with its value"
	case strings.TrimSpace(value) != value:
		return "has a value with white space round it"
	}
	return ""
}

// ShortestSecret is the fewest bytes of a header's value that are taken out of
// what is said of a call: shorter ones are switches ("1", "on") and stand in many
// a text.
const ShortestSecret = 4

// maxHeader is what servers commonly take, in bytes of name and value.
const maxHeader = 8 << 10

// ownHeaders are about one connection only (RFC 9110, 7.6.1), say where a
// request goes and how long it is, or how its answer comes.
var ownHeaders = []string{"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect",
	"host", "content-length", "content-encoding", "accept-encoding"}

// isToken reports whether s may be a header's name (RFC 9110, 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
