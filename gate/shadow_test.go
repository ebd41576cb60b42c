package gate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A shadow hook never changes the decision (fault G41): random hooks of every
// dialect, type and event, some of them shadows, decide a random run of events as
// they do without the shadows, and leave the same counts.
func TestShadowNeverChangesTheDecision(t *testing.T) {
	blocked, would := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		all, scripted := randomHooks(r)
		without, mem := gateOf(scripted, all, func(h *Hook) bool { return !h.Shadow })
		with, memWith := gateOf(scripted, all, func(*Hook) bool { return true })
		for i := range 12 {
			ev := randomEvent(r)
			scripted.at = i
			want, got := decide(t, without, ev), decide(t, with, ev)
			for _, v := range got.Hooks {
				if v.Shadow && v.Has(WouldBlock) {
					would++
				}
				if v.Shadow && (v.Injected || v.Has(Capped) || v.Has(NoProgress)) {
					t.Fatalf("seed %d, event %d: %+v", seed, i, v)
				}
			}
			if want.Outcome == Block {
				blocked++
			}
			got.Hooks = slices.DeleteFunc(got.Hooks, func(v Verdict) bool { return v.Shadow })
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Verdict{})); diff != "" {
				t.Fatalf("seed %d, event %d %s (-without +with):\n%s", seed, i, ev.Name, diff)
			}
			if diff := cmp.Diff(mem.counts, memWith.counts); diff != "" {
				t.Fatalf("seed %d, event %d %s, counts (-without +with):\n%s", seed, i, ev.Name, diff)
			}
		}
	}
	if blocked < 100 || would < 100 {
		t.Errorf("%d blocks and %d of shadows: the run shows nothing", blocked, would)
	}
}

// scriptedRun answers by hook and event, whoever asks.
type scriptedRun struct {
	at      int
	answers map[string][]Verdict
}

func (s *scriptedRun) Evaluate(_ context.Context, in Input) Verdict {
	v := s.answers[in.Hook.Name][s.at]
	v.Notes = nil
	return v
}

func randomHooks(r *rand.Rand) ([]*Spec, *scriptedRun) {
	run := &scriptedRun{answers: map[string][]Verdict{}}
	every, _ := CompileMatcher("*")
	hooks := func(of Dialect) (some []Hook) {
		for range r.IntN(5) {
			h := Hook{Name: fmt.Sprintf("%s%d", of, len(run.answers)), Shadow: r.IntN(2) == 0, Matcher: every, MaxRejections: r.IntN(3),
				Event:    []EventName{Stop, Stop, PreToolUse, PostToolUse, Start}[r.IntN(5)],
				Type:     []HookType{PromptHook, CommandHook}[r.IntN(2)],
				FailMode: []FailMode{FailAllow, FailBlock}[r.IntN(2)]}
			for range 12 {
				run.answers[h.Name] = append(run.answers[h.Name], []Verdict{{Outcome: Allow}, {Outcome: Block, Reason: "no"}, {Outcome: Block},
					{Outcome: Allow, AdditionalContext: "c " + h.Name}, {Outcome: Block, Reason: "no " + h.Name, AdditionalContext: "d"}, {Outcome: Ask, Reason: "ask"},
					{Outcome: NoVerdict, Failure: &Failure{Timeout, "late"}}}[r.IntN(7)])
			}
			some = append(some, h)
		}
		return some
	}
	specs := []*Spec{agent(hooks(Azure)...)}
	for _, h := range hooks("agent-level") {
		specs = append(specs, global(h))
	}
	for _, d := range []Dialect{Antigravity, AXCode, ClaudeCode} {
		specs = append(specs, attached(d, hooks(d)...))
	}
	return specs, run
}

func randomEvent(r *rand.Rand) Event {
	ev := tool([]EventName{PreToolUse, PostToolUse}[r.IntN(2)])
	switch r.IntN(8) {
	case 0, 1, 2, 3:
		ev = stop("s")
	case 4:
		ev = Event{Name: Start, Protocol: Native, Agent: "a", Session: "s"}
	case 5:
		ev = Event{Name: UserPromptSubmit, Protocol: Native, Agent: "a", Session: "s", Prompt: "more", ByPerson: r.IntN(4) == 0}
	}
	return ev
}

