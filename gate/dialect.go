package gate

import "context"

// Dialect names the hook system whose rules a hook follows (DESIGN §1).
type Dialect string

const (
	Azure       Dialect = "azure"       // Azure SRE Agent (spec/azure.md)
	Antigravity Dialect = "antigravity" // agents of the Gemini API (spec/antigravity.md)
	AXCode      Dialect = "ax-code"     // AX Code (spec/ax-code.md)
	ClaudeCode  Dialect = "claude-code" // a settings.json of Claude Code (spec/claude-code.md 1–7)
)

// Dialects lists every [Dialect], in the order in which their hooks fire on one
// event.
var Dialects = []Dialect{Azure, Antigravity, AXCode, ClaudeCode}

// InTurn reports whether the dialect's hooks of one event run one after another,
// in firing order; the others run at once (DESIGN §2).
func (d Dialect) InTurn() bool { return d == Antigravity || d == AXCode }

// Concerns reports whether the hook is about the event, by its dialect's rules. That it
// is active, and its agent the event's, is not asked.
func (h *Hook) Concerns(ev *Event) bool {
	switch h.Dialect {
	case Antigravity:
		return antigravityConcerns(h, ev)
	case AXCode:
		return axCodeConcerns(h, ev)
	case ClaudeCode:
		return claudeCodeConcerns(h, ev)
	}
	return azureConcerns(h, ev)
}

// told is what the hook gets to know of the event, in its dialect's form.
func (h *Hook) told(ev *Event, loop loopState, transcript Transcript) []byte {
	switch h.Dialect {
	case Antigravity:
		return antigravityPayload(ev)
	case AXCode:
		return axCodePayload(ev)
	case ClaudeCode:
		return claudeCodePayload(h, ev, loop, transcript)
	}
	return contextJSON(ev, h, loop, transcript)
}

// ruling is what the hooks of one dialect come to together.
type ruling struct {
	outcome Outcome
	reasons []string // of the hooks that hold the outcome, in firing order
	// contexts are what the agent is told beside. The verdicts they come from are
	// marked as injected.
	contexts []string
}

// rule combines the settled verdicts of one dialect, in firing order.
func (d Dialect) rule(ev *Event, verdicts []Verdict) ruling {
	switch d {
	case Antigravity:
		return antigravityRuling(verdicts)
	case AXCode:
		return axCodeRuling(ev, verdicts)
	case ClaudeCode:
		return claudeCodeRuling(ev, verdicts)
	}
	return azureRuling(ev, verdicts)
}

// endsTurn reports whether after this verdict the dialect's further hooks are
// not run (spec/ax-code.md 10).
func (h *Hook) endsTurn(v *Verdict) bool {
	blocks := v.Outcome == Block || v.Outcome == NoVerdict && h.failModeOf(v) == FailBlock
	return h.Dialect == AXCode && blocks && !h.Shadow
}

// timed bounds an evaluation by the hook's own time. A command hook of AX Code
// has it from the start of its process (spec/ax-code.md 9), of which the
// evaluator alone knows.
func (h *Hook) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.Dialect == AXCode && h.Type == CommandHook {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, h.Timeout)
}

// failModeOf is what a verdict that is none becomes. AX Code waits for a hook as
// long as it takes, and a host of the gate's does not: of a hook that could have
// blocked, and had no place to run or too little of its time before the gate must
// answer, that is no allow, or many calls at once would get past it.
func (h *Hook) failModeOf(v *Verdict) FailMode {
	if h.Dialect == AXCode && AXCodeBlocks(h.Event) && (h.ReadsAnswer || h.BlockOnFailure) && v.Failure != nil && v.Failure.Code == Overloaded {
		return FailBlock
	}
	return h.FailMode
}

// inDialect is the name that an agent of that dialect has for one of a host's
// tools: own is the dialect's name of a canonical tool, empty where it has none.
// The host's name stays where it has no other.
func inDialect(ev *Event, own func(canonical string) string) string {
	for _, canonical := range ev.ToolAliases {
		if name := own(canonical); name != "" {
			return name
		}
	}
	if name := own(ev.ToolName); name != "" {
		return name
	}
	return ev.ToolName
}
