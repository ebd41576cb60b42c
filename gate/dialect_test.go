package gate

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// attached are hooks of agent "a" in another dialect.
func attached(d Dialect, hooks ...Hook) *Spec {
	s := &Spec{Kind: Attached(d), Name: "a", Hooks: defaults(hooks)}
	for i := range s.Hooks {
		s.Hooks[i].Dialect, s.Hooks[i].Level = d, CustomLevel
	}
	return s
}

// everyTool is a hook on a tool event whose matcher takes every tool.
func everyTool(name string, event EventName) Hook {
	all, _ := CompileMatcher("*")
	return Hook{Name: name, Event: event, Matcher: all}
}

// One agent has hooks of every dialect on one event. Each dialect rules by its
// own law, and over the dialects deny beats ask beats allow (DESIGN §2.5).
func TestMixedDialectsCombine(t *testing.T) {
	allow, ask, no := says(Verdict{Outcome: Allow}), says(Verdict{Outcome: Ask, Reason: "ask"}), block
	askFor := func(reason string) func(Input) Verdict { return says(Verdict{Outcome: Ask, Reason: reason}) }
	for _, c := range []struct {
		name            string
		event           EventName
		answers         answers // az1, az2, an1, an2, ax1, ax2, cc1, cc2; the rest allow
		outcome         Outcome
		reason, context string
		skipped         []string
	}{
		{"nobody objects", PreToolUse, answers{}, Allow, "", "", nil},
		{"an ask of one dialect holds over the allows of the others", PreToolUse, answers{"cc1": ask}, Ask, "ask", "", nil},
		{"a deny of one beats the ask of another, and only denials are told", PreToolUse, answers{"az1": ask, "ax1": no("no from ax")}, Block, "no from ax", "", []string{"ax2"}},
		{"denials of several dialects are told in firing order", PreToolUse,
			answers{"cc1": no("c"), "ax2": no("x"), "an1": no("n"), "az2": no("z")}, Block, "z\n\nn\n\nx\n\nc", "", nil},
		{"azure joins the reasons of one dialect, antigravity takes its first", PreToolUse,
			answers{"az1": no("z1"), "az2": no("z2"), "an1": no("n1"), "an2": no("n2")}, Block, "z1\n\nz2\n\nn1", "", nil},
		{"a reason that several dialects give is said once, each other in its place", PreToolUse,
			answers{"az1": no("same"), "az2": no("z"), "an1": no("same"), "ax1": no("same"), "cc1": no("c"), "cc2": no("z")}, Block, "same\n\nz\n\nc", "", []string{"ax2"}},
		{"ax-code stops at its first block, antigravity does not", PreToolUse,
			answers{"ax1": no("x1"), "ax2": no("x2"), "an1": no("n1"), "an2": no("n2")}, Block, "n1\n\nx1", "", []string{"ax2"}},
		{"of several asks of ax-code the first counts, of azure all", PreToolUse,
			answers{"az1": askFor("z1"), "az2": askFor("z2"), "ax1": askFor("x1"), "ax2": askFor("x2")}, Ask, "z1\n\nz2\n\nx1", "", nil},
		{"a failure of one dialect lifts no denial of another", PreToolUse, answers{"an1": fails, "az1": no("z")}, Block, "z", "", nil},
		{"an azure Stop without a reason approves, another dialect's rejects", Stop, answers{"az1": no(""), "cc1": no("")}, Block, defaultReason, "", nil},
		{"contexts: azure's last, and those of the others", PostToolUse,
			answers{"az1": allowWith("z1"), "az2": allowWith("z2"), "cc1": allow, "cc2": allowWith("c2")}, Allow, "", "z2\n\nc2", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			pair := func(d string) []Hook {
				return []Hook{everyTool(d+"1", c.event), everyTool(d+"2", c.event)}
			}
			g := newGate(newMemory(), c.answers, attached(ClaudeCode, pair("cc")...), attached(AXCode, pair("ax")...),
				attached(Antigravity, pair("an")...), agent(pair("az")...))
			ev := tool(c.event)
			if c.event == Stop {
				ev = stop("s")
			}
			d := decide(t, g, ev)
			if d.Outcome != c.outcome || d.Reason != withheld(c.event, c.outcome, c.reason) || d.AdditionalContext != c.context {
				t.Errorf("%s %q, context %q; want %s %q, context %q", d.Outcome, d.Reason, d.AdditionalContext, c.outcome, c.reason, c.context)
			}
			var names, skipped []string
			for _, v := range d.Hooks {
				names = append(names, v.Name)
				if v.Outcome == Skipped {
					skipped = append(skipped, v.Name)
				}
			}
			if diff := cmp.Diff(c.skipped, skipped); diff != "" {
				t.Errorf("skipped (-want +got)\n%s", diff)
			}
			want := "az1 az2 an1 an2 ax1 ax2 cc1 cc2"
			if c.event == Stop { // which the Gemini API has not
				want = "az1 az2 ax1 ax2 cc1 cc2"
			}
			if order := strings.Join(names, " "); order != want {
				t.Errorf("firing order %s, want %s", order, want)
			}
		})
	}
}

func withheld(event EventName, outcome Outcome, reason string) string {
	if event == PostToolUse && outcome == Block {
		return reason + "\n\n" + Withheld
	}
	return reason
}

