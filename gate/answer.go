package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ReadAnswer reads one answer object of the azure dialect, from a command's
// standard output or a model's reply: `{"ok":…,"reason":…}`, the expanded
// `{"decision":…,"reason":…,"hookSpecificOutput":{…}}`, or a mixture that
// agrees with itself (spec/azure.md 31, 34, 48; DESIGN §9).
//
// An object that only has other known keys ("continue", "reason",
// "hookSpecificOutput") is no objection, as is `{}`. An object with none of
// the known keys, a key given twice, a value of the wrong type, an unknown
// decision, `ok` and `decision` that disagree, and `ask` where nobody can be
// asked are errors: the caller knows whether that is bad_output or
// bad_verdict.
//
// The verdict has Outcome, Reason, AdditionalContext and Notes. A block
// without a reason is returned as such.
func ReadAnswer(event EventName, object []byte) (Verdict, error) {
	fields, err := readObject(object)
	if err != nil {
		return Verdict{}, err
	}
	if len(fields) > 0 && !slices.ContainsFunc(answerKeys, func(k string) bool { _, ok := fields[k]; return ok }) {
		return Verdict{}, fmt.Errorf("object has none of the known keys (%s)", strings.Join(answerKeys, ", "))
	}
	var a answer
	if err := a.read(fields); err != nil {
		return Verdict{}, err
	}
	return a.verdict(event)
}

// DecisionIn reports whether the object states a decision at all: a model's
// reply must (spec/azure.md 32), a command's need not.
func DecisionIn(object []byte) bool {
	fields, err := readObject(object)
	if err != nil {
		return false
	}
	var a answer
	if a.read(fields) != nil {
		return false
	}
	return a.ok != nil || a.decision != "" || a.permission != ""
}

var answerKeys = []string{"ok", "decision", "reason", "hookSpecificOutput", "continue", "stopReason",
	"suppressOutput", "systemMessage", "additionalContext"}

// answer is an answer object's known fields, each with its one legal type.
type answer struct {
	ok               *bool
	decision         string // "" = absent
	reason           string
	permission       string
	permissionReason string
	context          string
	strayContext     bool // additionalContext outside hookSpecificOutput
	halt             bool // continue:false
	stopReason       string
	systemMessage    string
}

func (a *answer) read(fields map[string]json.RawMessage) error {
	var goOn *bool
	var stray, event string
	var specific map[string]json.RawMessage
	if raw, ok := fields["hookSpecificOutput"]; ok && string(raw) != "null" {
		var err error
		if specific, err = readObject(raw); err != nil {
			return fmt.Errorf(`"hookSpecificOutput": %w`, err)
		}
	}
	for _, f := range []struct {
		from    map[string]json.RawMessage
		key     string
		into    any
		want    string
		decides bool
	}{
		{fields, "ok", &a.ok, "true or false", true},
		{fields, "decision", &a.decision, "allow, block, deny or ask", true},
		{fields, "reason", &a.reason, "a string", false},
		{fields, "continue", &goOn, "true or false", false},
		{fields, "stopReason", &a.stopReason, "a string", false},
		{fields, "systemMessage", &a.systemMessage, "a string", false},
		{fields, "additionalContext", &stray, "a string", false},
		{specific, "hookEventName", &event, "a string", false},
		{specific, "permissionDecision", &a.permission, "allow, deny or ask", true},
		{specific, "permissionDecisionReason", &a.permissionReason, "a string", false},
		{specific, "additionalContext", &a.context, "a string", false},
	} {
		raw, ok := f.from[f.key]
		if !ok {
			continue
		}
		// What decides must be there when its key is: an unset variable of a
		// script must not open the gate.
		empty := f.decides && (string(raw) == "null" || string(raw) == `""`)
		if err := json.Unmarshal(raw, f.into); err != nil || empty {
			return fmt.Errorf("%q is %s, want %s", f.key, Cut(string(raw), 40), f.want)
		}
	}
	a.strayContext = stray != ""
	a.halt = goOn != nil && !*goOn
	return nil
}

func (a *answer) verdict(event EventName) (Verdict, error) {
	v := Verdict{Outcome: Allow, AdditionalContext: a.context}
	if a.strayContext {
		v.note(ContextIgnored)
	}
	var said []Outcome
	if a.ok != nil {
		said = append(said, map[bool]Outcome{true: Allow, false: Block}[*a.ok])
	}
	for _, word := range []string{a.decision, a.permission} {
		if word == "" {
			continue
		}
		o, ok := decisionWords[word]
		if !ok {
			return Verdict{}, fmt.Errorf("decision %q is unknown: want allow, block, deny or ask", Cut(word, 40))
		}
		if word == "defer" {
			v.note(Deferred)
		}
		said = append(said, o)
	}
	for _, o := range said {
		if o != said[0] {
			return Verdict{}, fmt.Errorf("answer contradicts itself: %s and %s", said[0], o)
		}
		v.Outcome = o
	}
	if v.Outcome == Ask && event.hookEvent() != PreToolUse {
		return Verdict{}, fmt.Errorf("decision ask has no meaning on %s", event)
	}
	v.Reason = FirstText(a.reason, a.permissionReason)
	if v.Outcome != Allow {
		v.Reason = FirstText(v.Reason, a.systemMessage)
	}
	if a.halt {
		v.note(HaltRequested)
		if event.ForTool() {
			v.Outcome, v.Reason = Block, FirstText(a.stopReason, v.Reason)
		} else {
			v.Outcome = Allow
		}
	}
	return v, nil
}

// decisionWords are the legal words; "approve" is the older word for allow,
// "defer" counts as ask (DESIGN §9).
var decisionWords = map[string]Outcome{"allow": Allow, "approve": Allow, "block": Block, "deny": Block,
	"ask": Ask, "defer": Ask}

// readObject reads one JSON object, names exact in case, and nothing after it.
func readObject(b []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil {
		return nil, errors.New("not valid JSON")
	} else if t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	fields := map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, errors.New("not valid JSON")
		}
		key := t.(string) // inside an object a token before a value is its name
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, errors.New("not valid JSON")
		}
		if _, twice := fields[key]; twice {
			return nil, fmt.Errorf("key %q is given twice", Cut(key, 40))
		}
		fields[key] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, errors.New("not valid JSON")
	}
	if rest := bytes.TrimSpace(b[dec.InputOffset():]); len(rest) > 0 {
		return nil, errors.New("something follows the JSON object")
	}
	return fields, nil
}

// FirstText is the first that is more than white space.
func FirstText(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}
