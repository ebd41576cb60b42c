package gate

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Policies holds the specs in force. Reading takes no lock; a change swaps the
// whole set. The zero value is empty and ready.
//
// A spec from a file wins over an uploaded one of the same kind and name.
type Policies struct {
	mu       sync.Mutex
	uploaded []*Spec // in order of first upload
	files    []*Spec
	set      atomic.Pointer[policySet]
}

type policySet struct {
	agents map[string]*Spec
	hooks  []*Spec // agent-level, in firing order
}

type specKey struct {
	kind SpecKind
	name string
}

// Put adds an uploaded spec, or replaces the one of the same kind and name in
// its place.
func (p *Policies) Put(s *Spec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.uploaded, func(o *Spec) bool { return o.Kind == s.Kind && o.Name == s.Name })
	if i >= 0 {
		p.uploaded[i] = s
	} else {
		p.uploaded = append(p.uploaded, s)
	}
	p.rebuild()
}

// Delete removes an uploaded spec; what is not there is no error.
func (p *Policies) Delete(kind SpecKind, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uploaded = slices.DeleteFunc(p.uploaded, func(s *Spec) bool { return s.Kind == kind && s.Name == name })
	p.rebuild()
}

// SetFiles replaces every spec that comes from a file.
func (p *Policies) SetFiles(specs []*Spec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files = slices.Clone(specs)
	p.rebuild()
}

func (p *Policies) rebuild() {
	set := &policySet{agents: map[string]*Spec{}}
	seen := map[specKey]bool{}
	for _, layer := range [][]*Spec{p.files, p.uploaded} {
		for _, s := range layer {
			if k := (specKey{s.Kind, s.Name}); seen[k] {
				continue
			} else {
				seen[k] = true
			}
			if s.Kind == AgentSpec {
				set.agents[s.Name] = s
			} else {
				set.hooks = append(set.hooks, s)
			}
		}
	}
	p.set.Store(set)
}

func (p *Policies) current() *policySet {
	if set := p.set.Load(); set != nil {
		return set
	}
	return &policySet{}
}

// Find is the spec in force of that kind and name, or nil.
func (p *Policies) Find(kind SpecKind, name string) *Spec {
	set := p.current()
	if kind == AgentSpec {
		return set.agents[name]
	}
	for _, s := range set.hooks {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Agents lists the agent specs in force, by name.
func (p *Policies) Agents() []*Spec {
	return slices.SortedFunc(maps.Values(p.current().agents), func(a, b *Spec) int { return cmp.Compare(a.Name, b.Name) })
}

// Hooks lists the agent-level hooks in force, in firing order.
func (p *Policies) Hooks() []*Spec { return slices.Clone(p.current().hooks) }
