package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"stopgate/gate"
)

// TextBytes is the most that one text of an answer holds. Hosts cut or move
// longer ones to a file: Codex from about 10,000 bytes, Qwen Code and Claude
// Code from 10,000 characters (EFFECTS §3.12).
const TextBytes = 9000

// defaultReason is said where a block has no reason of its own: an empty one is
// no block at all on Codex and Copilot (EFFECTS §3.14).
const defaultReason = "The gate blocked this and gave no reason."

// answer is every key that any host is ever sent, in one struct; an encoder
// fills those that its host takes. The zero answer is no objection.
type answer struct {
	Decision                 string   `json:"decision,omitempty"`
	Reason                   string   `json:"reason,omitempty"`
	PermissionDecision       string   `json:"permissionDecision,omitempty"`
	PermissionDecisionReason string   `json:"permissionDecisionReason,omitempty"`
	AdditionalContext        string   `json:"additionalContext,omitempty"`
	Specific                 specific `json:"hookSpecificOutput,omitzero"`
}

// specific is hookSpecificOutput. Without the event's own name in it Claude
// Code voids the whole answer (EFFECTS §3.4).
type specific struct {
	HookEventName            string `json:"hookEventName"`
	PermissionDecision       string `json:"permissionDecision,omitempty"`
	PermissionDecisionReason string `json:"permissionDecisionReason,omitempty"`
	AdditionalContext        string `json:"additionalContext,omitempty"`
}

// marshal leaves <, > and & readable. A struct of strings always has a JSON
// form.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("wire: marshal %T: %v", v, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// wish is a decision as encoders want it: texts trimmed and cut, a reason
// wherever something is refused.
type wish struct {
	outcome gate.Outcome
	reason  string // empty exactly when nothing is refused
	context string
}

// wishOf reads a decision. Only a tool call can be asked about: an ask anywhere
// else is a block.
func wishOf(event gate.EventName, d gate.Decision) wish {
	w := wish{outcome: d.Outcome, context: cut(d.AdditionalContext, TextBytes)}
	if w.outcome == gate.Ask && event != gate.PreToolUse {
		w.outcome = gate.Block
	}
	if w.refuses() {
		if w.reason = cut(d.Reason, TextBytes); w.reason == "" {
			w.reason = defaultReason
		}
	}
	return w
}

// refuses reports whether the event may not simply go on.
func (w wish) refuses() bool { return w.outcome == gate.Block || w.outcome == gate.Ask }

// told is the reason with the context, in one text: for hosts that throw a
// context away when it stands beside a refusal.
func (w wish) told() string {
	if w.context == "" || w.reason == "" {
		return w.reason + w.context
	}
	return cut(w.reason+"\n\n"+w.context, TextBytes)
}

// withheld adds what a refusal means on hosts where it replaces the result of a
// tool that has run.
func (w wish) withheld() wish {
	w.reason = cut(w.reason, TextBytes-len(gate.Withheld)-2) + "\n\n" + gate.Withheld
	return w
}

// permission is the word for a tool call that may not simply run.
func (w wish) permission() string {
	if w.outcome == gate.Ask {
		return "ask"
	}
	return "deny"
}

// unasked turns an ask into a denial, for hosts that cannot ask.
func (w wish) unasked() wish {
	if w.outcome == gate.Ask {
		w.outcome, w.reason = gate.Block, cut(needsApproval+w.reason, TextBytes)
	}
	return w
}

const needsApproval = "This tool call needs approval, and there is nobody here to give it. "

// withoutPerson is the decision for an agent that nobody watches: what would be
// asked is denied, and says that it needs approval (DESIGN §9). Hosts that can
// never ask are encoded so in any case.
func withoutPerson(d gate.Decision) gate.Decision {
	if d.Outcome == gate.Ask {
		d.Outcome, d.Reason = gate.Block, needsApproval+d.Reason
	}
	return d
}

// blocked is the smallest block that every host's stop event takes.
func blocked(reason string) answer { return answer{Decision: "block", Reason: reason} }

// injected is a context in hookSpecificOutput; no context, no objection.
func injected(hostEvent, context string) answer {
	if context == "" {
		return answer{}
	}
	return answer{Specific: specific{HookEventName: hostEvent, AdditionalContext: context}}
}

// cut trims a text and shortens it to at most n bytes, at a rune's start, with
// a mark that says so.
func cut(s string, n int) string {
	const mark = "\n[cut]"
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= n {
		return s
	}
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimSpace(s[:n]) + mark
}
