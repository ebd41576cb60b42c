package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// AXCodeAnswer is what of an answer counts that a hook of AX Code with `protocol:
// claude-code` prints; the zero value says nothing.
type AXCodeAnswer struct {
	permission string // allow, deny, ask or defer
	decision   string
	reason     string
	context    string
	halt       bool // continue: false
	stopReason string
}

// ReadAXCodeAnswer reads standard output. It counts only if it is one JSON
// object whose known keys have legal types (spec/ax-code.md 14); as JavaScript
// has it, the last of a key given twice counts. Flat fields win over nested ones
// (13). Nothing at all is an answer that says nothing; an error is of output that
// is no answer, which AX Code passes over.
func ReadAXCodeAnswer(text []byte) (AXCodeAnswer, error) {
	text = bytes.TrimSpace(bytes.ToValidUTF8(text, []byte("\uFFFD")))
	if len(text) == 0 {
		return AXCodeAnswer{}, nil
	}
	var flat, nested map[string]json.RawMessage
	if err := json.Unmarshal(text, &flat); err != nil || flat == nil {
		return AXCodeAnswer{}, errors.New("not one JSON object")
	}
	if raw, ok := flat["hookSpecificOutput"]; ok {
		if err := json.Unmarshal(raw, &nested); err != nil || nested == nil {
			return AXCodeAnswer{}, errors.New(`"hookSpecificOutput" is no object`)
		}
	}
	var flatA, nestedA AXCodeAnswer
	var goOn, quiet *bool
	var systemMessage, event string
	for _, f := range []struct {
		from map[string]json.RawMessage
		key  string
		into any
	}{
		{flat, "permissionDecision", &flatA.permission}, {nested, "permissionDecision", &nestedA.permission},
		{flat, "decision", &flatA.decision}, {nested, "hookEventName", &event},
		{flat, "reason", &flatA.reason}, {nested, "permissionDecisionReason", &nestedA.reason},
		{flat, "additionalContext", &flatA.context}, {nested, "additionalContext", &nestedA.context},
		{flat, "continue", &goOn}, {flat, "suppressOutput", &quiet},
		{flat, "stopReason", &flatA.stopReason}, {flat, "systemMessage", &systemMessage},
	} {
		raw, ok := f.from[f.key]
		if ok && (string(raw) == "null" || json.Unmarshal(raw, f.into) != nil) {
			return AXCodeAnswer{}, fmt.Errorf("%q is %s", f.key, FirstRunes(string(raw), 40))
		}
		if permission, is := f.into.(*string); ok && is && f.key == "permissionDecision" && !slices.Contains(axCodePermissions, *permission) {
			return AXCodeAnswer{}, fmt.Errorf("permissionDecision %q is unknown", FirstRunes(*permission, 40))
		}
	}
	a := flatA
	a.permission, a.reason, a.context = FirstText(flatA.permission, nestedA.permission), FirstText(flatA.reason, nestedA.reason), FirstText(flatA.context, nestedA.context)
	a.halt = goOn != nil && !*goOn
	return a, nil
}

// axCodePermissions are the legal words; "defer" counts as ask (DESIGN §9).
var axCodePermissions = []string{"allow", "deny", "ask", "defer"}

// Reason is why the answer refuses, if it does.
func (a AXCodeAnswer) Reason() string { return a.reason }

// Verdict is what an answer at exit 0 means where a hook can block. A top-level
// decision means nothing there (spec/ax-code.md 15).
func (a AXCodeAnswer) Verdict(event EventName) Verdict {
	v := Verdict{Outcome: Allow}
	switch a.permission {
	case "deny":
		v.Outcome, v.Reason = Block, a.reason
	case "ask", "defer":
		v.Outcome, v.Reason = Ask, FirstText(a.reason, "hook requested user confirmation")
		if event == UserPromptSubmit { // nobody is asked about a prompt (spec/ax-code.md 16)
			v.Outcome = Block
		}
		if a.permission == "defer" {
			v.note(Deferred)
		}
	}
	if a.halt { // DESIGN §9
		v.note(HaltRequested)
		if event.ForTool() {
			v.Outcome, v.Reason = Block, FirstText(a.stopReason, a.reason)
		}
	}
	return v
}

// Feedback is what an answer at exit 0 after a tool call gives the agent
// (spec/ax-code.md 18).
func (a AXCodeAnswer) Feedback() string {
	var told []string
	if a.decision == "block" && a.reason != "" {
		told = append(told, a.reason)
	}
	if a.context != "" {
		told = append(told, a.context)
	}
	return strings.Join(told, "\n")
}
