package main

import (
	"maps"
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
	Obstacle *obstacle    `json:"obstacle,omitempty"`
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
	Changed bool         `json:"changed"` // what the verdict comes to
	Was     *hookVerdict `json:"was"`     // null: it did not take part
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
// words the same thing otherwise each time. Of what has not changed none is kept.
func (w *replayRow) compare(was, now gate.Decision) {
	w.Was, w.Now = sideOf(was), sideOf(now)
	w.Hooks = pairs(was.Hooks, now.Hooks)
	w.Changed = was.Outcome != now.Outcome || slices.ContainsFunc(w.Hooks, func(h hookChange) bool { return h.Changed })
	if w.Changed {
		return
	}
	w.Was.Reason, w.Now.Reason = "", ""
	for _, h := range w.Hooks {
		for _, v := range []*hookVerdict{h.Was, h.Now} {
			if v != nil {
				v.Reason = ""
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

// pairs finds the two verdicts of each hook by its name, the n-th of one name with
// the n-th of the other side; those that are there no more are last.
func pairs(was, now []gate.Verdict) []hookChange {
	var all []hookChange
	left := map[string][]gate.Verdict{}
	for _, v := range was {
		left[v.Name] = append(left[v.Name], v)
	}
	add := func(name string, was, now *hookVerdict) {
		all = append(all, hookChange{Name: name, Was: was, Now: now, Changed: was.comesTo() != now.comesTo()})
	}
	for _, v := range now {
		var before *hookVerdict
		if same := left[v.Name]; len(same) > 0 {
			before, left[v.Name] = verdictOf(same[0]), same[1:]
		}
		add(v.Name, before, verdictOf(v))
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		for _, v := range left[name] {
			add(name, verdictOf(v), nil)
		}
	}
	return all
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

// comesTo is what a verdict means: without one, without being asked, or without
// the hook, nothing is objected to.
func (h *hookVerdict) comesTo() gate.Outcome {
	if h == nil {
		return gate.Allow
	}
	return h.stands
}

// replayReport is what --json prints.
type replayReport struct {
	Compared string `json:"compared"` // with what: "record", or "against"
	Partial  bool   `json:"partial"`  // it was interrupted
	Found    int    `json:"found"`    // evaluations that the filters picked
	Replayed int    `json:"replayed"`
	Changed  int    `json:"changed"`
	// Decisions are those that changed, as "block→allow".
	Decisions map[string]int `json:"decisions"`
	// Obstacles are the codes of why some could not be replayed.
	Obstacles map[string]int `json:"obstacles"`
	// OtherAgents are evaluations of agents that the draft says nothing of.
	OtherAgents int `json:"other_agents"`
	// Missing are hooks that took part and that the draft does not have.
	Missing     map[string]int        `json:"missing_hooks"`
	Hooks       map[string]*hookTally `json:"hooks"`
	Evaluations []replayRow           `json:"evaluations"`
}

// hookTally sums up one hook.
type hookTally struct {
	Was     sideTally      `json:"was"`
	Now     sideTally      `json:"now"`
	Changed map[string]int `json:"changed"` // as "block→allow"
}

type sideTally struct {
	Verdicts   int                      `json:"verdicts"`
	Outcomes   map[gate.Outcome]int     `json:"outcomes"`
	Errors     map[gate.FailureCode]int `json:"errors,omitempty"`
	Usage      gate.Usage               `json:"usage"`
	DurationMS int64                    `json:"duration_ms"`
}

func (t *sideTally) add(v *hookVerdict) {
	if v == nil {
		return
	}
	if t.Outcomes == nil {
		t.Outcomes = map[gate.Outcome]int{}
	}
	t.Verdicts++
	t.Outcomes[v.Outcome]++
	t.Usage, t.DurationMS = t.Usage.Plus(v.Usage), t.DurationMS+v.DurationMS
	if v.Failure != nil {
		if t.Errors == nil {
			t.Errors = map[gate.FailureCode]int{}
		}
		t.Errors[v.Failure.Code]++
	}
}

func newReplayReport(drafts []*draft) *replayReport {
	r := &replayReport{Compared: "record", Decisions: map[string]int{}, Obstacles: map[string]int{}, Missing: map[string]int{},
		Hooks: map[string]*hookTally{}, Evaluations: []replayRow{}}
	if len(drafts) > 1 {
		r.Compared = "against"
	}
	return r
}

// add counts a row.
func (r *replayReport) add(w replayRow, draft *draft) {
	if w.Obstacle != nil {
		r.Obstacles[w.Obstacle.Code]++
		return
	}
	r.Replayed++
	if w.Changed {
		r.Changed++
	}
	if w.Was.Decision != w.Now.Decision {
		r.Decisions[arrow(w.Was.Decision, w.Now.Decision)]++
	}
	for _, h := range w.Hooks {
		t := r.Hooks[h.Name]
		if t == nil {
			t = &hookTally{Changed: map[string]int{}}
			r.Hooks[h.Name] = t
		}
		t.Was.add(h.Was)
		t.Now.add(h.Now)
		if h.Changed {
			t.Changed[arrow(h.Was.comesTo(), h.Now.comesTo())]++
		}
		if !draft.hooks[h.Name] {
			r.Missing[h.Name]++
		}
	}
}

func arrow(was, now gate.Outcome) string { return string(was) + "→" + string(now) }
