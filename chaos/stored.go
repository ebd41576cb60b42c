package chaos

import (
	"encoding/json"
	"strings"

	"stopgate/gate"
)

// Stored is what a service tells of the sessions and specs of a journal when
// nothing runs any more.
type Stored struct {
	Records []gate.Record // of those sessions, in any order
	// Counts by ledger key; what holds only zeros may be left out.
	Counts      map[gate.LedgerKey]Counts
	Active      map[string]map[string]bool // session → the hooks that were switched in it
	Transcripts map[string]string          // session → its text, as it was sent
	Specs       map[string]Spec            // agent → its spec
	Audit       []gate.AuditEntry          // newest first
}

// Counts are the part of the ledger that the service shows.
type Counts struct{ Stops, Prompts int }

// Spec is the stored spec of an agent.
type Spec struct{ ETag, Document string }

// opOf is the ID of the op that a record answers: the member "op" of its payload.
func opOf(r *gate.Record) string {
	var payload struct {
		Op string `json:"op"`
	}
	_ = json.Unmarshal(r.Payload, &payload) // empty: a record that nobody asked for
	return payload.Op
}

// linesOf is a transcript's lines.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
