package gate

// Network is what the http hooks of an agent may reach (spec/antigravity.md 15).
type Network struct {
	// Disabled: nothing.
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
