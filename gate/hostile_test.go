package gate

import (
	"strings"
	"testing"
)

// TestTrailingBracketIsNoAnswer: exit 0 with output that is not one JSON
// value is a hook error (spec/azure.md 41). json.Decoder.More says "no more" at
// any ] or }, so what follows one is never looked at.
func TestTrailingBracketIsNoAnswer(t *testing.T) {
	for _, out := range []string{
		`{"ok":true}}`,
		`{"ok":true}]`,
		`{"ok":true} } Traceback (most recent call last): ...`,
		`{"ok":true}]{"ok":false,"reason":"tests fail"}`,
	} {
		if v, err := ReadAnswer(Stop, []byte(out)); err == nil {
			t.Errorf("%s was read as %s", out, v.Outcome)
		}
	}
}

// TestEmptyDecisionIsNoAllow: a decision that is there and is none of the
// legal words is no verdict; an unset shell variable must not open the gate.
func TestEmptyDecisionIsNoAllow(t *testing.T) {
	for _, out := range []string{
		`{"decision":"","reason":"tests fail"}`,
		`{"decision":null,"reason":"tests fail"}`,
		`{"hookSpecificOutput":{"permissionDecision":""}}`,
		`{"hookSpecificOutput":{"permissionDecision":null}}`,
	} {
		if v, err := ReadAnswer(PreToolUse, []byte(out)); err == nil {
			t.Errorf("%s was read as %s", out, v.Outcome)
		}
	}
}

// TestSubagentDoesNotResetTheMainLoop: an ungated or allowed SubagentStop
// without agent_id is decided on the main agent's ledger row, and its allow
// sets the main agent's counts to 0: the cap is never reached (35, 38).
func TestSubagentDoesNotResetTheMainLoop(t *testing.T) {
	for _, kind := range []string{"", "helper"} {
		m := newMemory()
		judge := answers{"judge": func(in Input) Verdict {
			if in.Event.Name == SubagentStop {
				return Verdict{Outcome: Allow}
			}
			return Verdict{Outcome: Block, Reason: "not yet"}
		}}
		g := newGate(m, judge, agent(Hook{Name: "judge", Type: PromptHook, Prompt: "p", MaxRejections: 2}))
		forced := false
		for range 10 {
			d := decide(t, g, stop("s"))
			if forced = d.Forced; forced {
				break
			}
			sub := stop("s")
			sub.Name, sub.AgentType = SubagentStop, kind
			decide(t, g, sub)
		}
		if !forced {
			t.Errorf("agent_type %q: 10 Stops of the main agent were rejected at maxRejections 2", kind)
		}
	}
}

// TestSubagentRejectionsAreNotTheMainAgents: nor may they count there.
func TestSubagentRejectionsAreNotTheMainAgents(t *testing.T) {
	g := newGate(newMemory(), answers{"judge": says(Verdict{Outcome: Block, Reason: "not yet"})},
		agent(Hook{Name: "judge", Type: PromptHook, Prompt: "p", MaxRejections: 2}))
	for range 2 {
		sub := stop("s")
		sub.Name = SubagentStop
		decide(t, g, sub)
	}
	if d := decide(t, g, stop("s")); d.Outcome != Block {
		t.Errorf("the main agent's first Stop was %s (forced %t): its sub-agent had used up its rejections", d.Outcome, d.Forced)
	}
}

// TestStartIsNeverBlocked: Start cannot block (DESIGN §9), also when the
// store is down and on_gate_error is block.
func TestStartIsNeverBlocked(t *testing.T) {
	m := newMemory()
	g := newGate(m, answers{}, agent(Hook{Name: "hello", Event: Start}))
	g.OnGateError = FailBlock
	m.broken = errBroken
	if d := decide(t, g, Event{Name: Start, Protocol: Native, Agent: "a", Session: "s"}); d.Outcome != Allow {
		t.Errorf("Start was answered with %s: %s", d.Outcome, d.Reason)
	}
}

// TestPaddedReasonSurvives: a reason behind more than MaxReasonBytes of
// white space is cut to "…", so the agent is sent back without a word.
func TestPaddedReasonSurvives(t *testing.T) {
	g := newGate(newMemory(), answers{"h": says(Verdict{Outcome: Block, Reason: strings.Repeat("\n", 9500) + "run the tests"})}, agent(Hook{Name: "h"}))
	if d := decide(t, g, stop("s")); d.Reason != "run the tests" {
		t.Errorf("reason is %q", d.Reason)
	}
	g = newGate(newMemory(), answers{"h": says(Verdict{Outcome: Block, Reason: strings.Repeat(" ", 9500)})}, agent(Hook{Name: "h"}))
	if d := decide(t, g, stop("s")); d.Outcome != Allow {
		t.Errorf("a reason of white space only was a %s (spec/azure.md 34)", d.Outcome)
	}
}

// TestOwnWordsDoNotReset: a rejection gives the host two user messages
// when there is an additionalContext; a host that submits them as prompts (as
// gemini-cli does) must not reset the loop with the second, nor with white
// space that it adds to the first (DESIGN §9).
func TestOwnWordsDoNotReset(t *testing.T) {
	for _, how := range []string{"context", "padded", "joined"} {
		g := newGate(newMemory(), answers{"judge": says(Verdict{Outcome: Block, Reason: "not yet", AdditionalContext: "see CONTRIBUTING"})},
			agent(Hook{Name: "judge", Type: PromptHook, Prompt: "p", MaxRejections: 2}))
		forced := false
		for range 10 {
			d := decide(t, g, stop("s"))
			if forced = d.Forced; forced {
				break
			}
			var prompts []string
			switch how {
			case "context":
				prompts = []string{d.Messages[0].Content, d.Messages[1].Content}
			case "padded":
				prompts = []string{d.Messages[0].Content + "\n"}
			case "joined":
				prompts = []string{d.Messages[0].Content + "\n\n" + d.Messages[1].Content}
			}
			for _, p := range prompts {
				decide(t, g, Event{Name: UserPromptSubmit, Protocol: Native, Agent: "a", Session: "s", Prompt: p, ByPerson: true})
			}
		}
		if !forced {
			t.Errorf("%s: the gate's own words reset the loop: 10 rejections at maxRejections 2", how)
		}
	}
}

// A person who quotes the gate's reason and goes on has spoken: only a prompt
// that is equal to it is the gate's own (DESIGN §9).
func TestQuotedReasonResets(t *testing.T) {
	const reason, more = "not yet", "see CONTRIBUTING"
	for prompt, resets := range map[string]bool{
		reason: false, reason + "\n" + more: false, more: false,
		reason + ", you say. Then stop here.": true, reason + "\nwhy?": true, "> " + reason: true, "not": true,
	} {
		m := newMemory()
		g := newGate(m, answers{"judge": says(Verdict{Outcome: Block, Reason: reason, AdditionalContext: more})}, agent(Hook{Name: "judge"}))
		decide(t, g, stop("s"))
		decide(t, g, Event{Name: UserPromptSubmit, Protocol: Native, Agent: "a", Session: "s", Prompt: prompt, ByPerson: true})
		if n := m.counts[LedgerKey{Agent: "a", Session: "s"}].StopRejections; (n == 0) != resets {
			t.Errorf("after %q: %d rejections", prompt, n)
		}
	}
}
