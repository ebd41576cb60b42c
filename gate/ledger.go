package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Counts are the loop's state of one agent in one session (spec/azure.md 38).
// They are compared whole: every field must stay comparable.
type Counts struct {
	StopRejections   int    // Stops rejected since the user spoke
	PromptRejections int    // of those, the ones that count against maxRejections
	Started          bool   // a Start was answered; its context is given once
	LastPromptID     string // of the last Stop
	LastReason       string // mark of the last rejection's reason, to know our own words again
	SameReason       int    // how many rejections in a row gave it
	LastContext      string // mark of the context that went with it
	LastAnswer       string // mark of the rejected answer, where a host joins them
}

// StopHookActive reports whether the agent is on its way back from a
// rejection.
func (c Counts) StopHookActive() bool { return c.StopRejections > 0 }

// opened are the counts as the event finds them: what it resets by merely
// happening is reset (DESIGN §9, "What resets the counts").
func (c Counts) opened(ev *Event) Counts {
	if c.userSpoke(ev) {
		return c.reset()
	}
	return c
}

// reset begins a new loop: a Stop was allowed, or the user spoke.
func (c Counts) reset() Counts {
	c.StopRejections, c.PromptRejections, c.LastReason, c.SameReason, c.LastContext, c.LastAnswer = 0, 0, "", 0, "", ""
	return c
}

// ownWords reports whether a prompt is what the last rejection said: hosts
// submit its messages as prompts, one by one or joined (DESIGN §9).
func (c Counts) ownWords(prompt string) bool {
	if c.LastReason == "" {
		return false
	}
	prompt = strings.TrimSpace(prompt)
	context, ours := cutMarked(prompt, c.LastReason)
	return ours && context == "" || c.LastContext != "" && (mark(prompt) == c.LastContext || ours && mark(context) == c.LastContext)
}

// mark knows a text again by its sum, white space round it left out; the empty
// text has none.
func mark(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// userSpoke reports whether the event shows that a person has said something
// new to the main agent. Our own last reason coming back is not that.
func (c Counts) userSpoke(ev *Event) bool {
	if !ev.MainAgent() {
		return false
	}
	switch ev.Name {
	case UserPromptSubmit:
		return ev.ByPerson && !c.ownWords(ev.Prompt)
	case Stop:
		return c.LastPromptID != "" && ev.PromptID != "" && ev.PromptID != c.LastPromptID
	}
	return false
}

// after are the counts once the event was decided.
func (c Counts) after(ev *Event, d *Decision) Counts {
	switch ev.Name {
	case Start:
		c.Started = true
	case Stop, SubagentStop:
		if ev.PromptID != "" {
			c.LastPromptID = ev.PromptID
		}
		if d.Outcome != Block {
			return c.reset()
		}
		c.StopRejections++
		if promptRejected(d.Hooks) {
			c.PromptRejections++
		}
		reason := MarkHead(strings.TrimSpace(d.Reason))
		if reason != c.LastReason {
			c.SameReason = 0
		}
		c.SameReason++
		c.LastReason, c.LastContext = reason, mark(d.AdditionalContext)
		if ev.AnswersJoined {
			c.LastAnswer = MarkHead(ev.FinalOutput)
		}
	}
	return c
}

// promptRejected reports whether a prompt hook is among those that reject; a
// closed failure of one counts too (spec/azure.md 35).
func promptRejected(verdicts []Verdict) bool {
	for i := range verdicts {
		if verdicts[i].hook.countsRejections() && verdicts[i].objects() {
			return true
		}
	}
	return false
}

// RejectionCap is after how many rejections the hook is not asked any more, where all
// take part, itself among them; 0: it always is. A shadow's rejections are none.
func (h *Hook) RejectionCap(all []*Hook) int {
	switch {
	case h.Shadow:
	case h.Dialect == ClaudeCode && h.Event.hookEvent() == Stop:
		return claudeCodeStops
	case h.countsRejections():
		return rejectionCap(all)
	}
	return 0
}

// rejectionCap is the maximum of the values that are set among the prompt
// hooks that take part, 3 when none is set (spec/azure.md 35, DESIGN §9).
func rejectionCap(hooks []*Hook) int {
	limit := 0
	for _, h := range hooks {
		if h.countsRejections() {
			limit = max(limit, h.MaxRejections)
		}
	}
	if limit == 0 {
		return DefaultMaxRejections
	}
	return limit
}

// MarkHead knows a text again at the head of a longer one: its length and its
// sum, in a form of fixed size. Ledgers hold marks and no texts, which may have
// secrets in them.
func MarkHead(text string) string {
	sum := sha256.Sum256([]byte(text))
	return strconv.Itoa(len(text)) + ":" + hex.EncodeToString(sum[:])
}

// cutMarked is what follows in text after the head that the mark is of.
func cutMarked(text, head string) (rest string, found bool) {
	length, _, _ := strings.Cut(head, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(text) || MarkHead(text[:n]) != head {
		return text, false
	}
	return text[n:], true
}

// newestAnswer takes the answers that earlier Stops of this loop held away from
// the front of a host's joined ones (spec/claude-code.md 10).
func (c Counts) newestAnswer(joined string) string {
	if rest, found := cutMarked(joined, c.LastAnswer); found && strings.HasPrefix(rest, "\n") {
		return rest[1:]
	}
	return joined
}
