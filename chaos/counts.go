package chaos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"stopgate/gate"
)

// counts: for each ledger there is an order of its decisions, in which none comes
// before one that was answered before it was sent, that explains every count that
// was answered and the one that is stored (spec/azure.md 35, 38). A decision whose
// client got no answer may have come about at any time since it was sent.
func (c *check) counts() {
	ledgers := c.ledgers()
	for _, key := range inOrder(ledgers) {
		steps := c.steps(ledgers[key])
		end := c.stored.Counts[key]
		limit := cmp.Or(c.rules.Cap[key.Agent], gate.DefaultMaxRejections)
		s := search{steps: steps, end: end, limit: limit}
		switch s.run(); {
		case s.explained:
		case s.exhausted:
			c.violated(Undecidable, "%v: %d decisions", key, len(steps))
		default:
			best := s.deepest
			lawless := search{steps: steps, end: end, limit: math.MaxInt, lawless: true}
			if lawless.run(); lawless.explained {
				c.violated(CapPassed, "%v: with a cap of %d nothing goes on after %s", key, limit, describe(best))
				continue
			}
			c.violated(CountWrong, "%v: stored are %+v; nothing goes on after %s", key, end, describe(best))
		}
	}
}

// step is one decision as the ledger saw it.
type step struct {
	id             string
	sent, answered int64
	resets         bool // the user spoke
	stop           bool
	rejected       bool
	byPrompt       bool // a prompt hook is among those that reject
	capped         bool // one was skipped because of the cap
	shown          int  // stop_rejection_count, as answered
}

// steps are the decisions that a ledger counted. One that the gate could not take
// on counts nothing, and shows nothing.
func (c *check) steps(ops []*Op) []step {
	var steps []step
	for _, op := range ops {
		for _, r := range c.byOp[op.ID] {
			if r.GateError != nil && len(r.Hooks) == 0 && r.GateError.Code != gate.StoreUnavailable && r.GateError.Code != gate.TranscriptUnreadable {
				continue
			}
			s := step{id: op.ID, sent: op.Sent, answered: math.MaxInt64, shown: r.StopRejectionCount,
				resets: r.Event == gate.UserPromptSubmit && op.SubAgent == "",
				stop:   r.Event == gate.Stop || r.Event == gate.SubagentStop, rejected: r.Outcome == gate.Block}
			// Its key may have ended, and another of its records have been answered.
			if op.acknowledged() && (!c.rules.KeysEnd || len(op.Answers) == 0 || isAnswer(op.Answers[0], r)) {
				s.answered = op.Answered
			}
			for i := range r.Hooks {
				v := &r.Hooks[i]
				if v.Type != gate.PromptHook || v.Shadow {
					continue
				}
				s.capped = s.capped || v.Has(gate.Capped)
				s.byPrompt = s.byPrompt || v.Outcome == gate.Block || v.Outcome == gate.NoVerdict && v.FailMode == gate.FailBlock
			}
			steps = append(steps, s)
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.answered, b.answered), cmp.Compare(a.sent, b.sent)) })
	return steps
}

// after are the counts once the step has happened; ok is false if it cannot
// happen here.
func (s *step) after(now Counts, limit int, lawless bool) (next Counts, ok bool) {
	switch {
	case s.resets:
		now = Counts{}
	case s.stop && !s.rejected:
		if s.capped && now.Prompts < limit && !lawless {
			return now, false
		}
		now = Counts{}
	case s.stop:
		now.Stops++
		if s.byPrompt {
			if now.Prompts >= limit {
				return now, false
			}
			now.Prompts++
		}
	}
	return now, now.Stops == s.shown
}

// maxSteps bounds one search: some seconds.
const maxSteps = 300_000

// search looks for an order, depth first. What was seen to lead nowhere is not
// entered again.
type search struct {
	steps   []step
	end     Counts
	limit   int
	lawless bool

	dead      map[string]bool
	tried     int
	path      []string
	deepest   []string
	explained bool
	exhausted bool
}

func (s *search) run() {
	s.dead = map[string]bool{}
	done := make([]byte, len(s.steps))
	s.explained = s.from(done, len(s.steps), Counts{})
}

func (s *search) from(done []byte, left int, now Counts) bool {
	if len(s.path) > len(s.deepest) {
		s.deepest = slices.Clone(s.path)
	}
	if left == 0 {
		return now == s.end
	}
	if s.tried++; s.tried > maxSteps {
		s.exhausted = true
		return false
	}
	key := fmt.Sprint(now) + string(done)
	if s.dead[key] {
		return false
	}
	first := int64(math.MaxInt64) // the first answer among those that are left: what was sent after it comes later
	for i := range s.steps {
		if done[i] == 0 {
			first = min(first, s.steps[i].answered)
		}
	}
	for i := range s.steps {
		if done[i] != 0 || s.steps[i].sent > first {
			continue
		}
		next, ok := s.steps[i].after(now, s.limit, s.lawless)
		if !ok {
			continue
		}
		done[i] = 1
		s.path = append(s.path, s.steps[i].id)
		found := s.from(done, left-1, next)
		s.path = s.path[:len(s.path)-1]
		done[i] = 0
		if found || s.exhausted {
			return found
		}
	}
	s.dead[key] = true
	return false
}

func describe(path []string) string {
	if len(path) == 0 {
		return "the beginning"
	}
	return strings.Join(path, ", ")
}
