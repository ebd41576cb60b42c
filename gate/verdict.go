package gate

import (
	"fmt"
	"slices"
	"time"
)

// Outcome is what a hook, or the gate, says of an event.
type Outcome string

const (
	Allow     Outcome = "allow"
	Block     Outcome = "block"
	Ask       Outcome = "ask"        // a person must approve; PreToolUse only
	NoVerdict Outcome = "no_verdict" // the hook could not be asked; see Failure
	Skipped   Outcome = "skipped"    // the hook matched and was not asked; see Notes
)

// Note is a remark on a verdict that a program may act on.
type Note string

// Every note there is (DESIGN §5). One more is a documented change.
const (
	RejectedWithoutReason Note = "rejected_without_reason"
	FailedOpen            Note = "failed_open"
	FailedClosed          Note = "failed_closed"
	Capped                Note = "capped"
	MaxTurns              Note = "max_turns"
	Repaired              Note = "repaired"
	Deferred              Note = "deferred"
	NoProgress            Note = "no_progress"
	Impossible            Note = "impossible"
	WouldBlock            Note = "would_block"
	ReasonCut             Note = "reason_cut"
	ContextIgnored        Note = "context_ignored"
	TranscriptLost        Note = "transcript_unreadable"
	HaltRequested         Note = "halt_requested"
	WhenFalse             Note = "when_false"
	Overridden            Note = "overridden"
	FileMissing           Note = "file_missing"
)

// Notes lists every [Note].
var Notes = []Note{RejectedWithoutReason, FailedOpen, FailedClosed, Capped, MaxTurns, Repaired, Deferred,
	NoProgress, Impossible, WouldBlock, ReasonCut, ContextIgnored, TranscriptLost, HaltRequested, WhenFalse, Overridden, FileMissing}

// FailureCode says why a hook, or the gate itself, could not answer.
type FailureCode string

// Every failure code there is (DESIGN §5). One more is a documented change.
const (
	Timeout              FailureCode = "timeout"
	ModelUnavailable     FailureCode = "model_unavailable"
	ModelRateLimited     FailureCode = "model_rate_limited"
	ModelRefused         FailureCode = "model_refused"
	ModelTruncated       FailureCode = "model_truncated"
	BadVerdict           FailureCode = "bad_verdict"
	BadOutput            FailureCode = "bad_output"
	BadExpression        FailureCode = "bad_expression"
	NonzeroExit          FailureCode = "nonzero_exit"
	Signalled            FailureCode = "signalled"
	InterpreterMissing   FailureCode = "interpreter_missing"
	ScriptMissing        FailureCode = "script_missing"
	OutputTooLarge       FailureCode = "output_too_large"
	SandboxUnavailable   FailureCode = "sandbox_unavailable"
	HTTPStatus           FailureCode = "http_status"
	HTTPUnreachable      FailureCode = "http_unreachable"
	EgressDenied         FailureCode = "egress_denied"
	TranscriptUnreadable FailureCode = "transcript_unreadable"
	BudgetExhausted      FailureCode = "budget_exhausted"
	Overloaded           FailureCode = "overloaded"
	UnknownAgent         FailureCode = "unknown_agent"
	BodyTooLarge         FailureCode = "body_too_large"
	StoreUnavailable     FailureCode = "store_unavailable"
	SessionErased        FailureCode = "session_erased"
	BadQuery             FailureCode = "bad_query"
	NotPermitted         FailureCode = "not_permitted"
	Internal             FailureCode = "internal"
)

// FailureCodes lists every [FailureCode].
var FailureCodes = []FailureCode{Timeout, ModelUnavailable, ModelRateLimited, ModelRefused, ModelTruncated,
	BadVerdict, BadOutput, BadExpression, NonzeroExit, Signalled, InterpreterMissing, ScriptMissing, OutputTooLarge, SandboxUnavailable,
	HTTPStatus, HTTPUnreachable, EgressDenied, TranscriptUnreadable, BudgetExhausted, Overloaded, UnknownAgent,
	BodyTooLarge, StoreUnavailable, SessionErased, BadQuery, NotPermitted, Internal}

