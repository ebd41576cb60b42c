package chaos

import (
	"maps"
	"slices"
)

// transcripts: every append that was acknowledged is there whole, once, where its
// answer said, and behind all that were acknowledged before it was sent. One that
// was not may be there, whole and once.
func (c *check) transcripts() {
	bySession := map[string][]*Op{}
	for session := range c.stored.Transcripts {
		bySession[session] = nil
	}
	for i := range c.ops {
		if op := &c.ops[i]; op.Kind == Append {
			bySession[op.Session] = append(bySession[op.Session], op)
		}
	}
	for _, session := range slices.Sorted(maps.Keys(bySession)) {
		c.transcript(session, bySession[session], linesOf(c.stored.Transcripts[session]))
	}
}

func (c *check) transcript(session string, ops []*Op, lines []string) {
	places := map[string][]int{}
	for n, line := range lines {
		places[line] = append(places[line], n)
	}
	at := map[*Op]int{}
	for _, op := range ops {
		if place, there := c.appended(op, lines, places); there {
			at[op] = place
		}
		for _, line := range op.Lines {
			delete(places, line)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(places)) {
		c.violated(LineOfNone, "session %q has the line %q", session, line)
	}
	for _, a := range ops {
		for _, b := range ops {
			first, there := at[a]
			second, also := at[b]
			if there && also && a.before(b) && first > second {
				c.violated(LineMoved, "session %q: %s was answered before %s was sent, and stands behind it", session, a.ID, b.ID)
			}
		}
	}
}

// appended is where an append begins, if it is there.
func (c *check) appended(op *Op, lines []string, places map[string][]int) (at int, there bool) {
	missing := 0
	for _, line := range op.Lines {
		switch n := len(places[line]); {
		case n == 0:
			missing++
		case n > 1:
			c.violated(LineDoubled, "session %q has the line %q %d times", op.Session, line, n)
		}
	}
	switch {
	case missing == len(op.Lines) && !op.acknowledged():
		return 0, false
	case missing > 0 && op.acknowledged():
		c.violated(LineLost, "session %q: of %d lines of %s, which was answered, %d are lost", op.Session, len(op.Lines), op.ID, missing)
		return 0, false
	case missing > 0:
		c.violated(LineMoved, "session %q: of %d lines of %s only a part is there", op.Session, len(op.Lines), op.ID)
		return 0, false
	}
	at = places[op.Lines[0]][0]
	if !slices.Equal(lines[at:min(at+len(op.Lines), len(lines))], op.Lines) {
		c.violated(LineMoved, "session %q: the lines of %s do not stand together", op.Session, op.ID)
	}
	if op.acknowledged() && op.Total != at+len(op.Lines) {
		c.violated(LineMoved, "session %q: %s was answered that it ends on line %d, and ends on %d", op.Session, op.ID, op.Total, at+len(op.Lines))
	}
	return at, true
}
