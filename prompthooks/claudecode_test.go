package prompthooks

import (
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// A prompt hook of Claude Code is judged as others are: the reply {ok, reason,
// impossible?} of spec/claude-code.md 6.
func TestClaudeCode06PromptReply(t *testing.T) {
	const ok, refusal, hopeless = `{"ok":true}`, `{"ok":false,"reason":"run the tests"}`, `{"ok":false,"reason":"a person must approve","impossible":true}`
	for _, c := range []struct {
		name, reply string
		hook        gate.Hook
		want        string
		note        gate.Note
	}{
		{"it passes", ok, gate.Hook{Event: gate.Stop}, "allow", ""},
		{"fault gx-055: the turn goes on with the reason", refusal, gate.Hook{Event: gate.Stop}, "block run the tests", ""},
		{"a sub-agent's too", refusal, gate.Hook{Event: gate.SubagentStop}, "block run the tests", ""},
		{"fault loop-03: the impossible goes through", hopeless, gate.Hook{Event: gate.Stop}, "allow a person must approve", gate.Impossible},
		{"of a sub-agent too", hopeless, gate.Hook{Event: gate.SubagentStop}, "allow a person must approve", gate.Impossible},
		{"a call that has not run is no end", hopeless, gate.Hook{Event: gate.PreToolUse}, "block a person must approve", ""},
		{"a refusal without a reason is one", `{"ok":false}`, gate.Hook{Event: gate.Stop}, "block", ""},
		{"a call is denied", refusal, gate.Hook{Event: gate.PreToolUse}, "block run the tests", ""},
		{"a prompt is refused", refusal, gate.Hook{Event: gate.UserPromptSubmit}, "block run the tests", ""},
		{"after a tool the turn goes on", refusal, gate.Hook{Event: gate.PostToolUse}, "block run the tests", ""},
		{"or ends", refusal, gate.Hook{Event: gate.PostToolUse, EndsTurn: true}, "block run the tests", gate.HaltRequested},
		{"it does not end where it passes", ok, gate.Hook{Event: gate.PostToolUse, EndsTurn: true}, "allow", ""},
		{"fault promptjson-02: a fence round it", "```json\n" + ok + "\n```", gate.Hook{Event: gate.Stop}, "allow", ""},
		{"fault promptjson-04: a fence without a line's end", "```json" + refusal + "```", gate.Hook{Event: gate.PreToolUse}, "block run the tests", ""},
		{"fault promptjson-01: the older word", `{"decision":"approve","reason":"done"}`, gate.Hook{Event: gate.Stop}, "allow done", ""},
		{"prose is no verdict", "All is fine.", gate.Hook{Event: gate.Stop}, "no_verdict", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := scripted(says(c.reply))
			j, err := New(Options{Model: func(string) (Model, string, error) { return m, "d", nil }})
			if err != nil {
				t.Fatal(err)
			}
			h := c.hook
			h.Dialect, h.Type, h.Prompt, h.Timeout = gate.ClaudeCode, gate.PromptHook, "Check: $ARGUMENTS", 10*time.Second
			v := j.Evaluate(t.Context(), gate.Input{Hook: &h, Event: &gate.Event{Name: h.Event}, Context: []byte(`{"last_assistant_message":"done"}`)})
			if got := strings.TrimSpace(string(v.Outcome) + " " + v.Reason); got != c.want {
				t.Errorf("got %s (%v), want %s", got, v.Failure, c.want)
			}
			if c.note != "" && !v.Has(c.note) || c.note == "" && len(v.Notes) > 0 && v.Outcome != gate.NoVerdict {
				t.Errorf("notes %v, want %q", v.Notes, c.note)
			}
		})
	}
}

// The paths of a sub-agent's conversation are no part of the question.
func TestClaudeCode06OneQuestion(t *testing.T) {
	keys := map[key]bool{}
	for _, path := range []string{"/a", "/b"} {
		in := gate.Input{Hook: &gate.Hook{Dialect: gate.ClaudeCode, Event: gate.SubagentStop}, Event: &gate.Event{Name: gate.SubagentStop},
			Context: []byte(`{"last_assistant_message":"done","agent_transcript_path":"` + path + `"}`)}
		k, ok := keyOf(in)
		if !ok {
			t.Fatal("no key")
		}
		keys[k] = true
	}
	if len(keys) != 1 {
		t.Error("one conversation at two paths is two questions")
	}
}

// The judge is told where the answer stands in Claude Code's own payload, and
// $ARGUMENTS is that payload (fault promptctx-02: with the answer in it).
func TestClaudeCode06ArgumentsAreThePayload(t *testing.T) {
	for _, c := range []struct {
		event gate.EventName
		want  bool
	}{{gate.Stop, true}, {gate.SubagentStop, true}, {gate.PreToolUse, false}} {
		m := scripted(says(`{"ok":true}`))
		j, err := New(Options{Model: func(string) (Model, string, error) { return m, "d", nil }})
		if err != nil {
			t.Fatal(err)
		}
		h := gate.Hook{Dialect: gate.ClaudeCode, Event: c.event, Prompt: "Check $ARGUMENTS now", Timeout: 10 * time.Second}
		j.Evaluate(t.Context(), gate.Input{Hook: &h, Event: &gate.Event{Name: c.event}, Context: []byte(`{"last_assistant_message":"The tests pass."}`)})
		text := m.asked[0].Messages[0].Text
		if !strings.Contains(text, "The tests pass.") || strings.Contains(text, "$ARGUMENTS") {
			t.Errorf("%s: %s", c.event, text)
		}
		if told := strings.Contains(text, claudeCodeAnswer); told != c.want {
			t.Errorf("%s: told where the answer stands: %v", c.event, told)
		}
	}
}
