package commandhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stopgate/gate"
)

// axCodeParallel is how many hooks of AX Code run at once, over all events
// (spec/ax-code.md 10).
const axCodeParallel = 4

// inOwnTime is run within the time of a hook that begins with it, as AX Code has
// it (spec/ax-code.md 9). That the gate must answer before it is over, since
// others were run first, is no time-out of the hook's: nothing follows from it.
func inOwnTime(limit time.Duration) func(context.Context, launcher, job) (ending, *gate.Failure) {
	return func(ctx context.Context, start launcher, j job) (ending, *gate.Failure) {
		errOver := errors.New("the hook's own time is over")
		ctx, cancel := context.WithTimeoutCause(ctx, limit, errOver)
		defer cancel()
		e, failure := run(ctx, start, j)
		e.cutShort = e.timedOut && !errors.Is(context.Cause(ctx), errOver)
		return e, failure
	}
}

// axCodeVerdict is AX Code's law (spec/ax-code.md 11–18): what a hook comes to
// depends on its event, on blockOnFailure, and on whether its entry says
// `protocol: claude-code`.
func (e ending) axCodeVerdict(h *gate.Hook) gate.Verdict {
	blocks := gate.AXCodeBlocks(h.Event)
	switch {
	case e.cutShort:
		return noVerdict(gate.Overloaded, "the gate had to answer %s after it began to run the hook, whose own time is %s", e.after.Round(time.Millisecond), h.Timeout)
	case h.ReadsAnswer && blocks:
		return e.axCodeAnswer(h.Event)
	case h.ReadsAnswer && h.Event == gate.PostToolUse:
		return e.axCodeFeedback()
	case e.axCodeExit() == 0 && h.Event == gate.PostToolUse:
		return gate.Verdict{Outcome: gate.Allow, AdditionalContext: e.stdout.trimmed()}
	case e.axCodeExit() == 0:
		return gate.Verdict{Outcome: gate.Allow}
	case h.BlockOnFailure && blocks:
		message := gate.FirstText(e.stderr.trimmed(), e.stdout.trimmed(), fmt.Sprintf("exit %d", e.axCodeExit()))
		return gate.Verdict{Outcome: gate.Block, Reason: message}
	}
	return e.passedOver()
}

// axCodeExit is the exit code as AX Code counts it (spec/ax-code.md 9).
func (e ending) axCodeExit() int {
	switch {
	case e.timedOut:
		return 124
	case e.signal != "":
		return 1
	}
	return e.code
}

// passedOver is the verdict of a failure that changes nothing but the record.
func (e ending) passedOver() gate.Verdict {
	if v, ended := e.ended(); !ended {
		return v
	}
	return noVerdict(gate.NonzeroExit, "the hook exited with %d%s", e.code, e.lastWords())
}

// axCodeAnswer is the law of `protocol: claude-code` where a hook can block
// (spec/ax-code.md 12–16).
func (e ending) axCodeAnswer(event gate.EventName) gate.Verdict {
	a, fault := readAXCodeAnswer(e.stdout)
	switch e.axCodeExit() {
	case 2: // also with a broken answer
		return gate.Verdict{Outcome: gate.Block, Reason: gate.FirstText(a.reason, e.stderr.trimmed())}
	case 0:
		if fault != nil {
			return e.unreadable(fault)
		}
		return a.verdict(event)
	}
	return e.passedOver()
}

// axCodeFeedback is the law of `protocol: claude-code` after a tool call, which
// nothing can block any more (spec/ax-code.md 18, 20).
func (e ending) axCodeFeedback() gate.Verdict {
	a, fault := readAXCodeAnswer(e.stdout)
	v := gate.Verdict{Outcome: gate.Allow}
	switch e.axCodeExit() {
	case 2:
		v.AdditionalContext = gate.FirstText(a.reason, e.stderr.trimmed())
		return v
	case 0:
		if fault != nil {
			return e.unreadable(fault)
		}
		var told []string
		if a.decision == "block" && a.reason != "" {
			told = append(told, a.reason)
		}
		if a.context != "" {
			told = append(told, a.context)
		}
		v.AdditionalContext = strings.Join(told, "\n")
		return v
	}
	return e.passedOver()
}