// Missing lists the failures that come of what the machine lacks, or does not show
// to scripts, and that are no property of a hook.
var Missing = []FailureCode{InterpreterMissing, ScriptMissing, SandboxUnavailable}

// Unasked lists the failures that say nothing of a hook: it could not be asked here
// and now.
var Unasked = slices.Concat(Missing, []FailureCode{ModelUnavailable, ModelRateLimited, HTTPUnreachable, EgressDenied,
	TranscriptUnreadable, BudgetExhausted, Overloaded, StoreUnavailable, Internal})

// Failure is why something could not be asked. The message is for a person,
// holds no secret and is never empty.
type Failure struct {
	Code    FailureCode `json:"code"`
	Message string      `json:"message"`
}

// Error makes a Failure usable where an evaluator's own helpers return errors.
func (f *Failure) Error() string { return string(f.Code) + ": " + f.Message }

// Usage is what a verdict cost. PromptTokens counts the cached ones too.
type Usage struct {
	Calls        int `json:"calls"`
	PromptTokens int `json:"prompt_tokens"`
	CachedTokens int `json:"cached_tokens"`
	OutputTokens int `json:"output_tokens"`
	// Cost is what they cost by the server file's prices, in their currency; 0
	// where no price is known.
	Cost float64 `json:"cost,omitempty"`
}

// Plus is both together.
func (u Usage) Plus(o Usage) Usage {
	return Usage{Calls: u.Calls + o.Calls, PromptTokens: u.PromptTokens + o.PromptTokens,
		CachedTokens: u.CachedTokens + o.CachedTokens, OutputTokens: u.OutputTokens + o.OutputTokens, Cost: u.Cost + o.Cost}
}

// Price of a model, per million tokens, in whatever currency.
type Price struct {
	In     float64 `json:"in"` // prompt tokens that were not cached
	Cached float64 `json:"cached"`
	Out    float64 `json:"out"`
}

// Of is what a usage costs. Prompt tokens count the cached ones too.
func (p Price) Of(u Usage) float64 {
	return (float64(max(u.PromptTokens-u.CachedTokens, 0))*p.In + float64(u.CachedTokens)*p.Cached + float64(u.OutputTokens)*p.Out) / 1e6
}

