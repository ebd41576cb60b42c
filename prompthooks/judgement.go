package prompthooks

import (
	"encoding/json"
	"fmt"
	"strings"

	"stopgate/gate"
)

// maxQuotes of one verdict are kept and looked up; a judge with more has copied
// the conversation.
const maxQuotes = 16

// readWorking adds to a verdict what its object says beside it: how sure the
// judge is, what it quotes, and that a refusal asks for the impossible. Where
// the probability is on the other side of ok it is no verdict.
func readWorking(event gate.EventName, object []byte, v *gate.Verdict) error {
	var w struct {
		Probability *float64        `json:"probability"`
		Evidence    json.RawMessage `json:"evidence"`
		Impossible  bool            `json:"impossible"`
	}
	if err := json.Unmarshal(object, &w); err != nil {
		return fmt.Errorf("probability must be a number and impossible true or false: %w", err)
	}
	found := gate.Evidence{Probability: w.Probability, Quotes: readQuotes(w.Evidence)}
	if p := w.Probability; p != nil {
		switch {
		case !(*p >= 0 && *p <= 1):
			return fmt.Errorf("probability is %v, want 0 to 1", *p)
		case v.Outcome == gate.Allow && *p < gate.DefaultThreshold, v.Outcome == gate.Block && *p >= gate.DefaultThreshold:
			return fmt.Errorf("the verdict is %s, but its probability of being passed is %v", v.Outcome, *p)
		}
	}
	if w.Impossible && v.Outcome == gate.Block && (event == gate.Stop || event == gate.SubagentStop) {
		v.Outcome = gate.Allow
		v.Notes = append(v.Notes, gate.Impossible)
	}
	if found.Probability != nil || len(found.Quotes) > 0 {
		v.Evidence = &found
	}
	return nil
}

// readQuotes is lenient: a hook's author may mean something else by evidence.
func readQuotes(raw json.RawMessage) []gate.Quote {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil
	}
	var quotes []gate.Quote
	for _, item := range items[:min(len(items), maxQuotes)] {
		var q struct {
			Line  looseInt `json:"line"`
			Quote string   `json:"quote"`
		}
		if json.Unmarshal(item, &q) == nil && strings.TrimSpace(q.Quote) != "" {
			quotes = append(quotes, gate.Quote{Line: max(int(q.Line), 0), Quote: gate.Cut(q.Quote, maxLineBytes)})
		}
	}
	return quotes
}

// weigh applies the hook's threshold: a judge that is less sure than its owner
// wants has not passed the check.
func weigh(h *gate.Hook, v *gate.Verdict) {
	if v.Evidence == nil || v.Evidence.Probability == nil || v.Outcome == gate.Ask || v.Has(gate.Impossible) {
		return
	}
	threshold := h.Threshold
	if threshold == 0 {
		return // what the verdict says is on its own side of the default
	}
	p := *v.Evidence.Probability
	switch passed := p >= threshold; {
	case passed:
		v.Outcome = gate.Allow
	case v.Outcome == gate.Allow:
		v.Outcome = gate.Block
		v.Reason = strings.TrimSpace(fmt.Sprintf("The judge is not sure enough (%.2f, wanted %.2f). %s", p, threshold, v.Reason))
	}
}
