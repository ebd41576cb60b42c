package main

import "stopgate/gate"

// hookNames tell which hooks only one side has. Of a record's side nobody knows
// all: its names are nil, and a hook that took no part may have been there.
type hookNames struct{ was, now map[string]bool }

// pairs finds the two verdicts of each hook by its name, the n-th of one name with
// the n-th of the other side; those that are there no more are last.
//
// A hook that was only renamed is no change: where of a level and type as many
// names have vanished as have come, each is compared with the one in its place. What
// a hook was like then no record says; the report names such pairs.
func pairs(was, now []gate.Verdict, names hookNames) []hookChange {
	before := make([]*gate.Verdict, len(now)) // nil: it is new
	taken := make([]bool, len(was))
	for i := range now {
		for j := range was {
			if !taken[j] && was[j].Name == now[i].Name {
				before[i], taken[j] = &was[j], true
				break
			}
		}
	}
	type kind struct {
		level gate.Level
		of    gate.HookType
	}
	gone, come := map[kind][]int{}, map[kind][]int{}
	for j, v := range was {
		if !taken[j] && !names.now[v.Name] {
			k := kind{v.Level, v.Type}
			gone[k] = append(gone[k], j)
		}
	}
	for i, v := range now {
		if before[i] == nil && !names.was[v.Name] {
			k := kind{v.Level, v.Type}
			come[k] = append(come[k], i)
		}
	}
	for k, vanished := range gone {
		if len(come[k]) != len(vanished) {
			continue
		}
		for n, j := range vanished {
			before[come[k][n]], taken[j] = &was[j], true
		}
	}
	return changes(was, now, before, taken)
}

// changes puts the pairs in the order of now; those of was that are in none follow.
func changes(was, now []gate.Verdict, before []*gate.Verdict, taken []bool) []hookChange {
	var all []hookChange
	for i, v := range now {
		h := hookChange{Name: v.Name, Now: verdictOf(v)}
		if b := before[i]; b != nil {
			if h.Was = verdictOf(*b); b.Name != v.Name {
				h.WasName = b.Name
			}
		}
		all = append(all, h)
	}
	for j, v := range was {
		if !taken[j] {
			all = append(all, hookChange{Name: v.Name, Was: verdictOf(v)})
		}
	}
	for i := range all {
		all[i].Changed = all[i].Was.comesTo() != all[i].Now.comesTo()
	}
	return all
}
