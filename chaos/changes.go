package chaos

import (
	"maps"
	"slices"
	"strings"

	"stopgate/gate"
)

// states are those that a hook may have in a session for somebody who sees it
// while op runs; with nil: at the end. It is switched by one client, one after
// another; a switch that got no answer may come about at any time.
func (c *check) states(session, hook string, op *Op) map[bool]bool {
	may := map[bool]bool{false: true} // on demand: until somebody wants it
	late := map[bool]bool{}
	for i := range c.ops {
		s := &c.ops[i]
		if s.Session != session || s.Name != hook || s.Kind != Activate && s.Kind != Deactivate {
			continue
		}
		if op != nil && op.before(s) {
			break
		}
		if !s.acknowledged() {
			late[s.Kind == Activate] = true
			continue
		}
		if op == nil || s.before(op) {
			clear(may)
		}
		may[s.Kind == Activate] = true
	}
	maps.Copy(may, late)
	return may
}

// switches: a hook is as its last acknowledged switch left it, or a later one
// that got no answer; and each switch is in the audit.
func (c *check) switches() {
	type place struct{ session, hook string }
	ops := map[place][]*Op{}
	for i := range c.ops {
		if op := &c.ops[i]; op.Kind == Activate || op.Kind == Deactivate {
			at := place{op.Session, op.Name}
			ops[at] = append(ops[at], op)
		}
	}
	places := slices.SortedFunc(maps.Keys(ops), func(a, b place) int {
		return strings.Compare(a.session+"\x00"+a.hook, b.session+"\x00"+b.hook)
	})
	for _, at := range places {
		if is := c.stored.Active[at.session][at.hook]; !c.states(at.session, at.hook, nil)[is] {
			c.violated(ChangeLost, "session %q: hook %q active: %t", at.session, at.hook, is)
		}
		mine := func(e *gate.AuditEntry) bool { return e.Session == at.session }
		c.audited(of(ops[at], Activate), gate.HookActivated, at.hook, mine)
		c.audited(of(ops[at], Deactivate), gate.HookDeactivated, at.hook, mine)
	}
}

func of(ops []*Op, kind Kind) []*Op {
	return slices.DeleteFunc(slices.Clone(ops), func(op *Op) bool { return op.Kind != kind })
}

// audited: there are at least as many entries as changes that were acknowledged,
// and at most as many as were asked for.
func (c *check) audited(ops []*Op, action gate.Action, name string, mine func(*gate.AuditEntry) bool) []gate.AuditEntry {
	var entries []gate.AuditEntry
	for i := range c.stored.Audit {
		if e := &c.stored.Audit[i]; e.Action == action && e.Name == name && mine(e) {
			entries = append(entries, *e)
		}
	}
	acknowledged, session := 0, ""
	for _, op := range ops {
		session = op.Session
		if op.acknowledged() {
			acknowledged++
		}
	}
	switch n := len(entries); {
	case n < acknowledged:
		c.violated(AuditLost, "%s of %q in session %q: %d of %d that were answered have an entry", action, name, session, n, acknowledged)
	case n > len(ops):
		c.violated(AuditDoubled, "%s of %q in session %q: %d entries, and %d were asked for", action, name, session, n, len(ops))
	}
	return entries
}

// specs: a spec is as its last acknowledged put left it, or a later one that got
// no answer; each put is in the audit, and versions follow each other. A spec is
// put by one client, one after another.
func (c *check) specs() {
	ops := map[string][]*Op{}
	for i := range c.ops {
		if op := &c.ops[i]; op.Kind == PutSpec {
			ops[op.Name] = append(ops[op.Name], op)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ops)) {
		stored := c.stored.Specs[name]
		c.specInForce(name, ops[name], stored)
		entries := c.audited(ops[name], gate.SpecPut, name, func(*gate.AuditEntry) bool { return true })
		for i, e := range entries { // newest first
			if want := len(entries) - i; e.After != want || e.Before != want-1 {
				c.violated(AuditUnlinked, "spec %q: entry %d of %d is from version %d to %d", name, want, len(entries), e.Before, e.After)
			}
		}
	}
}

func (c *check) specInForce(name string, ops []*Op, stored Spec) {
	var may []*Op // the last that was answered, and all that were not
	for _, op := range ops {
		if op.acknowledged() {
			may = slices.DeleteFunc(may, (*Op).acknowledged)
		}
		may = append(may, op)
	}
	is := slices.IndexFunc(may, func(op *Op) bool { return strings.Contains(stored.Document, op.ID) })
	switch {
	case is < 0 && slices.ContainsFunc(may, (*Op).acknowledged):
		c.violated(ChangeLost, "spec %q is as nobody left it: %q", name, stored.Document)
	case is >= 0 && may[is].acknowledged() && may[is].ETag != stored.ETag:
		c.violated(ChangeLost, "spec %q has the ETag %q, and %s was answered %q", name, stored.ETag, may[is].ID, may[is].ETag)
	}
}