// gateOf is a gate with the kept hooks of the specs, at a clock that stands.
func gateOf(run *scriptedRun, specs []*Spec, keep func(*Hook) bool) (*Gate, *memory) {
	kept := make([]*Spec, len(specs))
	for i, s := range specs {
		c := *s
		c.Hooks = nil
		for _, h := range s.Hooks {
			if keep(&h) {
				c.Hooks = append(c.Hooks, h)
			}
		}
		kept[i] = &c
	}
	m := newMemory()
	g := newGate(m, run, kept...)
	g.Now = func() time.Time { return time.Unix(0, 0) }
	return g, m
}

// For every type and event: allowed, with what the hook said and would_block in the
// record (faults G39, G42).
func TestShadowRecordsWhatItWouldBlock(t *testing.T) {
	all, _ := CompileMatcher("*")
	for _, event := range []EventName{Stop, PreToolUse, PostToolUse} {
		for _, kind := range []HookType{PromptHook, CommandHook, HTTPHook, RuleHook} {
			t.Run(fmt.Sprintf("%s %s", kind, event), func(t *testing.T) {
				said := answers{"h": says(Verdict{Outcome: Block, Reason: "not yet", AdditionalContext: "look"})}
				m := newMemory()
				g := newGate(m, said, agent(Hook{Name: "h", Event: event, Type: kind, Matcher: all, Shadow: true}))
				g.Evaluators[HTTPHook], g.Evaluators[RuleHook] = said, said
				ev := tool(event)
				if event == Stop {
					ev = stop("s")
				}
				if d := decide(t, g, ev); d.Outcome != Allow || d.Reason != "" || d.AdditionalContext != "" || len(d.Messages) != 0 || d.StopHookActive {
					t.Errorf("decision %+v", d)
				}
				got := m.records[0].Hooks[0]
				if got.Outcome != Block || got.Reason != "not yet" || !got.Shadow || !got.Has(WouldBlock) {
					t.Errorf("record %+v", got)
				}
				if s := m.records[0].Summary().Hooks[0]; !s.Shadow {
					t.Errorf("summary %+v", s)
				}
			})
		}
	}
}

// What a shadow says where it could not block is no would_block, and a failure of
// its never degrades.
func TestShadowNotes(t *testing.T) {
	all, _ := CompileMatcher("*")
	for _, c := range []struct {
		name string
		spec *Spec
		ev   Event
		said Verdict
		want []Note
	}{
		{"a closed failure", agent(Hook{Name: "h", Shadow: true, FailMode: FailBlock}), stop("s"), Verdict{Outcome: NoVerdict, Failure: &Failure{Timeout, "late"}}, []Note{FailedClosed, WouldBlock}},
		{"an open failure", agent(Hook{Name: "h", Shadow: true}), stop("s"), Verdict{Outcome: NoVerdict, Failure: &Failure{Timeout, "late"}}, []Note{FailedOpen}},
		{"no reason on Stop", agent(Hook{Name: "h", Shadow: true}), stop("s"), Verdict{Outcome: Block}, []Note{RejectedWithoutReason}},
		{"ax-code only watches Stop", attached(AXCode, Hook{Name: "h", Shadow: true, Matcher: all}), stop("s"), Verdict{Outcome: Block, Reason: "no"}, []Note{}},
		{"an ask", agent(Hook{Name: "h", Shadow: true, Event: PreToolUse}), tool(PreToolUse), Verdict{Outcome: Ask, Reason: "ask"}, []Note{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decide(t, newGate(newMemory(), answers{"h": says(c.said)}, c.spec), c.ev)
			if d.Outcome != Allow || d.Degraded || !slices.Equal(d.Hooks[0].Notes, c.want) {
				t.Errorf("%s, degraded %t, notes %q, want %q", d.Outcome, d.Degraded, d.Hooks[0].Notes, c.want)
			}
		})
	}
}

