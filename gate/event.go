package gate

import (
	"encoding/json"
	"slices"
)

// EventName is the gate's own name of a moment in an agent's life. Hosts that
// call it otherwise (AfterAgent, agentStop) are translated by package wire.
type EventName string

const (
	Start              EventName = "Start"
	UserPromptSubmit   EventName = "UserPromptSubmit"
	PreToolUse         EventName = "PreToolUse"
	PostToolUse        EventName = "PostToolUse"
	PostToolUseFailure EventName = "PostToolUseFailure"
	Stop               EventName = "Stop"
	SubagentStop       EventName = "SubagentStop"
)

// Moments that hooks of some dialects watch, and that nothing can be blocked on.
// They are not among [EventNames]: no other hook is about them.
const (
	SessionEnd  EventName = "SessionEnd"
	PreCompact  EventName = "PreCompact"
	PostCompact EventName = "PostCompact"
	Interrupt   EventName = "Interrupt"
)

// EventNames lists every event, in the order of an agent's life.
var EventNames = []EventName{Start, UserPromptSubmit, PreToolUse, PostToolUse, PostToolUseFailure, Stop, SubagentStop}

// Known reports whether n is one of [EventNames].
func (n EventName) Known() bool {
	return slices.Contains(EventNames, n)
}

// ForTool reports whether the event is about one tool call, so that a hook on
// it needs a matcher (spec/azure.md 21).
func (n EventName) ForTool() bool {
	return n == PreToolUse || n == PostToolUse || n == PostToolUseFailure
}

// hookEvent is the event whose hooks answer n: a sub-agent's stop is judged as
// a Stop (spec/claude-code.md 12), a failed tool call is a PostToolUse with
// tool_succeeded=false (spec/azure.md 26).
func (n EventName) hookEvent() EventName {
	switch n {
	case SubagentStop:
		return Stop
	case PostToolUseFailure:
		return PostToolUse
	}
	return n
}

// moment is the event whose hooks are asked where failed calls have one of their
// own: a call that failed is none that succeeded, whatever its host calls it.
func (e *Event) moment() EventName {
	if e.Name == PostToolUse && !e.ToolSucceeded {
		return PostToolUseFailure
	}
	return e.Name
}

// DefaultAgent is the agent of callers that name none; it needs no spec.
const DefaultAgent = "default"

// Event is one moment of an agent's life, as a protocol decoded it.
type Event struct {
	Name     EventName
	Protocol string // how the host speaks: "native", "claude-code", …
	Agent    string // name of the agent spec; DefaultAgent needs none
	Session  string // the conversation; empty: there is no ledger
	Dry      bool   // counts nothing, recorded as a dry run

	Turn     int
	MaxTurns int // 0: unbounded

	FinalOutput string // Stop: the answer under judgement
	// AnswersJoined: FinalOutput holds every answer since the user spoke, a line
	// break between them; the newest is the one under judgement.
	AnswersJoined bool
	// AnswerUnknown: the host does not say what the answer is, and it was not
	// found elsewhere either. Stop hooks then have no verdict.
	AnswerUnknown bool

	ToolName      string          // PreToolUse, PostToolUse
	ToolAliases   []string        // canonical names of a host's own tool; matchers try them too
	ToolInput     json.RawMessage // as the host sent it, any JSON value; hooks get an object
	ToolResult    string
	ToolSucceeded bool

	Prompt   string // UserPromptSubmit: what was submitted
	ByPerson bool   // UserPromptSubmit: a person wrote it (DESIGN §9)
	PromptID string // Stop: the prompt that this turn answers, where the host names it
	SubAgent string // id of the sub-agent inside which this happened; empty: the main agent
	// AgentType names the sub-agent's spec on SubagentStop.
	AgentType string

	// ClaimedActive and ClaimedRejections are the caller's own word on the
	// loop. They count only without a session (DESIGN §5).
	ClaimedActive     bool
	ClaimedRejections int

	// Unattended: no person watches the agent, so that an ask is denied where it
	// is encoded (DESIGN §9).
	Unattended bool

	// Labels are what the caller says of the conversation, for conditions to ask
	// about, as an environment or a team.
	Labels map[string]string

	Cwd string // the agent's working directory on this machine; may be empty
	// Project is the directory of the agent's project, as its host names it,
	// wherever below it or beside it the agent works; empty: the host does not say.
	Project string
	// Projects are those of the session; nil: nobody has looked for them.
	Projects Projects

	// Background are the agent's tasks that still run while it wants to stop, as
	// the host lists them (spec/claude-code.md 11).
	Background []json.RawMessage

	// Probe is the mark of `stopgate doctor`, which asks whether hooks would be
	// asked about this event: none is, nothing is counted, and the answer is a
	// block that carries the mark. Where no hook would be asked it is an allow.
	Probe string

	// InlineTranscript is the conversation as the caller sent it with the
	// event: a JSON string, or a JSON array of messages. nil: not sent.
	InlineTranscript json.RawMessage
	// TranscriptPath names a file on this machine that holds the
	// conversation, in TranscriptFormat ("" = plain text or {role, content}).
	TranscriptPath   string
	TranscriptFormat string
	// TranscriptSession names an uploaded conversation other than the session's
	// own: a host's file that lies on another machine.
	TranscriptSession string
	// TranscriptStale: its newest part could not be sent.
	TranscriptStale bool

	// TranscriptMark: only so much of the conversation, whatever was added since;
	// it could not be read where that is not there any more. nil: as it is now. It
	// has no meaning for an inline one.
	TranscriptMark *TranscriptMark

	// Erasure is the last erasure of Session from before anything was done for the
	// event, as a claim of the session; 0: the gate looks it up itself. What an
	// event leaves behind after a later one is not kept.
	Erasure Erasure

	// HostVersion is the version of the program that asks, a [PlainVersion];
	// empty: not known yet, a transcript of the host's may tell.
	HostVersion string

	Payload []byte // the request as it came, for the record
}

// MainAgent reports whether the event happened outside any sub-agent.
func (e *Event) MainAgent() bool { return e.SubAgent == "" }

// ledgerKey is where the event's counts live: per agent and session, and per
// sub-agent inside one (spec/azure.md 38, spec/claude-code.md 12).
func (e *Event) ledgerKey() LedgerKey {
	return LedgerKey{Agent: e.Agent, Session: e.Session, SubAgent: e.SubAgent}
}
