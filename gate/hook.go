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

// Dialect names the hook system whose rules a hook follows.
type Dialect string

// Azure is the dialect of Azure SRE Agent hooks.
const Azure Dialect = "azure"

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
)

// Hook is one compiled check, ready to be asked. It is not changed after the
// spec that declared it was read, so it may be shared.
type Hook struct {
	Name       string // as declared, or "Stop[0]" for an inline hook without a name
	Level      Level
	Dialect    Dialect // whose rules it follows (DESIGN §1); every law here is still Azure's
	Event      EventName
	Activation Activation // agent-level hooks; empty means always
	Type       HookType
	Matcher    Matcher // tool events only; the zero Matcher matches nothing
	Timeout    time.Duration
	FailMode   FailMode

	// MaxRejections is the cap on rejections by prompt Stop hooks; 0 when the
	// spec did not set it (spec/azure.md 35).
	MaxRejections int

	Prompt  string // prompt hooks
	Model   string // prompt hooks: a tier or a deployment name (spec/azure.md 50)
	Command string // command hooks: a shell line …
	Script  string // … or a whole script with its shebang
}

// countsRejections reports whether the hook's rejections count against
// maxRejections: prompt hooks on Stop do, all others do not.
func (h *Hook) countsRejections() bool { return h.Type == PromptHook && h.Event == Stop }