// An agent in mode shadow has shadows only, also in its documents of other systems;
// agent-level hooks keep their own mode.
func TestShadowAgent(t *testing.T) {
	said := answers{"own": block("o"), "cc": block("c")}
	own := agent(Hook{Name: "own", Shadow: true})
	own.Shadow = true
	g := newGate(newMemory(), said, own, attached(ClaudeCode, Hook{Name: "cc"}))
	if d := decide(t, g, stop("s")); d.Outcome != Allow || len(d.Hooks) != 2 || !d.Hooks[0].Shadow || !d.Hooks[1].Shadow {
		t.Errorf("decision %+v", d)
	}
	g.Policies.Put(global(Hook{Name: "everybody"}))
	said["everybody"] = block("e")
	if d := decide(t, g, stop("s")); d.Outcome != Block || d.Reason != "e" {
		t.Errorf("decision %+v", d)
	}
	own = agent(Hook{Name: "own"})
	g = newGate(newMemory(), said, own, attached(ClaudeCode, Hook{Name: "cc"}))
	if d := decide(t, g, stop("s")); d.Reason != "o\n\nc" {
		t.Errorf("without the mode: %+v", d)
	}
}

// What fails for the shadows' sake alone is no failure of the gate.
func TestShadowAloneNeverDegrades(t *testing.T) {
	m := newMemory()
	g := newGate(m, answers{}, agent(Hook{Name: "h", Shadow: true}))
	g.OnGateError = FailBlock
	for name, err := range map[string]error{"ours": &Failure{Internal, "disk"}, "the caller's": Errorf(CodeValidation, "bad")} {
		g.Transcripts = transcriptsFunc(func(*Event) (Transcript, error) { return nil, err })
		if d := decide(t, g, stop("s")); d.Outcome != Allow || d.Degraded || !d.Hooks[0].Has(TranscriptLost) {
			t.Errorf("%s: %+v", name, d)
		}
	}
	m.broken = errBroken // nothing is recorded, as without a hook
	if d := decide(t, g, stop("s")); d.Outcome != Allow || d.GateError == nil {
		t.Errorf("store down: %+v", d)
	}
}

// The doctor's probe is blocked by hooks that can block.
func TestShadowAndTheProbe(t *testing.T) {
	g := newGate(newMemory(), answers{}, agent(Hook{Name: "h", Shadow: true}))
	ev := stop("s")
	ev.Probe = "mark"
	if d := decide(t, g, ev); d.Outcome != Allow {
		t.Errorf("decision %+v", d)
	}
}

// With one slot for all, a shadow that takes the host's whole deadline, declared
// first, leaves the others their time.
func TestNoHookWaitsForAShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := EvaluatorFunc(func(ctx context.Context, in Input) Verdict {
			takes := time.Second
			if in.Hook.Shadow {
				takes = time.Hour
			}
			select {
			case <-time.After(takes):
				return Verdict{Outcome: Block, Reason: "no"}
			case <-ctx.Done():
				return failed(Timeout, "late")
			}
		})
		g := newGate(newMemory(), asked, agent(Hook{Name: "slow", Shadow: true}, Hook{Name: "h"}))
		g.Parallel = 1
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		d, err := g.Decide(ctx, stop("s"), Options{})
		if err != nil || d.Outcome != Block || d.Hooks[1].Reason != "no" || d.Hooks[0].Failure == nil {
			t.Errorf("decision %+v, %v", d, err)
		}
	})
}

// A block of a shadow ends no turn of ax-code's hooks, and the cap of claude-code's
// is none to a shadow.
func TestShadowsAreAsked(t *testing.T) {
	said := answers{"x1": block("x1"), "x2": block("x2"), "c": block("c"), "z": block("z")}
	x1, x2 := everyTool("x1", PreToolUse), everyTool("x2", PreToolUse)
	x1.Shadow, x2.Shadow = true, true
	if d := decide(t, newGate(newMemory(), said, attached(AXCode, x1, x2)), tool(PreToolUse)); d.Hooks[0].Outcome != Block || d.Hooks[1].Outcome != Block {
		t.Errorf("ax-code: %+v", d.Hooks)
	}
	g := newGate(newMemory(), said, agent(Hook{Name: "z"}), attached(ClaudeCode, Hook{Name: "c", Shadow: true}))
	for range claudeCodeStops + 1 {
		if d := decide(t, g, stop("s")); d.Outcome != Block || d.Hooks[1].Outcome != Block || d.Forced {
			t.Fatalf("claude-code: %+v", d)
		}
	}
}
