package main

import (
	"slices"
	"time"

	"stopgate/gate"
)

// replayRow is what came of one evaluation.
type replayRow struct {
	EvaluationID string         `json:"evaluation_id"`
	Time         time.Time      `json:"time"`
	Agent        string         `json:"agent"`
	Session      string         `json:"session_id"`
	Event        gate.EventName `json:"event"`
	Tool         string         `json:"tool_name,omitempty"`
	// Obstacle: it could not be replayed, and Was, Now and Hooks are missing.
	Obstacle *obstacle `json:"obstacle,omitempty"`
	// Redacted: hooks were asked about a payload with marks in the place of secrets.
	Redacted bool `json:"redacted,omitempty"`
	// Blind: scripts were asked that may have looked at their agent's directory,
	// which they may have seen then.
	Blind bool `json:"without_workspace,omitempty"`
	// Inactive are on-demand hooks of the draft that were not switched on.
	Inactive []string     `json:"inactive_hooks,omitempty"`
	Changed  bool         `json:"changed"`
	Was      *replaySide  `json:"was,omitempty"`
	Now      *replaySide  `json:"now,omitempty"`
	Hooks    []hookChange `json:"hooks,omitempty"`
}

// replaySide is one of the two decisions on an evaluation.
type replaySide struct {
	Decision   gate.Outcome `json:"decision"`
	Reason     string       `json:"reason"`
	Usage      gate.Usage   `json:"usage"`
	DurationMS int64        `json:"duration_ms"` // of its hooks, one after another
}

// hookChange is one hook's two verdicts.
type hookChange struct {
	Name    string       `json:"name"`
	WasName string       `json:"was_name,omitempty"` // where that was another; see [pairs]
	Changed bool         `json:"changed"`            // what the verdict comes to
	Was     *hookVerdict `json:"was"`                // null: it did not take part
	Now     *hookVerdict `json:"now"`
}

type hookVerdict struct {
	Outcome    gate.Outcome  `json:"outcome"`
	Shadow     bool          `json:"shadow,omitempty"`
	Reason     string        `json:"reason"`
	Failure    *gate.Failure `json:"error,omitempty"`
	Usage      gate.Usage    `json:"usage"`
	DurationMS int64         `json:"duration_ms"`

	stands gate.Outcome
}

// rowOf begins the row of a record.
func rowOf(r gate.RecordSummary) replayRow {
	return replayRow{EvaluationID: r.EvaluationID, Time: r.Time, Agent: r.Agent, Session: r.Session, Event: r.Event, Tool: r.Tool}
}

// compare fills in what was, and is, decided. Reasons alone are no change: a model
// words the same thing otherwise each time.
func (w *replayRow) compare(was, now gate.Decision, names hookNames) {
	w.Was, w.Now = sideOf(was), sideOf(now)
	w.Hooks = pairs(was.Hooks, now.Hooks, names)
	w.Changed = was.Outcome != now.Outcome || slices.ContainsFunc(w.Hooks, func(h hookChange) bool { return h.Changed })
}

// eachText has every text of the row that a hook, an agent or a model may have
// worded go through f.
func (w *replayRow) eachText(f func(string) string) {
	if w.Obstacle != nil {
		o := *w.Obstacle
		o.Message, w.Obstacle = f(o.Message), &o
	}
	for _, s := range []*replaySide{w.Was, w.Now} {
		if s != nil {
			s.Reason = f(s.Reason)
		}
	}
	for _, h := range w.Hooks {
		for _, v := range []*hookVerdict{h.Was, h.Now} {
			if v == nil {
				continue
			}
			if v.Reason = f(v.Reason); v.Failure != nil {
				v.Failure = &gate.Failure{Code: v.Failure.Code, Message: f(v.Failure.Message)}
			}
		}
	}
}

func sideOf(d gate.Decision) *replaySide {
	s := &replaySide{Decision: d.Outcome, Reason: d.Reason}
	for _, v := range d.Hooks {
		s.DurationMS += v.DurationMS
		if v.Usage != nil {
			s.Usage = s.Usage.Plus(*v.Usage)
		}
	}
	return s
}

func verdictOf(v gate.Verdict) *hookVerdict {
	h := &hookVerdict{Outcome: v.Outcome, Shadow: v.Shadow, Reason: v.Reason, Failure: v.Failure, DurationMS: v.DurationMS, stands: gate.Allow}
	if v.Usage != nil {
		h.Usage = *v.Usage
	}
	switch {
	case v.Outcome == gate.Block, v.Outcome == gate.NoVerdict && v.FailMode == gate.FailBlock:
		h.stands = gate.Block
	case v.Outcome == gate.Ask:
		h.stands = gate.Ask
	}
	return h
}

// unpriced reports whether models were asked and what that cost is not known.
func (h *hookVerdict) unpriced() bool { return h.Usage.Calls > 0 && h.Usage.Cost == 0 }

// comesTo is what a verdict means: without one, without being asked, or without
// the hook, nothing is objected to.
func (h *hookVerdict) comesTo() gate.Outcome {
	if h == nil {
		return gate.Allow
	}
	return h.stands
}
