package gate

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A gate that blocks what is needed to recover is let go of (fault G35). While it
// lasts a session's Stops are allowed unasked, forced and with the reason;
// after it, in another session, of an agent that it is not for, and on tools all is
// as ever.
func TestOverride(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := at
	var asked atomic.Int64 // an event's hooks are asked at once
	m := newMemory()
	no := func(Input) Verdict { asked.Add(1); return Verdict{Outcome: Block, Reason: "no"} }
	g := newGate(m, answers{"p": no, "c": no, "w": no, "t": no}, agent(prompt("p", 3), Hook{Name: "c"}, Hook{Name: "w", Shadow: true}, Hook{Name: "t", Event: PreToolUse}))
	g.Now = func() time.Time { return now }
	decideAt := func(after time.Duration, ev Event) (Decision, int64) {
		t.Helper()
		now = at.Add(after)
		asked.Store(0)
		d := decide(t, g, ev)
		return d, asked.Load()
	}
	m.overrides["s"] = Override{Session: "s", Reason: "staging is down", By: "jane", Agents: []string{"a*"}, Since: at, Until: at.Add(time.Hour)}

	for _, after := range []time.Duration{0, time.Hour - time.Millisecond} {
		d, n := decideAt(after, stop("s"))
		if d.Outcome != Allow || !d.Forced || d.Degraded || d.StopHookActive || d.StopRejectionCount != 0 || n != 0 || len(d.Hooks) != 3 {
			t.Errorf("after %s: %d asked, %+v", after, n, d)
		}
		for _, v := range d.Hooks {
			if v.Outcome != Skipped || !v.Has(Overridden) || v.Reason != "not asked: until 2026-03-01T13:00:00Z jane lets this session stop: staging is down" {
				t.Errorf("after %s: %+v", after, v)
			}
		}
	}
	for name, ev := range map[string]Event{"another session": stop("t"), "a tool": tool(PreToolUse), "no session": stop("")} {
		if d, n := decideAt(time.Minute, ev); d.Outcome != Block || n == 0 {
			t.Errorf("%s: %d asked, %+v", name, n, d)
		}
	}
	m.overrides["other"] = Override{Session: "other", Reason: "r", By: "b", Agents: []string{"b*"}, Until: at.Add(time.Hour)}
	if d, n := decideAt(time.Minute, stop("other")); d.Outcome != Block || n != 3 {
		t.Errorf("of an agent that it is not for: %d asked, %+v", n, d)
	}
	dry := stop("s")
	dry.Dry = true
	if d, _ := decideAt(time.Minute, dry); d.Outcome != Block { // what is tried is meant to be tried
		t.Errorf("dry: %+v", d)
	}
	probe := stop("s")
	probe.Probe = "mark"
	if d, _ := decideAt(time.Minute, probe); d.Outcome != Block || !strings.Contains(d.Reason, "mark") {
		t.Errorf("probe: %+v", d)
	}
	if d, n := decideAt(time.Hour, stop("s")); d.Outcome != Block || n != 3 {
		t.Errorf("after the end: %d asked, %+v", n, d)
	}
	m.broken = errBroken
	if d, n := decideAt(time.Minute, stop("s")); d.Outcome != Block || n != 3 || !d.Degraded {
		t.Errorf("unreadable: %d asked, %+v", n, d)
	}
}
