package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAzure31AnswerShapes(t *testing.T) {
	for _, c := range []struct {
		name, object string
		event        EventName
		want         Verdict
	}{
		{"simple allow", `{"ok":true}`, Stop, Verdict{Outcome: Allow}},
		{"allow with a reason", `{"ok":true,"reason":"fine"}`, Stop, Verdict{Outcome: Allow, Reason: "fine"}},
		{"allow with null reason", `{"ok":true,"reason":null}`, Stop, Verdict{Outcome: Allow}},
		{"simple rejection", `{"ok":false,"reason":"x"}`, Stop, Verdict{Outcome: Block, Reason: "x"}},
		{"rejection without reason stays a block here", `{"ok":false}`, Stop, Verdict{Outcome: Block}},
		{"expanded block", `{"decision":"block","reason":"x"}`, Stop, Verdict{Outcome: Block, Reason: "x"}},
		{"expanded allow", `{"decision":"allow"}`, PostToolUse, Verdict{Outcome: Allow}},
		{"deny is block", `{"decision":"deny","reason":"x"}`, PreToolUse, Verdict{Outcome: Block, Reason: "x"}},
		{"fault G07, promptjson-01: approve is the older word", `{"decision":"approve","reason":"done"}`, Stop, Verdict{Outcome: Allow, Reason: "done"}},
		{"agreeing mixture", `{"ok":false,"decision":"block","reason":"x"}`, Stop, Verdict{Outcome: Block, Reason: "x"}},
		{"audit context", `{"decision":"allow","hookSpecificOutput":{"additionalContext":"[AUDIT]"}}`, PostToolUse,
			Verdict{Outcome: Allow, AdditionalContext: "[AUDIT]"}},
		{"context only", `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"c"}}`, PostToolUse,
			Verdict{Outcome: Allow, AdditionalContext: "c"}},
		{"stray context", `{"decision":"allow","additionalContext":"c"}`, PostToolUse,
			Verdict{Outcome: Allow, Notes: []Note{ContextIgnored}}},
		{"fault loop-08: continue true means nothing", `{"continue":true,"suppressOutput":true}`, Stop, Verdict{Outcome: Allow}},
		{"fault schema-02: block with continue true", `{"decision":"block","reason":"locked","continue":true}`, Stop,
			Verdict{Outcome: Block, Reason: "locked"}},
		{"continue false on Stop lets go", `{"decision":"block","reason":"x","continue":false}`, Stop,
			Verdict{Outcome: Allow, Reason: "x", Notes: []Note{HaltRequested}}},
		{"continue false on a tool blocks", `{"continue":false,"stopReason":"enough"}`, PostToolUse,
			Verdict{Outcome: Block, Reason: "enough", Notes: []Note{HaltRequested}}},
		{"empty object is no objection", `{}`, Stop, Verdict{Outcome: Allow}},
		{"reason only is no objection", `{"reason":"x"}`, Stop, Verdict{Outcome: Allow, Reason: "x"}},
		{"unknown keys beside known ones", `{"ok":true,"confidence":0.9}`, Stop, Verdict{Outcome: Allow}},
		{"fault promptctx-03: ok is authoritative", `{"ok":false,"reason":"not under e2e so approve immediately"}`, PostToolUse,
			Verdict{Outcome: Block, Reason: "not under e2e so approve immediately"}},
		{"fault schema-08: systemMessage stands in for a reason",
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"},"systemMessage":"why"}`, PreToolUse,
			Verdict{Outcome: Block, Reason: "why"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadAnswer(c.event, []byte(c.object))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Verdict{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAzure48PermissionDecisions(t *testing.T) {
	for _, c := range []struct {
		object string
		want   Outcome
		reason string
	}{
		{`{"decision":"ask","reason":"r"}`, Ask, "r"},
		{`{"ok":false,"reason":"r"}`, Block, "r"},
		{`{"hookSpecificOutput":{"permissionDecision":"allow"}}`, Allow, ""},
		{`{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"r"}}`, Block, "r"},
		{`{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"r"}}`, Ask, "r"},
		{`{"hookSpecificOutput":{"permissionDecision":"defer"}}`, Ask, ""},
	} {
		got, err := ReadAnswer(PreToolUse, []byte(c.object))
		if err != nil || got.Outcome != c.want || got.Reason != c.reason {
			t.Errorf("%s: %s %q %v, want %s %q", c.object, got.Outcome, got.Reason, err, c.want, c.reason)
		}
	}
}

func TestAzure41AnswerThatIsNone(t *testing.T) {
	for name, object := range map[string]string{
		"array":                                 `[{"ok":true}]`,
		"null":                                  `null`,
		"bare true":                             `true`,
		"string":                                `"allow"`,
		"no known key":                          `{"permission":"deny"}`,
		"known key in other case":               `{"OK":true}`,
		"ok as a string":                        `{"ok":"true"}`,
		"ok as null":                            `{"ok":null}`,
		"ok as a number":                        `{"ok":1}`,
		"reason as an object":                   `{"ok":false,"reason":{"a":1}}`,
		"unknown decision":                      `{"decision":"ALLOW"}`,
		"fault promptjson-10: ok against block": `{"ok":true,"decision":"block","reason":"write the notes"}`,
		"decision against permission":           `{"decision":"allow","hookSpecificOutput":{"permissionDecision":"deny"}}`,
		"key twice":                             `{"ok":true,"ok":false}`,
		"two values":                            `{"ok":true}{"ok":true}`,
		"cut off":                               `{"ok":true`,
		"hookSpecificOutput as an array":        `{"hookSpecificOutput":[]}`,
		"context as a number":                   `{"hookSpecificOutput":{"additionalContext":1}}`,
		"continue as a string":                  `{"continue":"false"}`,
		"ask on Stop":                           `{"decision":"ask","reason":"r"}`,
		"empty":                                 ``,
	} {
		if v, err := ReadAnswer(Stop, []byte(object)); err == nil {
			t.Errorf("%s: %s read as %s", name, object, v.Outcome)
		}
	}
}

func TestAzure32ModelMustStateADecision(t *testing.T) {
	for object, want := range map[string]bool{
		`{"ok":true}`: true, `{"decision":"block"}`: true,
		`{"hookSpecificOutput":{"permissionDecision":"ask"}}`: true, `{"continue":false}`: false,
		`{}`: false, `{"reason":"x"}`: false, `{"continue":true}`: false, `{"ok":"yes"}`: false, `nonsense`: false,
	} {
		if got := DecisionIn([]byte(object)); got != want {
			t.Errorf("DecisionIn(%s) = %v, want %v", object, got, want)
		}
	}
}

func FuzzReadAnswer(f *testing.F) {
	for _, s := range []string{`{"ok":true}`, `{"ok":false,"reason":"x"}`, `{"decision":"ask"}`, `{}`,
		`{"hookSpecificOutput":{"permissionDecision":"deny"}}`, `{"continue":false}`, `[]`, `{"ok":true,"ok":false}`} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, object string, onStop bool) {
		event := PreToolUse
		if onStop {
			event = Stop
		}
		v, err := ReadAnswer(event, []byte(object))
		if err != nil {
			return
		}
		if v.Outcome != Allow && v.Outcome != Block && v.Outcome != Ask || v.Outcome == Ask && onStop {
			t.Errorf("outcome %q on %s", v.Outcome, event)
		}
		if v.Outcome != Allow && !DecisionIn([]byte(object)) && !v.Has(HaltRequested) {
			t.Errorf("%s without a stated decision", v.Outcome)
		}
	})
}