// Verdict is one hook's answer. An evaluator fills Outcome, Reason,
// AdditionalContext, Notes, Failure, Model, Usage and Evidence; the rest is
// set by [Gate.Decide].
//
// The JSON form is an item of "hooks" in an answer and in a record.
type Verdict struct {
	Name  string   `json:"name"`
	Level Level    `json:"level"`
	Type  HookType `json:"type"`
	// Dialect is whose rules the hook follows; empty in records from before it
	// was kept.
	Dialect Dialect `json:"dialect,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Shadow: nothing comes of the verdict; see [Hook.Shadow].
	Shadow bool   `json:"shadow,omitempty"`
	Reason string `json:"reason"`
	Notes  []Note `json:"notes"`
	// Failure is set exactly when Outcome is NoVerdict.
	Failure           *Failure      `json:"error,omitempty"`
	FailMode          FailMode      `json:"fail_mode"`
	AdditionalContext string        `json:"additional_context"`
	Injected          bool          `json:"injected"` // AdditionalContext is the one the agent gets
	DurationMS        int64         `json:"duration_ms"`
	Model             string        `json:"model,omitempty"`
	Usage             *Usage        `json:"usage,omitempty"`
	Evidence          *Evidence     `json:"evidence,omitempty"` // in records only
	Duration          time.Duration `json:"-"`

	hook *Hook // which hook said it
}

// Evidence is what a verdict rests on, for the record.
type Evidence struct {
	ExitCode *int   `json:"exit_code,omitempty"` // command hooks that ended by themselves
	Signal   string `json:"signal,omitempty"`    // command hooks that were ended by a signal
	Status   int    `json:"status,omitempty"`    // http hooks that were answered
	Stdout   string `json:"stdout,omitempty"`    // cut to EvidenceBytes; of http hooks the answer's body
	Stderr   string `json:"stderr,omitempty"`    // cut to EvidenceBytes
	// Workspace is what a command hook saw of where its agent works: none, read-only
	// or read-write; empty in records from before it was kept.
	Workspace string `json:"workspace,omitempty"`
	// Missing is what a command hook wanted and could not see; nil: nothing is known
	// of such.
	Missing *Unseen `json:"missing,omitempty"`
	Steps   []Step  `json:"steps,omitempty"` // prompt hooks: what the judge did, in order
	// Of prompt hooks: how sure the judge was that the check is passed, 0 to 1,
	// where it said so; and what it quotes.
	Probability *float64 `json:"probability,omitempty"`
	Quotes      []Quote  `json:"quotes,omitempty"`
}

// Unseen is a file or directory, or an interpreter, that a command hook wanted and
// that is not there where hooks run. Path and Said are the hook's words, and may be
// its agent's.
type Unseen struct {
	Path string `json:"path,omitempty"` // at most 200 characters; empty: it did not say which
	Said string `json:"said,omitempty"` // the line in which it said so, at most 200 characters; empty: its command names the path
	Why  string `json:"why"`            // it is not there, and what helps
}

// Quote is a text that a judge bases its verdict on.
type Quote struct {
	Line  int    `json:"line,omitempty"` // of the conversation; 0: of the event
	Quote string `json:"quote"`
	// Verified: it stands there. One that does not was made up.
	Verified bool `json:"verified"`
}

// EvidenceBytes is how much of one text a record keeps.
const EvidenceBytes = 16 << 10

// Step is one thing that a judge did: a model answer or a tool call.
type Step struct {
	Tool   string `json:"tool,omitempty"`  // ReadFile, GrepSearch, submit_verdict; "context": it was shortened; empty: the model's text
	Input  string `json:"input,omitempty"` // the call's arguments
	Text   string `json:"text,omitempty"`  // the model's text, or the head of the tool's result
	Tokens int    `json:"tokens,omitempty"`
}

// CutEvidence shortens a text to [EvidenceBytes], at a rune's start, and says
// so.
func CutEvidence(s string) string {
	const mark = "\n[cut]"
	if len(s) <= EvidenceBytes {
		return s
	}
	return Cut(s, EvidenceBytes-len(mark)) + mark
}

// failed makes the verdict of a hook that could not be asked.
func failed(code FailureCode, message string) Verdict {
	return Verdict{Outcome: NoVerdict, Failure: &Failure{Code: code, Message: message}}
}

func (v *Verdict) note(n Note) {
	if !v.Has(n) {
		v.Notes = append(v.Notes, n)
	}
}

// Has reports whether the verdict carries the note.
func (v *Verdict) Has(n Note) bool {
	return slices.Contains(v.Notes, n)
}

// Hindered is why a verdict says nothing of its hook: its failure, if it is one of
// these, or a file that the hook could not see when it refused; nil: it does say
// something.
func (v *Verdict) Hindered(by []FailureCode) *Failure {
	switch {
	case v.Failure != nil && slices.Contains(by, v.Failure.Code):
		return v.Failure
	case v.Has(FileMissing) && v.Evidence != nil && v.Evidence.Missing != nil:
		return &Failure{Code: ScriptMissing, Message: fmt.Sprintf("the hook said so without seeing %q: %s", v.Evidence.Missing.Path, v.Evidence.Missing.Why)}
	case v.Has(FileMissing):
		return &Failure{Code: ScriptMissing, Message: "the hook said so without seeing a file that it wants"}
	}
	return nil
}

// dialect is whose rules the verdict's hook follows.
func (v *Verdict) dialect() Dialect { return v.hook.Dialect }

// objects reports whether the settled verdict stands against the event: a
// block, or no verdict under failMode block.
func (v *Verdict) objects() bool {
	return v.Outcome == Block || v.Outcome == NoVerdict && v.FailMode == FailBlock
}
