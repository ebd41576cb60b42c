package gate

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// AXCodeEvents are the events of AX Code by its own names, which are the gate's
// but for SessionStart. Hooks can block on the first two, give feedback on the
// third, and watch the others (spec/ax-code.md).
var AXCodeEvents = []string{"PreToolUse", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "PreCompact",
	"SubagentStop", "SessionStart", "SessionEnd", "PostCompact", "Interrupt"}

// AXCodePack is a set of one hook that AX Code brings along.
type AXCodePack struct {
	Name    string
	Event   EventName
	Matcher string
}

// AXCodePacks are the five official packs. What each does is package rulehooks'
// to say.
var AXCodePacks = []AXCodePack{
	{"format-after-edit", PostToolUse, "edit|write|multiedit|apply_patch"},
	{"block-force-push", PreToolUse, "bash"},
	{"require-tests-on-stop", Stop, ""},
	{"protect-env-files", PreToolUse, "read|edit|write|bash"},
	{"log-bash-commands", PreToolUse, "bash"},
}

// AXCodeEvent is the gate's name of one of [AXCodeEvents], which differs for the
// start of a session only; ok is false for what is none.
func AXCodeEvent(name string) (n EventName, ok bool) {
	if name == "SessionStart" {
		return Start, true
	}
	return EventName(name), slices.Contains(AXCodeEvents, name)
}

// AXCodeNames is what AX Code calls an event and its tool: the values of
// HOOK_EVENT and HOOK_TOOL (spec/ax-code.md 8).
func AXCodeNames(ev *Event) (event, tool string) {
	event = string(ev.moment())
	if ev.Name == Start {
		event = "SessionStart"
	}
	return event, axCodeTool(ev)
}

// AXCodeBlocks reports whether a hook of AX Code can block the event.
func AXCodeBlocks(n EventName) bool { return n == PreToolUse || n == UserPromptSubmit }

// CompileAXCodeMatcher reads a matcher of AX Code: empty or "*" is every tool,
// and an event without one; else names joined by "|", of which one that ends in
// "*" is the beginning of names. There are no regular expressions
// (spec/ax-code.md 5).
func CompileAXCodeMatcher(pattern string) Matcher {
	m := Matcher{source: pattern, all: pattern == "" || pattern == "*"}
	if m.all {
		return m
	}
	for part := range strings.SplitSeq(pattern, "|") {
		part = strings.TrimSpace(part)
		if start, cut := strings.CutSuffix(part, "*"); cut {
			m.starts = append(m.starts, start)
		} else if part != "" {
			m.exact = append(m.exact, part)
		}
	}
	return m
}

// axCodeConcerns: by event and matcher; a matcher that is not everything's needs
// a tool (spec/ax-code.md 5, 6).
func axCodeConcerns(h *Hook, ev *Event) bool {
	return h.Event == ev.moment() && h.Matcher.Match(axCodeTool(ev))
}

// axCodeTool is AX Code's name of the event's tool. Some tools of its own have
// the alias of another, as apply_patch that of write, and keep their name.
func axCodeTool(ev *Event) string {
	if !ev.Name.ForTool() {
		return ""
	}
	if slices.Contains(axCodeTools, ev.ToolName) {
		return ev.ToolName
	}
	return inDialect(ev, func(canonical string) string {
		if name := strings.ToLower(canonical); slices.Contains(axCodeTools, name) {
			return name
		}
		return ""
	})
}

// axCodeTools are AX Code's tools; those that others have too have their
// canonical names in small letters.
var axCodeTools = []string{"bash", "read", "write", "edit", "multiedit", "apply_patch", "glob", "list", "grep", "webfetch", "websearch",
	"task", "todowrite"}

// axCodePayload is the tool's arguments alone, in one line as AX Code writes
// them (spec/ax-code.md 7); of a prompt, unless the host has given more, its
// text.
func axCodePayload(ev *Event) []byte {
	if ev.Name == UserPromptSubmit && len(ev.ToolInput) == 0 {
		return mustJSON(struct {
			Prompt string `json:"prompt"`
		}{ev.Prompt})
	}
	input := inputObject(ev.ToolInput)
	var line bytes.Buffer
	if err := json.Compact(&line, input); err != nil { // inputObject has seen that it is JSON
		return input
	}
	return line.Bytes()
}

// axCodeRuling: a deny beats an earlier ask, of several asks the first one's
// reason is kept (spec/ax-code.md 16), feedback is joined. What AX Code only
// watches is not blocked (17).
func axCodeRuling(ev *Event, verdicts []Verdict) ruling {
	if !AXCodeBlocks(ev.Name) {
		r := ruling{outcome: Allow}
		if ev.moment() == PostToolUse {
			r.contexts = axCodeFeedback(verdicts)
		}
		return r
	}
	r := strictest(ev, verdicts)
	if len(r.reasons) > 1 {
		r.reasons = r.reasons[:1]
	}
	return r
}

// Limits of feedback in characters, which are code points here: of one hook
// before the mark that it was cut, and of one tool call with the marks
// (spec/ax-code.md 19).
const (
	axCodeHookFeedback = 4000
	axCodeCallFeedback = 8000
	axCodeFeedbackMark = "\n[hook feedback truncated to 4000 characters]"
)

// axCodeFeedback is what the hooks of one tool call tell the agent, in order.
// The blank lines that join it are not counted. Each hook's own is cut in its
// verdict too: a hook may write a megabyte.
func axCodeFeedback(verdicts []Verdict) []string {
	var pieces []string
	left := axCodeCallFeedback
	for i := range verdicts {
		v := &verdicts[i]
		text := strings.TrimSpace(v.AdditionalContext)
		if cut := FirstRunes(text, axCodeHookFeedback); cut != text {
			text = cut + axCodeFeedbackMark
		}
		v.AdditionalContext = text
		if text == "" || left == 0 {
			continue
		}
		text = FirstRunes(text, left)
		left -= utf8.RuneCountInString(text)
		v.Injected = true
		pieces = append(pieces, text)
	}
	return pieces
}

// AXCodeAppended is what AX Code puts after a tool's output for the feedback of
// its hooks, empty for none (spec/ax-code.md 20).
func AXCodeAppended(feedback string) string {
	if feedback == "" {
		return ""
	}
	return "\n\n<hook_feedback event=\"PostToolUse\">\n" + feedback + "\n</hook_feedback>"
}
