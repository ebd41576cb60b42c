package shell

import "context"

// Budget is what all readings for one decision may cost together: texts inside
// texts, and the texts that a rule finds in them, can multiply. Its zero value is
// spent.
type Budget struct {
	left int
	done <-chan struct{}
}

// What a reading costs, in arguments that are looked at.
const (
	perByte = 8  // of a text that is parsed
	perText = 64 // that is parsed, however short
	work    = 4 * MaxBytes * perByte
)

// NewBudget is the budget of one decision; it is spent at the latest when the
// context ends.
func NewBudget(ctx context.Context) *Budget { return &Budget{left: work, done: ctx.Done()} }

// Spend takes some of the budget, a unit for each argument that is looked at, and
// reports whether there was as much.
func (b *Budget) Spend(units int) bool {
	select {
	case <-b.done:
		b.left = 0
	default:
		b.left -= min(units, b.left)
	}
	return b.left > 0
}

// Spent reports whether nothing is left, so that what was read may not be all.
func (b *Budget) Spent() bool { return b.left == 0 }
