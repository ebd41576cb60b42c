package gate

import (
	"encoding/json"
	"slices"
)

// SpecKind is the kind of an uploaded resource.
type SpecKind string

const (
	AgentSpec SpecKind = "agent" // ExtendedAgent: one custom agent with its hooks
	HookSpec  SpecKind = "hook"  // GlobalHook: one agent-level hook

	NetworkSpec SpecKind = "network" // what an agent's http hooks may reach (spec/antigravity.md 15)
)

// Attached is the kind of an agent's hooks in another dialect than azure: a
// hooks.json, or the hooks of a settings.json. The spec's name is the agent's.
func Attached(d Dialect) SpecKind { return SpecKind("hooks of " + d) }

// Spec is one resource as it was read, compiled and validated. It is not
// changed after it was made.
type Spec struct {
	Kind SpecKind
	Name string
	// Document is what GET answers: {name, type, tags, owner, properties},
	// with every accepted and every unknown field, and no defaults written in;
	// of hooks in another dialect their own JSON.
	Document json.RawMessage
	// Hooks are the agent's hooks in declared order per event; a GlobalHook
	// has exactly one.
	Hooks []Hook
	// DeferForBackground puts a Stop of the agent off while tasks of its own
	// still run: no hook is asked, nothing is counted.
	DeferForBackground bool
	// Shadow: every hook that the agent has of its own is a [Hook.Shadow], those in
	// other dialects too.
	Shadow      bool
	Description string   // GlobalHook
	Network     *Network // of a NetworkSpec
	Source      string   // the file that defines it; empty: uploaded
}

// shadowed is the spec with every hook a shadow.
func (s *Spec) shadowed() *Spec {
	c := *s
	c.Hooks = slices.Clone(s.Hooks)
	for i := range c.Hooks {
		c.Hooks[i].Shadow = true
	}
	return &c
}

// StoredSpec is one version of a resource in a store.
type StoredSpec struct {
	Kind     SpecKind
	Name     string
	Document json.RawMessage
	Version  int    // 1, 2, … per kind and name; goes on after a deletion
	ETag     string // quoted, as HTTP has it; changes with every version
	By       string // who put it: the [Actor]'s name
	At       int64  // when, in Unix milliseconds
	Deleted  bool
}
