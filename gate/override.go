package gate

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// MaxOverride is the longest that an override may last: what is wanted for longer
// is a change of the spec.
const MaxOverride = 24 * time.Hour

// Override lets one session stop for a while: its Stop hooks are not asked.
type Override struct {
	Session string    `json:"session_id"`
	Reason  string    `json:"reason"` // never empty
	By      string    `json:"by"`     // name of the credential that set it
	Agents  []string  `json:"agents"` // patterns (see [MatchName]) of the agents it is for: the credential's own
	Since   time.Time `json:"since"`  // when it was set; whole milliseconds
	Until   time.Time `json:"until"`  // exclusive; whole milliseconds
}

// Overrides holds at most one override of each session.
type Overrides interface {
	// SetOverride stores it, in place of the one that the session may have; its
	// By is the actor's name. CodeValidation: it lacks a session or a reason.
	SetOverride(ctx context.Context, o Override, by Actor) error
	// Override is the session's; one that is over may be there still.
	// CodeNotFound.
	Override(ctx context.Context, session string) (Override, error)
	// RemoveOverride ends it. CodeNotFound: there is none, or it is over.
	RemoveOverride(ctx context.Context, session string, by Actor) error
}

// NoOverride is the error of an [Overrides] that has none of the session.
func NoOverride(session string) error {
	return Errorf(CodeNotFound, "session %q has no override", session)
}

// In reports whether the override is in force at a time. When it was set is not
// asked: the clock of another replica may be a little behind.
func (o *Override) In(now time.Time) bool { return now.Before(o.Until) }

// of reports whether the override is for an agent.
func (o *Override) of(agent string) bool { return Caller{Agents: o.Agents}.Owns(agent) }

// readOverride looks whether the session may stop unasked. One that cannot be read
// is none.
func (e *evaluation) readOverride(ctx context.Context) {
	if !e.counted() || e.ev.Name.hookEvent() != Stop || !slices.ContainsFunc(e.hooks, (*Hook).enforced) {
		return
	}
	switch o, err := e.gate.Store.Override(ctx, e.ev.Session); {
	case err == nil && o.In(e.began) && o.of(e.ev.Agent):
		e.override = &o
	case err != nil && CodeOf(err) != CodeNotFound:
		e.storeFailed(err)
	}
}

// waived is the verdict of a hook that an override leaves unasked.
func (o *Override) waived() Verdict {
	return Verdict{Outcome: Skipped, Notes: []Note{Overridden},
		Reason: fmt.Sprintf("not asked: until %s %s lets this session stop: %s", o.Until.UTC().Format(time.RFC3339), o.By, o.Reason)}
}
