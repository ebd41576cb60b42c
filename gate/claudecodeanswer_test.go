package gate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestClaudeCode05Answers(t *testing.T) {
	hso := func(event, rest string) string {
		return `{"hookSpecificOutput":{"hookEventName":"` + event + `"` + rest + `}}`
	}
	halted := []Note{HaltRequested}
	for _, c := range []struct {
		name, object string
		event        EventName
		want         Verdict
	}{
		{"nothing said", `{}`, Stop, Verdict{Outcome: Allow}},
		{"deny", hso("PreToolUse", `,"permissionDecision":"deny","permissionDecisionReason":"r"`), PreToolUse, Verdict{Outcome: Block, Reason: "r"}},
		{"ask", hso("PreToolUse", `,"permissionDecision":"ask","permissionDecisionReason":"r"`), PreToolUse, Verdict{Outcome: Ask, Reason: "r"}},
		{"allow", hso("PreToolUse", `,"permissionDecision":"allow","permissionDecisionReason":"r"`), PreToolUse, Verdict{Outcome: Allow, Reason: "r"}},
		{"defer is an ask", hso("PreToolUse", `,"permissionDecision":"defer"`), PreToolUse, Verdict{Outcome: Ask, Notes: []Note{Deferred}}},
		{"deny with a context", hso("PreToolUse", `,"permissionDecision":"deny","permissionDecisionReason":"r","additionalContext":"c"`), PreToolUse,
			Verdict{Outcome: Block, Reason: "r", AdditionalContext: "c"}},
		{"legacy approve", `{"decision":"approve"}`, PreToolUse, Verdict{Outcome: Allow}},
		{"legacy block", `{"decision":"block","reason":"r"}`, PreToolUse, Verdict{Outcome: Block, Reason: "r"}},
		{"legacy block beats allow", `{"decision":"block","reason":"r","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`,
			PreToolUse, Verdict{Outcome: Block, Reason: "r"}},
		{"fault schema-08: systemMessage stands in for a reason",
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"},"systemMessage":"why"}`, PreToolUse, Verdict{Outcome: Block, Reason: "why"}},
		{"block on Stop", `{"decision":"block","reason":"r"}`, Stop, Verdict{Outcome: Block, Reason: "r"}},
		{"block on Stop without a reason", `{"decision":"block"}`, Stop, Verdict{Outcome: Block}},
		{"block of a sub-agent", `{"decision":"block","reason":"r"}`, SubagentStop, Verdict{Outcome: Block, Reason: "r"}},
		{"block of a prompt", `{"decision":"block","reason":"r"}`, UserPromptSubmit, Verdict{Outcome: Block, Reason: "r"}},
		{"block after a tool", `{"decision":"block","reason":"r","hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"c"}}`, PostToolUse,
			Verdict{Outcome: Block, Reason: "r", AdditionalContext: "c"}},
		{"context after a tool", hso("PostToolUse", `,"additionalContext":"c"`), PostToolUse, Verdict{Outcome: Allow, AdditionalContext: "c"}},
		{"context of a session", hso("SessionStart", `,"additionalContext":"c"`), Start, Verdict{Outcome: Allow, AdditionalContext: "c"}},
		{"a context on Stop makes the turn go on", hso("Stop", `,"additionalContext":"c"`), Stop, Verdict{Outcome: Block, AdditionalContext: "c"}},
		{"context that stands elsewhere", `{"additionalContext":"c"}`, Stop, Verdict{Outcome: Allow, Notes: []Note{ContextIgnored}}},
		{"continue:false lets a Stop go, whatever else is said", `{"continue":false,"stopReason":"enough","decision":"block","reason":"r"}`, Stop,
			Verdict{Outcome: Allow, Reason: "enough", Notes: halted}},
		{"continue:false blocks a tool", `{"continue":false,"stopReason":"enough"}`, PreToolUse, Verdict{Outcome: Block, Reason: "enough", Notes: halted}},
		{"continue:false blocks a prompt", `{"continue":false}`, UserPromptSubmit, Verdict{Outcome: Block, Notes: halted}},
		{"fault loop-08: continue:true means nothing", `{"continue":true,"suppressOutput":true}`, Stop, Verdict{Outcome: Allow}},
		{"unknown keys mean nothing", `{"decision":"block","reason":"r","x":[1],"hookSpecificOutput":{"hookEventName":"Stop","decision":"approve"}}`, Stop,
			Verdict{Outcome: Block, Reason: "r"}},
		{"fault promptjson-10: ok is no key here", `{"ok":true,"decision":"block","reason":"r"}`, Stop, Verdict{Outcome: Block, Reason: "r"}},
		{"ok alone says nothing", `{"ok":false,"reason":"r"}`, Stop, Verdict{Outcome: Allow, Reason: "r"}},
		{"keys are exact in case", `{"Decision":"block","REASON":"r"}`, Stop, Verdict{Outcome: Allow}},
		{"of a key given twice the last counts", `{"decision":"approve","decision":"block","reason":"r"}`, Stop, Verdict{Outcome: Block, Reason: "r"}},
		{"a byte order mark is passed over", "\ufeff{\"decision\":\"block\",\"reason\":\"r\"}", Stop, Verdict{Outcome: Block, Reason: "r"}},
		{"a permission has no place after the call", hso("PostToolUse", `,"permissionDecision":"deny"`), PostToolUse, Verdict{Outcome: Allow}},
		{"an input that is denied need not be changed", hso("PreToolUse", `,"permissionDecision":"deny","permissionDecisionReason":"r","updatedInput":{}`),
			PreToolUse, Verdict{Outcome: Block, Reason: "r"}},
		{"what the gate cannot change is no answer", hso("PreToolUse", `,"permissionDecision":"allow","updatedInput":{"command":"ls"},"additionalContext":"c"`),
			PreToolUse, Verdict{Outcome: NoVerdict, AdditionalContext: "c",
				Failure: &Failure{Code: BadOutput, Message: "the hook answers with updatedInput, and the gate cannot change what a tool gets or gives"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadClaudeCodeAnswer(c.event, []byte(c.object))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Verdict{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// One wrong member voids the whole answer, as Claude Code's own reading of it
// does (EFFECTS §3.4).
func TestClaudeCode05AnswersThatAreNone(t *testing.T) {
	for _, c := range []struct{ name, object, want string }{
		{"an array", `[{"decision":"block"}]`, "not a JSON object"},
		{"null", `null`, "not a JSON object"},
		{"text", `"block"`, "not a JSON object"},
		{"something after it", `{} done`, "not a JSON object"},
		{"deny is no word for a decision", `{"decision":"deny","reason":"r"}`, `"decision" is "deny", want one of approve, block`},
		{"nor is allow", `{"decision":"allow"}`, `"decision"`},
		{"nor in capitals", `{"decision":"BLOCK"}`, `"decision"`},
		{"nor null", `{"decision":null}`, `"decision" is null`},
		{"a reason that is a number", `{"decision":"block","reason":1}`, `"reason" is 1, want a string`},
		{"a reason that is null", `{"decision":"block","reason":null}`, `"reason" is null, want a string`},
		{"continue that is a word", `{"continue":"false"}`, `"continue" is "false", want true or false`},
		{"no event named", `{"hookSpecificOutput":{"permissionDecision":"deny"}}`, `hookEventName must be "PreToolUse"`},
		{"another event named", `{"hookSpecificOutput":{"hookEventName":"Stop","permissionDecision":"deny"}}`, `hookEventName must be "PreToolUse"`},
		{"block is no permission", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"block"}}`, `"permissionDecision" is "block"`},
		{"a wrong decision voids a deny", `{"decision":"allow","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}`, `"decision"`},
		{"hookSpecificOutput that is a list", `{"hookSpecificOutput":[]}`, `"hookSpecificOutput" is [], want an object`},
		{"hookSpecificOutput that is null", `{"hookSpecificOutput":null}`, `"hookSpecificOutput" is null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := ReadClaudeCodeAnswer(PreToolUse, []byte(c.object))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v; want an error with %q", v, err, c.want)
			}
		})
	}
}

func TestClaudeCode05TextsAreCapped(t *testing.T) {
	long := strings.Repeat("ä", 10_001)
	v, err := ReadClaudeCodeAnswer(PostToolUse, []byte(`{"decision":"block","reason":"`+long+`","hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"`+long+`"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"reason": v.Reason, "context": v.AdditionalContext} {
		if n := len([]rune(text)); n != 10_000 {
			t.Errorf("%s has %d characters, want 10,000", name, n)
		}
	}
}

// Whatever a hook prints, reading it neither fails the gate nor invents a word.
func FuzzClaudeCodeAnswer(f *testing.F) {
	f.Add(`{"decision":"block","reason":"r"}`)
	f.Add(`{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"c"},"continue":false}`)
	f.Fuzz(func(t *testing.T, object string) {
		for _, event := range EventNames {
			v, err := ReadClaudeCodeAnswer(event, []byte(object))
			switch {
			case err != nil:
			case v.Outcome == Ask && event != PreToolUse:
				t.Errorf("%s: ask on %s", object, event)
			case (v.Outcome == NoVerdict) != (v.Failure != nil):
				t.Errorf("%s: %s with failure %v", object, v.Outcome, v.Failure)
			}
		}
	})
}
