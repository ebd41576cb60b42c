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
	agents   map[string]*Spec
	hooks    []*Spec            // agent-level, in firing order
	attached map[string][]*Spec // by agent: its hooks in other dialects, in firing order
	networks map[string]*Network
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

// Uploaded lists the uploaded specs, in order of first upload, also those that a
// file's are in force for.
func (p *Policies) Uploaded() []*Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.uploaded)
}

// SetUploaded replaces every uploaded spec; they are in order of first upload.
func (p *Policies) SetUploaded(specs []*Spec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uploaded = slices.Clone(specs)
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
	set := &policySet{agents: map[string]*Spec{}, attached: map[string][]*Spec{}, networks: map[string]*Network{}}
	seen := map[specKey]bool{}
	for _, layer := range [][]*Spec{p.files, p.uploaded} {
		for _, s := range layer {
			if k := (specKey{s.Kind, s.Name}); seen[k] {
				continue
			} else {
				seen[k] = true
			}
			switch s.Kind {
			case AgentSpec:
				set.agents[s.Name] = s
			case HookSpec:
				set.hooks = append(set.hooks, s)
			case NetworkSpec:
				set.networks[s.Name] = s.Network
			default:
				set.attached[s.Name] = append(set.attached[s.Name], s)
			}
		}
	}
	for name, specs := range set.attached {
		if a := set.agents[name]; a != nil && a.Shadow {
			for i, s := range specs {
				specs[i] = s.shadowed()
			}
		}
		slices.SortStableFunc(specs, func(a, b *Spec) int { return cmp.Compare(firing(a.Kind), firing(b.Kind)) })
	}
	p.set.Store(set)
}

// firing is when the hooks of a kind fire among those of the others.
func firing(k SpecKind) int {
	return slices.IndexFunc(Dialects, func(d Dialect) bool { return Attached(d) == k })
}

func (p *Policies) current() *policySet {
	if set := p.set.Load(); set != nil {
		return set
	}
	return &policySet{}
}

// Find is the spec in force of that kind and name, or nil.
func (p *Policies) Find(kind SpecKind, name string) *Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, layer := range [][]*Spec{p.files, p.uploaded} {
		for _, s := range layer {
			if s.Kind == kind && s.Name == name {
				return s
			}
		}
	}
	return nil
}

// Has reports whether an agent has a spec or hooks of its own in force.
func (p *Policies) Has(agent string) bool {
	set := p.current()
	return set.agents[agent] != nil || len(set.attached[agent]) > 0
}

// Agents lists the agent specs in force, by name.
func (p *Policies) Agents() []*Spec {
	return slices.SortedFunc(maps.Values(p.current().agents), func(a, b *Spec) int { return cmp.Compare(a.Name, b.Name) })
}

// Hooks lists the agent-level hooks in force, in firing order.
func (p *Policies) Hooks() []*Spec { return slices.Clone(p.current().hooks) }

func policiesOf(specs []*Spec) *Policies {
	p := &Policies{}
	p.SetFiles(specs)
	return p
}

// About is the hooks that are about an event, in firing order, whether or not they
// are active and whatever their conditions say. An agent that is not known is an
// [*Error] with CodeNotFound.
func (p *Policies) About(ev Event) ([]*Hook, error) {
	m, err := p.match(&ev)
	return m.hooks, err
}

// matched is what is about an event.
type matched struct {
	hooks   []*Hook // in firing order
	agent   *Spec   // nil for an agent that has none
	network *Network
}

// match is the hooks that are about the event, in firing order: agent level
// first, then the agent's own (spec/azure.md 39), then those that it has in other
// dialects. SubagentStop moves the event to the agent that its agent_type names;
// a host's sub-agent without such a spec is not gated (spec/claude-code.md 12),
// but by the SubagentStop hooks of the agent that it works for.
func (p *Policies) match(ev *Event) (matched, error) {
	set := p.current()
	own := ev.Agent
	if ev.Name == SubagentStop {
		// Without an id of its own a sub-agent would share the main agent's
		// counts, and its end would reset them.
		ev.SubAgent = cmp.Or(ev.SubAgent, ev.AgentType, "sub-agent")
	}
	m := matched{network: set.networks[own]}
	gated := true
	if ev.Name == SubagentStop && (ev.AgentType != "" || ev.Protocol != Native) {
		if gated = set.agents[ev.AgentType] != nil; gated {
			ev.Agent = ev.AgentType
		}
	}
	if gated {
		m.agent = set.agents[ev.Agent]
		if m.agent == nil && ev.Agent != DefaultAgent && set.attached[own] == nil {
			return matched{}, Errorf(CodeNotFound, "agent %q is not known: PUT its spec first, or name the agent \"default\" for agent-level hooks only", ev.Agent)
		}
		for _, s := range set.hooks {
			m.add(s, ev)
		}
		if m.agent != nil {
			m.add(m.agent, ev)
		}
	}
	for _, s := range set.attached[own] {
		m.add(s, ev)
	}
	return m, nil
}

// knowProjects reports whether hooks of an agent ask where its project is: for their
// scripts, and for the files that they are about.
func (p *Policies) knowProjects(agent string) bool {
	for _, s := range p.current().attached[agent] {
		for i := range s.Hooks {
			if h := &s.Hooks[i]; h.Type == CommandHook || h.If != nil {
				return true
			}
		}
	}
	return false
}

func (m *matched) add(s *Spec, ev *Event) {
	for i := range s.Hooks {
		if h := &s.Hooks[i]; h.Concerns(ev) && !slices.ContainsFunc(m.hooks, h.repeats) {
			m.hooks = append(m.hooks, h)
		}
	}
}
