package wire_test

import (
	"fmt"
	"testing"

	"stopgate/gate"
	"stopgate/wire"
	"stopgate/wire/contracts"
)

// The encoders say exactly what the contracts hold, for every host, event and
// wish, and every host has a contract.
func TestEncodersKeepTheContracts(t *testing.T) {
	covered := map[string]bool{gate.Native: true}
	for _, c := range contracts.All() {
		covered[c.Host] = true
		p, ok := wire.Find(c.Host)
		if !ok {
			t.Errorf("no protocol %q", c.Host)
			continue
		}
		for _, e := range c.Events {
			payload := fmt.Sprintf(`{"hook_event_name":%q,"session_id":"s","submitted_prompt":"p"}`, e.Host)
			ev, err := p.Decode([]byte(payload), wire.Options{Event: e.Host})
			if err != nil || ev.Name != e.Name {
				t.Errorf("%s %s is %q, want %q (%v)", c.Host, e.Host, ev.Name, e.Name, err)
			}
			for _, w := range []struct {
				name, want string
				decision   gate.Decision
			}{
				{"no objection", e.Answers.NoObjection, gate.Decision{Outcome: gate.Allow}},
				{"context", e.Answers.Context, gate.Decision{Outcome: gate.Allow, AdditionalContext: "CONTEXT"}},
				{"block", e.Answers.Block, gate.Decision{Outcome: gate.Block, Reason: "REASON"}},
				{"block with context", e.Answers.BlockWithContext, gate.Decision{Outcome: gate.Block, Reason: "REASON", AdditionalContext: "CONTEXT"}},
				{"ask", e.Answers.Ask, gate.Decision{Outcome: gate.Ask, Reason: "REASON"}},
			} {
				if got := string(p.Encode(ev, w.decision).Body); got != w.want {
					t.Errorf("%s %s, %s:\n got %s\nwant %s", c.Host, e.Host, w.name, got, w.want)
				}
			}
		}
	}
	for _, name := range wire.Names() {
		if !covered[name] {
			t.Errorf("protocol %q has no contract", name)
		}
	}
}
