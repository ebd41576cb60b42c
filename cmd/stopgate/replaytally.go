package main

import (
	"slices"

	"stopgate/gate"
)

// replayReport is what --json prints.
type replayReport struct {
	Compared string `json:"compared"` // with what: "record", or "against"
	// Recorded: models' answers came from a recording, so that the time of judges was
	// not measured.
	Recorded bool `json:"recorded_answers"`
	Partial  bool `json:"partial"` // it was interrupted
	Found    int  `json:"found"`   // evaluations that the filters picked
	More     bool `json:"more"`    // there are others, beyond --limit
	Repeated int  `json:"repeated_lines"`
	Replayed int  `json:"replayed"`
	Redacted int  `json:"redacted"`          // of them, with marks in the place of secrets
	Blind    int  `json:"without_workspace"` // of them, where scripts may have looked at one then
	Changed  int  `json:"changed"`
	// Decisions are those that changed, as "block→allow".
	Decisions map[string]int `json:"decisions"`
	// Obstacles are the codes of why some could not be replayed.
	Obstacles map[string]int `json:"obstacles"`
	// OtherAgents are evaluations of agents that the draft says nothing of.
	OtherAgents int `json:"other_agents"`
	// Missing are hooks that took part and that the draft does not have.
	Missing map[string]int `json:"missing_hooks"`
	// Inactive are on-demand hooks of the draft, with in how many evaluations they
	// were not switched on.
	Inactive map[string]int `json:"inactive_hooks"`
	// Renamed are hooks of the draft by the names with which they are compared; see
	// [pairs].
	Renamed     map[string][]string   `json:"renamed_hooks"`
	Hooks       map[string]*hookTally `json:"hooks"`
	Evaluations []replayRow           `json:"evaluations"`

	again repeats
	order string // in which the list is cut: "newest", or "first"
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
	Unpriced   int                      `json:"unpriced"` // verdicts of models whose price is not known
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
	if v.unpriced() {
		t.Unpriced++
	}
	if v.Failure != nil {
		if t.Errors == nil {
			t.Errors = map[gate.FailureCode]int{}
		}
		t.Errors[v.Failure.Code]++
	}
}

func (r *replayer) newReport() *replayReport {
	report := &replayReport{Compared: "record", Recorded: r.command.Replay != "", Decisions: map[string]int{}, Obstacles: map[string]int{},
		Missing: map[string]int{}, Inactive: map[string]int{}, order: "newest", Renamed: map[string][]string{}, Hooks: map[string]*hookTally{}, Evaluations: []replayRow{}}
	if len(r.drafts) > 1 {
		report.Compared = "against"
	}
	if r.command.From != "" {
		report.order = "first"
	}
	return report
}

// add counts a row.
func (r *replayReport) add(w replayRow, draft *draft) {
	if w.Obstacle != nil {
		r.Obstacles[w.Obstacle.Code]++
		return
	}
	r.Replayed++
	if w.Redacted {
		r.Redacted++
	}
	if w.Blind {
		r.Blind++
	}
	for _, name := range w.Inactive {
		r.Inactive[name]++
	}
	if w.Changed {
		r.Changed++
	}
	if w.Was.Decision != w.Now.Decision {
		r.Decisions[arrow(w.Was.Decision, w.Now.Decision)]++
	}
	missing := map[string]bool{}
	for _, h := range w.Hooks {
		r.addHook(h)
		if h.Now == nil && !draft.hooks[h.Name] && !missing[h.Name] {
			missing[h.Name] = true
			r.Missing[h.Name]++
		}
	}
}

func (r *replayReport) addHook(h hookChange) {
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
	if h.WasName != "" && !slices.Contains(r.Renamed[h.Name], h.WasName) {
		r.Renamed[h.Name] = append(r.Renamed[h.Name], h.WasName)
	}
}

// failed is how many evaluations could not be replayed.
func (r *replayReport) failed() (n int) {
	for _, of := range r.Obstacles {
		n += of
	}
	return n
}

func arrow(was, now gate.Outcome) string { return string(was) + "→" + string(now) }
