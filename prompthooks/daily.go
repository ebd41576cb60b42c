package prompthooks

import (
	"sync"
	"time"

	"stopgate/gate"
)

// daily counts the tokens of each agent in one day.
type daily struct {
	limit int // 0: nothing is counted
	now   func() time.Time

	mu    sync.Mutex
	day   string
	spent map[string]int
}

// left reports whether the agent may use more today. Verdicts that run at once
// may pass the limit together, each by what it costs.
func (d *daily) left(ev *gate.Event) bool {
	if d.limit == 0 {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn()
	return d.spent[ev.Agent] < d.limit
}

func (d *daily) spend(ev *gate.Event, used gate.Usage) {
	if d.limit == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn()
	// Down to nothing, so that no number of a hostile server comes round to a
	// budget that is full again.
	left := d.limit - d.spent[ev.Agent]
	for _, n := range []int{used.PromptTokens, used.OutputTokens} {
		left -= min(max(n, 0), left)
	}
	d.spent[ev.Agent] = d.limit - left
}

// turn begins a new count at midnight. A clock that is set back does not: a day
// that comes twice has its tokens once.
func (d *daily) turn() {
	if today := d.now().UTC().Format(time.DateOnly); today > d.day {
		d.day, d.spent = today, map[string]int{}
	}
}
