package prompthooks

import (
	"slices"
	"strings"
	"sync"

	"stopgate/gate"
)

// submitVerdict is the function by which a judge with tools gives its verdict.
const submitVerdict = "submit_verdict"

// field is one property of an object.
type field struct {
	name   string
	schema *Schema
}

// object is a schema of fields in that order.
func object(fields ...field) *Schema {
	s := &Schema{Type: "object", Properties: map[string]*Schema{}}
	for _, f := range fields {
		s.Properties[f.name] = f.schema
		s.Order = append(s.Order, f.name)
	}
	return s
}

// requiring has an object's fields all be required.
func requiring(s *Schema) *Schema {
	s.Required = s.Order
	return s
}

// forms are the schemas and tools of verdicts, each made once: thousands of
// judges that wait share them, and nobody changes one.
type forms struct {
	made sync.Map // of *form by formKey
}

type formKey struct {
	event    gate.EventName
	expanded bool
}

type form struct {
	schema *Schema
	tools  []Tool
}

func (f *forms) of(event gate.EventName, prompt string) *form {
	k := formKey{event, expanded(prompt)}
	if made, ok := f.made.Load(k); ok {
		return made.(*form)
	}
	s := verdictSchema(event, k.expanded)
	made, _ := f.made.LoadOrStore(k, &form{s, judgeTools(s)})
	return made.(*form)
}

// verdictSchema is the form that a model is held to: first the checklist and
// what was found, then the verdict, since a model that has written why decides
// better. Where the hook's own prompt speaks of the expanded format the verdict
// is a decision, else ok (spec/azure.md 31): a model that is held to the wrong
// form could not do what the prompt asks.
func verdictSchema(event gate.EventName, expanded bool) *Schema {
	fields := []field{
		{"checklist", &Schema{Type: "array", Description: "Every single thing that the check asks for, one by one, before the verdict.", Items: checklistItem()}},
		{"evidence", &Schema{Type: "array", Description: "What the verdict rests on.", Items: evidenceItem()}},
		{"reason", &Schema{Type: "string", Description: "Why. If the check is not passed: what is missing, and what the agent must do first."}},
		{"probability", &Schema{Type: "number", Description: "How likely it is that the check is passed, from 0 to 1."}},
	}
	verdict := field{"ok", &Schema{Type: "boolean", Description: "Whether the check is passed."}}
	if expanded {
		verdict = field{"decision", &Schema{Type: "string", Enum: decisions(event)}}
		context := field{"additionalContext", &Schema{Type: "string", Description: "Text to add to the agent's conversation."}}
		fields = append(fields, verdict, field{"hookSpecificOutput", object(context)})
	} else {
		fields = append(fields, verdict)
	}
	if event == gate.Stop || event == gate.SubagentStop {
		fields = append(fields, field{"impossible", &Schema{Type: "boolean", Description: "True only if what is missing cannot be done in this session at all: the agent may then stop."}})
	}
	s := object(fields...)
	s.Required = []string{verdict.name}
	return s
}

func checklistItem() *Schema {
	return requiring(object(
		field{"item", &Schema{Type: "string", Description: "The thing that must be so."}},
		field{"finding", &Schema{Type: "string", Description: "What the conversation shows of it, and where; or that nothing shows it."}},
		field{"met", &Schema{Type: "boolean"}}))
}

func evidenceItem() *Schema {
	return requiring(object(
		field{"line", &Schema{Type: "integer", Description: "The line of the conversation; 0 for the event itself."}},
		field{"quote", &Schema{Type: "string", Description: "Some words of that line, exactly as they stand there."}}))
}

// decisions are what a judge of an event may decide.
func decisions(event gate.EventName) []string {
	if event == gate.PreToolUse {
		return []string{"allow", "block", "ask"}
	}
	return []string{"allow", "block"}
}

// expanded reports whether a hook's author asks for the expanded format.
func expanded(prompt string) bool {
	words := []string{`"decision"`, "permissionDecision", "additionalContext"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(prompt, word) })
}

// judgeTools is what a judge with a transcript may call.
func judgeTools(verdict *Schema) []Tool {
	read := object(
		field{"offset", &Schema{Type: "integer", Description: "The first line, from 1. Default 1."}},
		field{"limit", &Schema{Type: "integer", Description: "How many lines."}})
	search := object(
		field{"pattern", &Schema{Type: "string", Description: "RE2 syntax; no look-around, no back-references."}},
		field{"context", &Schema{Type: "integer", Description: "Lines to show before and after each match, at most 20. Default 0."}},
		field{"limit", &Schema{Type: "integer", Description: "How many matches."}})
	search.Required = []string{"pattern"}
	return []Tool{
		{Name: readFile, Description: "Reads lines of the conversation's transcript, numbered.", Parameters: read},
		{Name: grepSearch, Description: "Finds lines of the conversation's transcript by an RE2 pattern, case-sensitive unless it begins with (?i).", Parameters: search},
		{Name: submitVerdict, Description: "Gives the verdict and ends the judgement. Call it alone, once, when you know enough.", Parameters: verdict},
	}
}