// unreadable: an exit 0 goes on whatever it says, and the record keeps that
// nobody could read it (spec/ax-code.md 14).
func (e ending) unreadable(fault error) gate.Verdict {
	if e.stdout.cut {
		return noVerdict(gate.OutputTooLarge, "the hook wrote more than %d bytes to standard output, and AX Code goes on", keepBytes)
	}
	return noVerdict(gate.BadOutput, "standard output is no answer, and AX Code goes on: %v: %q", fault, head(e.stdout.trimmed(), 80))
}

// axCodeAnswer is what of an answer counts; the zero value says nothing.
type axCodeAnswer struct {
	permission string // allow, deny, ask or defer
	decision   string
	reason     string
	context    string
	halt       bool // continue: false
	stopReason string
}

// readAXCodeAnswer reads standard output. It counts only if it is one JSON
// object whose known keys have legal types (spec/ax-code.md 14); as JavaScript
// has it, the last of a key given twice counts. Flat fields win over nested ones
// (13).
func readAXCodeAnswer(out text) (axCodeAnswer, error) {
	said := bytes.TrimSpace([]byte(clean(out.kept)))
	if len(said) == 0 {
		return axCodeAnswer{}, nil
	}
	var flat, nested map[string]json.RawMessage
	if err := json.Unmarshal(said, &flat); err != nil || flat == nil {
		return axCodeAnswer{}, errors.New("not one JSON object")
	}
	if raw, ok := flat["hookSpecificOutput"]; ok {
		if err := json.Unmarshal(raw, &nested); err != nil || nested == nil {
			return axCodeAnswer{}, errors.New(`"hookSpecificOutput" is no object`)
		}
	}
	var flatA, nestedA axCodeAnswer
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
			return axCodeAnswer{}, fmt.Errorf("%q is %s", f.key, head(string(raw), 40))
		}
		if permission, is := f.into.(*string); ok && is && f.key == "permissionDecision" && !slices.Contains(permissions, *permission) {
			return axCodeAnswer{}, fmt.Errorf("permissionDecision %q is unknown", head(*permission, 40))
		}
	}
	a := flatA
	a.permission, a.reason, a.context = gate.FirstText(flatA.permission, nestedA.permission), gate.FirstText(flatA.reason, nestedA.reason), gate.FirstText(flatA.context, nestedA.context)
	a.halt = goOn != nil && !*goOn
	return a, nil
}

// permissions are the legal words; "defer" counts as ask (DESIGN §9).
var permissions = []string{"allow", "deny", "ask", "defer"}

// verdict is what an answer at exit 0 means where a hook can block. A top-level
// decision means nothing there (spec/ax-code.md 15).
func (a axCodeAnswer) verdict(event gate.EventName) gate.Verdict {
	v := gate.Verdict{Outcome: gate.Allow}
	switch a.permission {
	case "deny":
		v.Outcome, v.Reason = gate.Block, a.reason
	case "ask", "defer":
		v.Outcome, v.Reason = gate.Ask, gate.FirstText(a.reason, "hook requested user confirmation")
		if event == gate.UserPromptSubmit { // nobody is asked about a prompt (spec/ax-code.md 16)
			v.Outcome = gate.Block
		}
		if a.permission == "defer" {
			v.Notes = append(v.Notes, gate.Deferred)
		}
	}
	if a.halt { // DESIGN §9
		v.Notes = append(v.Notes, gate.HaltRequested)
		if event.ForTool() {
			v.Outcome, v.Reason = gate.Block, gate.FirstText(a.stopReason, a.reason)
		}
	}
	return v
}

// trimmed is what was kept of a stream, as text without white space round it.
func (t text) trimmed() string { return strings.TrimSpace(clean(t.kept)) }
