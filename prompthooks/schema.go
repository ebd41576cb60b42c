package prompthooks

import (
	"strings"

	"stopgate/gate"
)

// submitVerdict is the function by which a judge with tools gives its verdict.
const submitVerdict = "submit_verdict"

// verdictSchema is the form that a model is held to. Where the hook's own
// prompt speaks of the expanded format it is that one, else ok and reason
// (spec/azure.md 31): a model that is held to the wrong form could not do what
// the prompt asks.
func verdictSchema(event gate.EventName, prompt string) *Schema {
	for _, word := range []string{`"decision"`, "permissionDecision", "additionalContext"} {
		if strings.Contains(prompt, word) {
			return expandedSchema(event)
		}
	}
	return &Schema{
		Type: "object",
		Properties: map[string]*Schema{
			"reason": {Type: "string", Description: "Why. If not ok: what is missing, and what the agent must do first."},
			"ok":     {Type: "boolean", Description: "Whether the check is passed."},
		},
		Required: []string{"ok"},
		Order:    []string{"reason", "ok"}, // a model that has written why decides better
	}
}

func expandedSchema(event gate.EventName) *Schema {
	words := []string{"allow", "block"}
	if event == gate.PreToolUse {
		words = append(words, "ask")
	}
	return &Schema{
		Type: "object",
		Properties: map[string]*Schema{
			"reason":   {Type: "string", Description: "Why. On block: what is missing, and what the agent must do first."},
			"decision": {Type: "string", Enum: words},
			"hookSpecificOutput": {
				Type:       "object",
				Properties: map[string]*Schema{"additionalContext": {Type: "string", Description: "Text to add to the agent's conversation."}},
			},
		},
		Required: []string{"decision"},
		Order:    []string{"reason", "decision", "hookSpecificOutput"},
	}
}

// judgeTools is what a judge with a transcript may call.
func judgeTools(verdict *Schema) []Tool {
	return []Tool{
		{Name: readFile, Description: "Reads lines of the conversation's transcript, numbered.",
			Parameters: &Schema{Type: "object", Properties: map[string]*Schema{
				"offset": {Type: "integer", Description: "The first line, from 1. Default 1."},
				"limit":  {Type: "integer", Description: "How many lines."},
			}, Order: []string{"offset", "limit"}}},
		{Name: grepSearch, Description: "Finds lines of the conversation's transcript by an RE2 pattern, case-sensitive unless it begins with (?i).",
			Parameters: &Schema{Type: "object", Properties: map[string]*Schema{
				"pattern": {Type: "string", Description: "RE2 syntax; no look-around, no back-references."},
				"context": {Type: "integer", Description: "Lines to show before and after each match, at most 20. Default 0."},
				"limit":   {Type: "integer", Description: "How many matches."},
			}, Required: []string{"pattern"}, Order: []string{"pattern", "context", "limit"}}},
		{Name: submitVerdict, Description: "Gives the verdict and ends the judgement. Call it alone, once, when you know enough.",
			Parameters: verdict},
	}
}
