package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// memory is a ledger in memory that keeps Commit's promise.
type memory struct {
	mu        sync.Mutex
	counts    map[LedgerKey]Counts
	records   []Record
	active    map[string]map[string]bool
	erased    map[string]Erasure
	overrides map[string]Override
	broken    error
	// between runs after a Commit has called Settle for the first time: another
	// event may come in there.
	between func()
}

func newMemory() *memory {
	return &memory{counts: map[LedgerKey]Counts{}, active: map[string]map[string]bool{}, erased: map[string]Erasure{}, overrides: map[string]Override{}}
}

func (m *memory) Counts(_ context.Context, k LedgerKey) (Counts, Erasure, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[k], NeverErased + m.erased[k.Session], m.broken
}

func (m *memory) Erasure(_ context.Context, session string) (Erasure, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return NeverErased + m.erased[session], m.broken
}

func (m *memory) Commit(_ context.Context, c Commit) error {
	next, rec := c.Settle(c.Seen)
	if f := m.between; f != nil {
		m.between = nil
		f()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return m.broken
	}
	if c.Erasure != 0 && c.Erasure < NeverErased+m.erased[rec.Session] {
		return ErrErased
	}
	if c.Key.Session != "" {
		if now := m.counts[c.Key]; now != c.Seen {
			if c.Stale(now) {
				return ErrStale
			}
			next, rec = c.Settle(now)
		}
		m.counts[c.Key] = next
	}
	m.records = append(m.records, rec)
	return nil
}

func (m *memory) SetActive(_ context.Context, session, hook string, on bool, _ Actor) error {
	if m.active[session] == nil {
		m.active[session] = map[string]bool{}
	}
	m.active[session][hook] = on
	return nil
}

func (m *memory) Active(_ context.Context, session string) (map[string]bool, error) {
	return m.active[session], m.broken
}

var errBroken = errors.New("disk full")

// transcriptsFunc makes a function a Transcripts.
type transcriptsFunc func(*Event) (Transcript, error)

func (f transcriptsFunc) Attach(_ context.Context, ev *Event) (Transcript, error) { return f(ev) }

// answers scripts the evaluators: the verdict of a hook by its name.
type answers map[string]func(Input) Verdict

func says(v Verdict) func(Input) Verdict { return func(Input) Verdict { return v } }

func (a answers) Evaluate(_ context.Context, in Input) Verdict {
	if f := a[in.Hook.Name]; f != nil {
		return f(in)
	}
	return Verdict{Outcome: Allow}
}

func newGate(m *memory, a Evaluator, specs ...*Spec) *Gate {
	n := 0
	g := &Gate{Policies: policiesOf(specs), Store: m, OnGateError: FailAllow, Parallel: 8, Now: time.Now,
		Transcripts: transcriptsFunc(func(*Event) (Transcript, error) { return nil, nil }),
		Evaluators:  map[HookType]Evaluator{PromptHook: a, CommandHook: a}}
	var mu sync.Mutex
	g.NewID = func() string { mu.Lock(); defer mu.Unlock(); n++; return fmt.Sprintf("id-%d", n) }
	return g
}

// agent makes a custom agent "a" with these hooks.
func agent(hooks ...Hook) *Spec {
	for i := range hooks {
		hooks[i].Level = CustomLevel
	}
	return &Spec{Kind: AgentSpec, Name: "a", Hooks: defaults(hooks)}
}

// global makes an agent-level hook.
func global(h Hook) *Spec {
	h.Level = AgentLevel
	return &Spec{Kind: HookSpec, Name: h.Name, Hooks: defaults([]Hook{h})}
}

func defaults(hooks []Hook) []Hook {
	for i := range hooks {
		h := &hooks[i]
		h.Dialect = Azure
		if h.Timeout == 0 {
			h.Timeout = DefaultTimeout
		}
		if h.FailMode == "" {
			h.FailMode = FailAllow
		}
		if h.Type == "" {
			h.Type = CommandHook
		}
		if h.Event == "" {
			h.Event = Stop
		}
		if h.Event.ForTool() && h.Matcher.String() == "" {
			h.Matcher, _ = CompileMatcher("*")
		}
	}
	return hooks
}

func stop(session string) Event {
	return Event{Name: Stop, Protocol: Native, Agent: "a", Session: session, FinalOutput: "done"}
}

func tool(name EventName) Event {
	return Event{Name: name, Protocol: Native, Agent: "a", Session: "s", ToolName: "Bash", ToolSucceeded: true}
}

func decide(t testing.TB, g *Gate, ev Event) Decision {
	t.Helper()
	d, err := g.Decide(t.Context(), ev, Options{})
	if err != nil {
		t.Fatalf("Decide: %v", err)
	}
	return d
}

func (m *memory) SetOverride(_ context.Context, o Override, by Actor) error {
	o.By = by.Name
	m.overrides[o.Session] = o
	return m.broken
}

func (m *memory) Override(_ context.Context, session string) (Override, error) {
	o, ok := m.overrides[session]
	if !ok && m.broken == nil {
		return o, NoOverride(session)
	}
	return o, m.broken
}

func (m *memory) RemoveOverride(_ context.Context, session string, _ Actor) error {
	delete(m.overrides, session)
	return m.broken
}
