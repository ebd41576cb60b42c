package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ClaudeCodeCharacters is how long one text of a hook's answer may be
// (spec/claude-code.md 5).
const ClaudeCodeCharacters = 10_000

// ReadClaudeCodeAnswer reads the JSON object that a command or an http hook of
// Claude Code answers with (spec/claude-code.md 3–5).
//
// It is taken as Claude Code was seen to take it (version 2.1.328): unknown keys
// are ignored, an object with none of the known ones is no objection, of a key
// given twice the last counts, a byte order mark is passed over. A known key of
// the wrong type, also null, a word that is not on its list and a
// hookSpecificOutput that does not name the event it is for void the whole
// answer, a deny in it too: that is an error, for the caller bad_output.
//
// The verdict has Outcome, Reason, AdditionalContext and Notes. A block without
// a reason is returned as such; a context on Stop is a block, since the turn
// goes on with it. A change of the tool's input or output, which
// nobody but Claude Code can make, is NoVerdict with a Failure, unless the answer
// refuses too.
func ReadClaudeCodeAnswer(event EventName, object []byte) (Verdict, error) {
	var fields map[string]json.RawMessage
	object = bytes.TrimPrefix(bytes.TrimSpace(object), []byte("\ufeff"))
	if err := json.Unmarshal(object, &fields); err != nil || fields == nil {
		return Verdict{}, errors.New("not a JSON object")
	}
	var a claudeCodeAnswer
	if err := a.read(event, fields); err != nil {
		return Verdict{}, err
	}
	return a.verdict(event), nil
}

// claudeCodeAnswer is an answer's known fields; empty: absent.
type claudeCodeAnswer struct {
	decision, reason string
	stopReason       string
	systemMessage    string
	permission       string
	permissionReason string
	context          string
	halt             bool   // continue:false
	strayContext     bool   // additionalContext outside hookSpecificOutput
	changes          string // what the answer would change; empty: nothing
}

func (a *claudeCodeAnswer) read(event EventName, fields map[string]json.RawMessage) error {
	goOn, suppress := true, false
	name := claudeCodeEvent(event)
	specific := map[string]json.RawMessage{}
	if raw, ok := fields["hookSpecificOutput"]; ok {
		var named string
		if json.Unmarshal(raw, &specific) != nil || specific == nil {
			return fmt.Errorf(`"hookSpecificOutput" is %s, want an object`, Cut(string(raw), 40))
		}
		if json.Unmarshal(specific["hookEventName"], &named) != nil || named != name {
			return fmt.Errorf(`"hookSpecificOutput" does not name its event: hookEventName must be %q`, name)
		}
	}
	for _, f := range []struct {
		from  map[string]json.RawMessage
		key   string
		into  any
		words []string
	}{
		{fields, "continue", &goOn, nil},
		{fields, "suppressOutput", &suppress, nil},
		{fields, "stopReason", &a.stopReason, nil},
		{fields, "systemMessage", &a.systemMessage, nil},
		{fields, "decision", &a.decision, []string{"approve", "block"}},
		{fields, "reason", &a.reason, nil},
		{specific, "permissionDecision", &a.permission, []string{"allow", "deny", "ask", "defer"}},
		{specific, "permissionDecisionReason", &a.permissionReason, nil},
		{specific, "additionalContext", &a.context, nil},
	} {
		raw, ok := f.from[f.key]
		if !ok || f.key == "permissionDecision" && event != PreToolUse {
			continue
		}
		if err := readExactly(f.key, raw, f.into, f.words); err != nil {
			return err
		}
	}
	a.halt = !goOn
	_, a.strayContext = fields["additionalContext"]
	for _, key := range []string{"updatedInput", "updatedToolOutput", "updatedMCPToolOutput"} {
		if _, ok := specific[key]; ok && event.ForTool() {
			a.changes = key
		}
	}
	return nil
}

// readExactly reads a field by its one legal type, of closed lists by the words
// as they are written.
func readExactly(key string, raw json.RawMessage, into any, words []string) error {
	want := "a string"
	if _, flag := into.(*bool); flag {
		want = "true or false"
	} else if words != nil {
		want = "one of " + strings.Join(words, ", ")
	}
	err := json.Unmarshal(raw, into)
	if text, ok := into.(*string); ok && err == nil {
		*text = FirstRunes(*text, ClaudeCodeCharacters)
		if words != nil && !slices.Contains(words, *text) {
			err = errors.New("not on the list")
		}
	}
	if err != nil || string(raw) == "null" {
		return fmt.Errorf("%q is %s, want %s", key, Cut(string(raw), 40), want)
	}
	return nil
}

func (a *claudeCodeAnswer) verdict(event EventName) Verdict {
	v := Verdict{Outcome: Allow, AdditionalContext: a.context}
	if a.strayContext {
		v.note(ContextIgnored)
	}
	stops := event.hookEvent() == Stop
	switch {
	case a.halt:
		// The end of the session is the host's to bring about. What a hook can
		// have of it here is that the agent stops, or that its call does not run
		// (DESIGN §9).
		v.note(HaltRequested)
		v.Reason = FirstText(a.stopReason, a.reason)
		if !stops {
			v.Outcome = Block
		}
		return v
	case a.permission == "deny" || a.decision == "block":
		v.Outcome = Block
	case a.permission == "ask":
		v.Outcome = Ask
	case a.permission == "defer":
		v.Outcome = Ask
		v.note(Deferred)
	case a.changes != "":
		v.Outcome, v.Failure = NoVerdict, &Failure{Code: BadOutput,
			Message: fmt.Sprintf("the hook answers with %s, and the gate cannot change what a tool gets or gives", a.changes)}
		return v
	case stops && FirstText(a.context) != "": // a soft block: see settle
		v.Outcome = Block
		return v
	}
	v.Reason = FirstText(a.permissionReason, a.reason)
	if v.Outcome != Allow {
		v.Reason = FirstText(v.Reason, a.systemMessage)
	}
	return v
}
