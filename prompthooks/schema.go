package prompthooks

import (
	"slices"
	"strings"

	"stopgate/gate"
)

// submitVerdict is the function by which a judge with tools gives its verdict.
const submitVerdict = "submit_verdict"

// verdictSchema is the form that a model is held to: first the checklist and
// what was found, then the verdict, since a model that has written why decides
// better. Where the hook's own prompt speaks of the expanded format the verdict
// is a decision, else ok (spec/azure.md 31): a model that is held to the wrong
// form could not do what the prompt asks.
func verdictSchema(event gate.EventName, prompt string) *Schema {
	s := &Schema{
		Type: "object",
		Properties: map[string]*Schema{
			"checklist": {Type: "array", Description: "Every single thing that the check asks for, one by one, before the verdict.", Items: &Schema{
				Type: "object",
				Properties: map[string]*Schema{
					"item":    {Type: "string", Description: "The thing that must be so."},
					"finding": {Type: "string", Description: "What the conversation shows of it, and where; or that nothing shows it."},
					"met":     {Type: "boolean"},
				},
				Required: []string{"item", "finding", "met"},
				Order:    []string{"item", "finding", "met"},
			}},
			"evidence": {Type: "array", Description: "What the verdict rests on.", Items: &Schema{
				Type: "object",
				Properties: map[string]*Schema{
					"line":  {Type: "integer", Description: "The line of the conversation; 0 for the event itself."},
					"quote": {Type: "string", Description: "Some words of that line, exactly as they stand there."},
				},
				Required: []string{"line", "quote"},
				Order:    []string{"line", "quote"},
			}},
			"reason":      {Type: "string", Description: "Why. If the check is not passed: what is missing, and what the agent must do first."},
			"probability": {Type: "number", Description: "How likely it is that the check is passed, from 0 to 1."},
		},
		Order: []string{"checklist", "evidence", "reason", "probability"},
	}
	last := "ok"
	if expanded(prompt) {
		last = "decision"
		words := []string{"allow", "block"}
		if event == gate.PreToolUse {
			words = append(words, "ask")
		}
		s.Properties[last] = &Schema{Type: "string", Enum: words}
		s.Properties["hookSpecificOutput"] = &Schema{
			Type:       "object",
			Properties: map[string]*Schema{"additionalContext": {Type: "string", Description: "Text to add to the agent's conversation."}},
		}
		s.Order = append(s.Order, last, "hookSpecificOutput")
	} else {
		s.Properties[last] = &Schema{Type: "boolean", Description: "Whether the check is passed."}
		s.Order = append(s.Order, last)
	}
	if event == gate.Stop || event == gate.SubagentStop {
		s.Properties["impossible"] = &Schema{Type: "boolean", Description: "True only if what is missing cannot be done in this session at all: the agent may then stop."}
		s.Order = append(s.Order, "impossible")
	}
	s.Required = []string{last}
	return s
}

// expanded reports whether a hook's author asks for the expanded format.
func expanded(prompt string) bool {
	words := []string{`"decision"`, "permissionDecision", "additionalContext"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(prompt, word) })
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
