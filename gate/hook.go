package gate

import "time"

// HookType says how a hook is asked.
type HookType string

const (
	PromptHook  HookType = "prompt"
	CommandHook HookType = "command"
	HTTPHook    HookType = "http"
	RuleHook    HookType = "rule"
)

// FailMode turns "no verdict" into allow or block (spec/azure.md 42).
type FailMode string

const (
	FailAllow FailMode = "allow"
	FailBlock FailMode = "block"
)

// Level says where a hook was declared: agent-level hooks (GlobalHook) fire
// before those of the custom agent (spec/azure.md 39).
type Level string

const (
	AgentLevel  Level = "agent"
	CustomLevel Level = "custom"
)

// Activation says whether an agent-level hook is active in a new thread
// (spec/azure.md 12).
type Activation string

const (
	Always   Activation = "always"
	OnDemand Activation = "onDemand"
)

// Defaults and bounds of a hook's fields (spec/azure.md 14–16, 19).
const (
	DefaultTimeout       = 30 * time.Second
	LongTimeout          = 300 * time.Second // beyond it: accepted with a warning
	DefaultMaxRejections = 3
	MinMaxRejections     = 1
	MaxMaxRejections     = 25
	MaxScriptBytes       = 65536
	DefaultModel         = "ReasoningFast"
	DefaultThreshold     = 0.5
)

// Hook is one compiled check, ready to be asked. It is not changed after the
// spec that declared it was read, so it may be shared.
type Hook struct {
	Name       string // as declared, or "Stop[0]" for an inline hook without a name
	Level      Level
	Dialect    Dialect // whose rules it follows (DESIGN §1)
	Event      EventName
	Activation Activation // agent-level hooks; empty means always
	Type       HookType
	Matcher    Matcher // tool events only; the zero Matcher matches nothing
	Timeout    time.Duration
	FailMode   FailMode
	// Shadow: the hook is asked and its verdict recorded, and nothing comes of it.
	Shadow bool
	// When says of which events that the hook is about it is asked; nil: of all.
	When Condition

	// MaxRejections is the cap on rejections by prompt Stop hooks; 0 when the
	// spec did not set it (spec/azure.md 35).
	MaxRejections int

	Prompt string // prompt hooks
	Model  string // prompt hooks: a tier or a deployment name (spec/azure.md 50)
	// Votes is how many judges decide, by majority; 0 and 1: one. Models are whom
	// they ask, in turn; none: all ask Model.
	Votes  int
	Models []string
	// Cache: a verdict on exactly the same question is given again unasked.
	Cache bool
	// Threshold is the probability from which on a judge's verdict is a pass; 0:
	// [DefaultThreshold]. It matters where the judge gives one.
	Threshold float64
	// EvidenceRequired: a pass without a quote, and any verdict with one that
	// stands nowhere, is no verdict.
	EvidenceRequired bool
	Command          string // command hooks: a shell line …
	Script           string // … or a whole script with its shebang
	// Rules decide a rule hook; nil: its Pack does.
	Rules Evaluator

	// Of the other dialects; see the file of each.
	Args           []string          // claude-code: Command is a program that gets them, without a shell; nil: a shell line
	Env            map[string]string // claude-code: variables of the settings that a command finds
	URL            string            // http hooks
	Headers        []Header          // http hooks; the values of claude-code's may name variables
	AllowedEnv     []string          // claude-code: the variables that Headers may name
	If             *Rule             // claude-code: which of the tool's calls the hook is about; nil: all
	EndsTurn       bool              // claude-code: a prompt hook's refusal ends the turn where it could go on
	ReadsAnswer    bool              // ax-code: `protocol: claude-code`, standard output and exit 2 count
	BlockOnFailure bool              // ax-code
	Pack           string            // ax-code: the pack that the hook comes from; of a rule hook its built-in rule
}

// Header is one header of an HTTP request.
type Header struct{ Name, Value string }

// Voter is the model that the hook's judge number i asks, from 0.
func (h *Hook) Voter(i int) string {
	if len(h.Models) == 0 {
		return h.Model
	}
	return h.Models[i%len(h.Models)]
}

// enforced reports whether the hook's verdict counts.
func (h *Hook) enforced() bool { return !h.Shadow }

// countsRejections reports whether the hook's rejections count against
// maxRejections: azure's prompt hooks on Stop do, all others do not, nor does
// what only a shadow would refuse.
func (h *Hook) countsRejections() bool {
	return !h.Shadow && h.Dialect == Azure && h.Type == PromptHook && h.Event == Stop
}
