package record

import (
	"encoding/json"
	"fmt"

	"stopgate/gate"
)

// Override is an override as its row holds it: agents are JSON, times Unix
// milliseconds.
type Override struct {
	Session, Reason, By string
	Agents              []byte
	Since, Until        int64
}

// EncodeOverride makes the row of one that somebody sets. CodeValidation.
func EncodeOverride(o gate.Override, by gate.Actor) (Override, error) {
	if o.Session == "" || o.Reason == "" {
		return Override{}, gate.Errorf(gate.CodeValidation, "override needs a session and a reason")
	}
	agents, err := json.Marshal(o.Agents)
	if err != nil {
		return Override{}, err
	}
	return Override{Session: o.Session, Reason: o.Reason, By: by.Name, Agents: agents, Since: Millis(o.Since), Until: Millis(o.Until)}, nil
}

// Decode makes the override of a row.
func (r Override) Decode() (gate.Override, error) {
	o := gate.Override{Session: r.Session, Reason: r.Reason, By: r.By, Since: Moment(r.Since), Until: Moment(r.Until)}
	if err := json.Unmarshal(r.Agents, &o.Agents); err != nil {
		return o, fmt.Errorf("store override of %q is damaged: %w", r.Session, err)
	}
	return o, nil
}
