package calibrate

import "encoding/json"

// Schema is the JSON Schema (2020-12) of a run, one line of a set, as [ReadRun]
// takes it.
func Schema() []byte {
	type schema = map[string]any
	isAssistant := schema{"properties": schema{"role": schema{"const": roleAssistant}}, "required": []string{"role"}}
	message := schema{
		"type":     "object",
		"required": []string{"role"},
		"properties": schema{
			"role":         schema{"type": "string", "minLength": 1},
			"content":      schema{"description": "A text, or a list of parts."},
			"tool_calls":   schema{"description": "Calls of tools, in the message of the assistant."},
			"tool_call_id": schema{"description": "Whose result a message of the role tool is."},
		},
		"if":   isAssistant,
		"then": schema{"properties": schema{"content": schema{"type": []string{"string", "array", "null"}}}},
	}
	s := schema{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "A labelled run, one line of a set for stopgate calibrate",
		"description": "docs/judging.md tells more. Other members are ignored.",
		"type":        "object",
		"required":    []string{"id", "label", "messages"},
		"properties": schema{
			"id":    schema{"type": "string", "description": "Once in a set.", "minLength": 1, "maxLength": maxID, "pattern": `^\P{Cc}*$`},
			"label": schema{"enum": []string{labelPass, labelFail}, "description": "fail: the gate should reject the answer."},
			"messages": schema{"type": "array", "items": message, "contains": isAssistant,
				"description": "The conversation; the assistant's last message is the answer."},
		},
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil { // maps, lists and texts have a JSON form
		panic(err)
	}
	return append(text, '\n')
}
