package gate

import (
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Message is one message to append to the agent's conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Decision is the gate's answer to one event. Its JSON form is the body of
// POST /v1/evaluate (DESIGN §5), evidence left out.
type Decision struct {
	EvaluationID      string  `json:"evaluation_id"`
	Outcome           Outcome `json:"decision"` // allow, block or ask
	Reason            string  `json:"reason"`
	AdditionalContext string  `json:"additional_context"`
	// Messages are ready to append, in order: the rejection's reason on Stop,
	// the audit context.
	Messages []Message `json:"messages"`
	// Forced: hooks were not asked, or not heeded, because the loop has ended.
	Forced bool `json:"forced"`
	// Degraded: a hook failed open, or the gate itself did.
	Degraded bool `json:"degraded"`
	// StopHookActive and StopRejectionCount are what the session's next Stop
	// will see.
	StopHookActive     bool      `json:"stop_hook_active"`
	StopRejectionCount int       `json:"stop_rejection_count"`
	GateError          *Failure  `json:"gate_error,omitempty"`
	Hooks              []Verdict `json:"hooks"`
}

// WithoutEvidence is the decision as a caller sees it.
func (d Decision) WithoutEvidence() Decision {
	hooks := make([]Verdict, len(d.Hooks))
	copy(hooks, d.Hooks)
	for i := range hooks {
		hooks[i].Evidence = nil
	}
	d.Hooks = hooks
	return d
}

// Record is one evaluation as it is stored: the decision with its evidence,
// and the event it answers. The JSON form is the body of GET
// /v1/evaluations/{id}.
type Record struct {
	Decision
	Time     time.Time `json:"time"`
	Agent    string    `json:"agent"`
	Session  string    `json:"session_id"`
	SubAgent string    `json:"sub_agent,omitempty"`
	Event    EventName `json:"event"`
	Protocol string    `json:"protocol"`
	// HostVersion is the version of the host that asked, where it is known.
	HostVersion string `json:"host_version,omitempty"`
	// HostUntried says, in a sentence, that nobody tried that version; empty: it
	// was tried, or is not known.
	HostUntried string `json:"host_untried,omitempty"`
	Tool        string `json:"tool_name,omitempty"`
	DryRun      bool   `json:"dry_run"`
	// DurationMS is the whole evaluation, commit left out.
	DurationMS int64 `json:"duration_ms"`
	// Asked is what hooks were asked with beside the payload; nil: nobody looked,
	// since no hook was about the event, or the record is an old one.
	Asked *Asked `json:"asked,omitempty"`
	// Payload is the request as it came. Stores keep it compressed.
	Payload Payload `json:"payload,omitempty"`
}

// Payload is a request body as it came. In JSON it is itself where it is valid
// JSON, else a string with bad bytes replaced.
type Payload []byte

// MarshalJSON never fails: bytes that are not JSON become a string.
func (p Payload) MarshalJSON() ([]byte, error) {
	if len(p) == 0 {
		return []byte("null"), nil
	}
	if json.Valid(p) && utf8.Valid(p) {
		return p, nil
	}
	return json.Marshal(string(p))
}

// UnmarshalJSON keeps the value's own bytes.
func (p *Payload) UnmarshalJSON(b []byte) error {
	*p = append((*p)[:0], b...)
	return nil
}

// Summary is the record as a list shows it: no payload, no evidence, the
// hooks' names and outcomes only.
func (r Record) Summary() RecordSummary {
	s := RecordSummary{EvaluationID: r.EvaluationID, Time: r.Time, Agent: r.Agent, Session: r.Session,
		Event: r.Event, Protocol: r.Protocol, HostVersion: r.HostVersion, HostUntried: r.HostUntried,
		Tool: r.Tool, Decision: r.Outcome, Reason: r.Reason, Forced: r.Forced, Degraded: r.Degraded, GateError: r.GateError, DryRun: r.DryRun, DurationMS: r.DurationMS,
		Hooks: make([]HookSummary, len(r.Hooks))}
	for i, v := range r.Hooks {
		s.Hooks[i] = HookSummary{Name: v.Name, Dialect: v.Dialect, Outcome: v.Outcome, Shadow: v.Shadow, Notes: v.Notes}
	}
	return s
}

// RecordSummary is one line of GET /v1/evaluations.
type RecordSummary struct {
	EvaluationID string        `json:"evaluation_id"`
	Time         time.Time     `json:"time"`
	Agent        string        `json:"agent"`
	Session      string        `json:"session_id"`
	Event        EventName     `json:"event"`
	Protocol     string        `json:"protocol"`
	HostVersion  string        `json:"host_version,omitempty"`
	HostUntried  string        `json:"host_untried,omitempty"`
	Tool         string        `json:"tool_name,omitempty"`
	Decision     Outcome       `json:"decision"`
	Reason       string        `json:"reason"`
	Forced       bool          `json:"forced"`
	Degraded     bool          `json:"degraded"`
	GateError    *Failure      `json:"gate_error,omitempty"`
	DryRun       bool          `json:"dry_run"`
	DurationMS   int64         `json:"duration_ms"`
	Hooks        []HookSummary `json:"hooks"`
}

// HookSummary is one hook in a [RecordSummary].
type HookSummary struct {
	Name    string  `json:"name"`
	Dialect Dialect `json:"dialect,omitempty"`
	Outcome Outcome `json:"outcome"`
	Shadow  bool    `json:"shadow,omitempty"`
	Notes   []Note  `json:"notes"`
}

// Cut is the longest prefix of s of at most n bytes that does not split
// a rune.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// FirstRunes is the longest prefix of s of at most n characters.
func FirstRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}