// Azure's and Claude Code's hooks of one event run at once, antigravity's and
// AX Code's one after another (DESIGN §2), and the dialects beside each other.
func TestOrderOfEachDialect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var most [4]atomic.Int32
		var now [4]atomic.Int32
		var order []string
		slow := func(_ context.Context, in Input) Verdict {
			i := strings.Index("azanaxcc", in.Hook.Name[:2]) / 2
			n := now[i].Add(1)
			most[i].Store(max(n, most[i].Load()))
			if i == 1 {
				order = append(order, in.Hook.Name)
			}
			time.Sleep(time.Second)
			now[i].Add(-1)
			return Verdict{Outcome: Allow}
		}
		three := func(d string) (hooks []Hook) {
			for i := range 3 {
				hooks = append(hooks, everyTool(fmt.Sprint(d, i), PreToolUse))
			}
			return hooks
		}
		g := newGate(newMemory(), EvaluatorFunc(slow), agent(three("az")...), attached(Antigravity, three("an")...),
			attached(AXCode, three("ax")...), attached(ClaudeCode, three("cc")...))
		began := time.Now()
		decide(t, g, tool(PreToolUse))
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %s: the dialects wait for each other", took)
		}
		for i, want := range []int32{3, 1, 1, 3} {
			if got := most[i].Load(); got != want {
				t.Errorf("%s: %d hooks at once, want %d", Dialects[i], got, want)
			}
		}
		if diff := cmp.Diff([]string{"an0", "an1", "an2"}, order); diff != "" {
			t.Errorf("antigravity (-want +got)\n%s", diff)
		}
	})
}

// More hooks than may run at once, some of them in turn: all are asked.
func TestFewSlotsForManyDialects(t *testing.T) {
	hooks := []Hook{everyTool("1", PreToolUse), everyTool("2", PreToolUse), everyTool("3", PreToolUse)}
	g := newGate(newMemory(), answers{}, agent(append([]Hook{}, hooks...)...), attached(Antigravity, append([]Hook{}, hooks...)...), attached(AXCode, hooks...))
	g.Parallel = 1
	if d := decide(t, g, tool(PreToolUse)); len(d.Hooks) != 9 || d.Outcome != Allow {
		t.Errorf("%d hooks, %s", len(d.Hooks), d.Outcome)
	}
}

func TestClaudeCode07EightBlocksInARow(t *testing.T) {
	g := newGate(newMemory(), answers{"c": block("no"), "z": block("z")}, attached(ClaudeCode, Hook{Name: "c", Event: Stop}))
	for i := range 8 {
		if d := decide(t, g, stop("s")); d.Outcome != Block {
			t.Fatalf("Stop %d: %s", i+1, d.Outcome)
		}
	}
	d := decide(t, g, stop("s"))
	if d.Outcome != Allow || !d.Forced || !d.Hooks[0].Has(Capped) {
		t.Errorf("the ninth: %s, forced %v, %v", d.Outcome, d.Forced, d.Hooks[0].Notes)
	}
	if d := decide(t, g, stop("s")); d.Outcome != Block {
		t.Errorf("a new loop: %s", d.Outcome)
	}
	t.Run("azure's prompt hooks keep their own cap", func(t *testing.T) {
		g := newGate(newMemory(), answers{"c": block("no"), "z": block("z")}, agent(prompt("z", 2)), attached(ClaudeCode, Hook{Name: "c", Event: Stop}))
		var reasons []string
		for range 9 {
			reasons = append(reasons, decide(t, g, stop("s")).Reason)
		}
		if diff := cmp.Diff([]string{"z\n\nno", "z\n\nno", "no", "no", "no", "no", "no", "no", ""}, reasons); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("two at once at the cap: one is the last rejection, the other the forced allow", func(t *testing.T) {
		m := newMemory()
		g := newGate(m, answers{"c": block("no")}, attached(ClaudeCode, Hook{Name: "c", Event: Stop}))
		for range 7 {
			decide(t, g, stop("s"))
		}
		m.between = func() {
			if d := decide(t, g, stop("s")); d.Outcome != Block {
				t.Errorf("the one in between: %s", d.Outcome)
			}
		}
		if d := decide(t, g, stop("s")); d.Outcome != Allow || !d.Forced {
			t.Errorf("the other: %s, forced %v", d.Outcome, d.Forced)
		}
	})
}

func TestAgentsWithAttachedHooksAlone(t *testing.T) {
	g := newGate(newMemory(), answers{"c": block("no")}, attached(ClaudeCode, Hook{Name: "c", Event: Stop}))
	if d := decide(t, g, stop("s")); d.Outcome != Block {
		t.Errorf("an agent without a spec of its own: %s", d.Outcome)
	}
	if _, err := g.Decide(t.Context(), Event{Name: Stop, Protocol: Native, Agent: "b"}, Options{}); CodeOf(err) != CodeNotFound {
		t.Errorf("another agent: %v", err)
	}
	g.Policies.SetFiles(nil)
	if _, err := g.Decide(t.Context(), stop("s"), Options{}); CodeOf(err) != CodeNotFound {
		t.Errorf("after its hooks were taken away: %v", err)
	}
}

func TestNetworkIsItsAgents(t *testing.T) {
	var seen []*Network
	look := func(_ context.Context, in Input) Verdict {
		seen = append(seen, in.Network)
		return Verdict{Outcome: Allow}
	}
	n := &Network{Disabled: true}
	g := newGate(newMemory(), EvaluatorFunc(look), attached(Antigravity, everyTool("h", PreToolUse)), &Spec{Kind: NetworkSpec, Name: "a", Network: n},
		&Spec{Kind: NetworkSpec, Name: "b", Network: &Network{}})
	decide(t, g, tool(PreToolUse))
	if len(seen) != 1 || seen[0] != n {
		t.Errorf("%v", seen)
	}
}
