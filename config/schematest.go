package config

import (
	"stopgate/gate"
)

// testSchema is that of *.test.yaml.
func testSchema() schema {
	named := listOf("", schema{"type": "string", "minLength": 1})
	s := strictly("docs/testing-hooks.md has every key.", schema{
		"spec":        schema{"description": "The files with the hooks; not needed for the one of the same name.", "anyOf": []schema{textAbout(""), named}},
		"agent":       textAbout("Whose hooks are asked where an event names no agent."),
		"allow_hosts": listOf("Hosts that http hooks of claude-code may reach.", schema{"type": "string"}),
		"tests":       with(listOf("The cases.", reference("case")), schema{"minItems": 1, "maxItems": maxCases}),
	}, "tests")
	s["title"] = "Tests of hooks, for stopgate test"
	s["$defs"] = schema{"case": caseSchema(), "event": eventSchema(), "answers": answersSchema(), "httpAnswer": httpAnswerSchema(),
		"want": wantSchema(), "text": wantedSchema(), "hookWant": hookWantSchema(), "request": requestSchema()}
	return s
}

// eventKeys are what an event of a case has, beside a series or in it.
func eventKeys() schema {
	return schema{
		"event":           schema{"type": "object", "description": "An event as POST /v1/evaluate takes it."},
		"event_file":      with(textAbout("An event, or a recorded evaluation, in a file."), schema{"minLength": 1}),
		"protocol":        textAbout("Whose payload the event is; native if not set."),
		"active":          listOf("The hooks on demand that the session has switched on; all, if not set.", schema{"type": "string"}),
		"transcript":      schema{"type": []string{"string", "array"}, "description": "The conversation: text, or messages."},
		"transcript_file": with(textAbout("The conversation in a file."), schema{"minLength": 1}),
		"model": schema{"description": "What the model answers, in order; or by hook.",
			"anyOf": []schema{reference("answers"), mapOf("By the hook's name.", reference("answers"))}},
		"recording": with(textAbout("Directory of recorded answers."), schema{"minLength": 1}),
		"take":      textAbout("Part of the recording."),
		"http":      listOf("What servers answer to http hooks, in order.", reference("httpAnswer")),
		"want":      reference("want"),
	}
}

// EventFields are what an event may have: those of the API's Event, and those that only
// a hook's context has, which people paste as an event.
func EventFields() []string {
	return []string{"hook_event_name", "agent_name", "session_id", "current_turn", "max_turns", "execution_summary", "transcript",
		"final_output", "stop_hook_active", "stop_rejection_count", "tool_name", "tool_input", "tool_result", "tool_succeeded",
		"prompt", "prompt_id", "agent_id", "agent_type", "labels", "cwd", "hook_name", "transcript_path"}
}

// nativeEvent: without a protocol an event has the fields that it may have, and no
// others. It is for an object that has an event, and is added to it.
func nativeEvent(s schema) schema {
	fields := schema{}
	for _, name := range EventFields() {
		fields[name] = true
	}
	return with(s, schema{
		"if":   schema{"anyOf": []schema{{"not": schema{"required": []string{"protocol"}}}, {"properties": schema{"protocol": schema{"const": gate.Native}}}}},
		"then": schema{"properties": schema{"event": schema{"type": "object", "properties": fields, "additionalProperties": false}}},
	})
}

// oneEvent: there is just one of them.
func oneEvent() []schema {
	return []schema{{"required": []string{"event"}}, {"required": []string{"event_file"}}}
}

func eventSchema() schema {
	return nativeEvent(with(strictly("One event of a series.", eventKeys(), "want"), schema{"oneOf": oneEvent()}))
}

func caseSchema() schema {
	counts := schema{}
	for _, outcome := range outcomes {
		counts[outcome] = wholeBetween("", 0, maxSeries)
	}
	properties := with(eventKeys(), schema{
		"name":        with(textAbout("Once in a file."), schema{"minLength": 1}),
		"timeout":     wholeBetween("Seconds for the case.", 1, maxCaseTimeout),
		"files":       mapOf("What lies in the working directory, by path.", schema{"type": "string"}),
		"files_after": mapOf("What lies there at the end; null: nothing.", schema{"anyOf": []schema{reference("text"), {"type": "null"}}}),
		"series":      with(listOf("Events in a row.", reference("event")), schema{"minItems": 1, "maxItems": maxSeries}),
		"counts":      strictly("How many events came to which decision.", counts),
	})
	s := strictly("A case.", properties, "name")
	s["oneOf"] = []schema{{"required": []string{"series"}}, {"required": []string{"want"}, "oneOf": oneEvent()}}
	return nativeEvent(s)
}

func answersSchema() schema {
	answer := strictly("One answer of a model.", schema{
		"verdict": schema{"type": "object", "description": `As {ok: true}, or {ok: false, reason: "…"}.`},
		"calls": listOf("Calls of the judge's tools.", strictly("", schema{"name": textAbout("ReadFile or GrepSearch."),
			"args": schema{"type": "object"}}, "name")),
		"text":  textAbout("The answer as a text."),
		"error": oneOf("Why there is none.", gate.ModelUnavailable, gate.ModelRateLimited, gate.ModelRefused, gate.ModelTruncated),
	})
	answer["minProperties"], answer["maxProperties"] = 1, 1
	return listOf("Answers, in order.", answer)
}

func httpAnswerSchema() schema {
	return strictly("What a server answers.", schema{
		"url":     textAbout("Only to requests of this URL."),
		"status":  wholeBetween("200 if not set.", 200, 599),
		"headers": mapOf("", schema{"type": "string"}),
		"body":    schema{"description": "Text, or JSON."},
	})
}

// wantedSchema is that of a text that must be there.
func wantedSchema() schema {
	forms := strictly("", schema{"is": textAbout("The whole text."), "contains": with(textAbout("A part of it."), schema{"minLength": 1}),
		"matches": with(textAbout("RE2 that finds something in it."), schema{"minLength": 1})})
	forms["minProperties"], forms["maxProperties"] = 1, 1
	return schema{"anyOf": []schema{textAbout("The whole text."), forms}}
}

func notesSchema() schema  { return listOf("In any order.", oneOf("", gate.Notes...)) }
func errorsSchema() schema { return listOf("In any order.", oneOf("", gate.FailureCodes...)) }

func wantSchema() schema {
	return schema{"anyOf": []schema{oneOf("The decision.", outcomes...), strictly("What must come out.", schema{
		"decision":             oneOf("", outcomes...),
		"reason":               reference("text"),
		"context":              reference("text"),
		"forced":               flagOf("The loop has ended."),
		"degraded":             flagOf("A hook failed open."),
		"stop_hook_active":     flagOf("As the next Stop will see it."),
		"stop_rejection_count": wholeFrom("As the next Stop will see it.", 0),
		"hooks":                mapOf("Every hook that took part; {}: none, which fails the case where it is not wanted.", reference("hookWant")),
		"notes":                notesSchema(),
		"errors":               errorsSchema(),
		"requests":             listOf("Those of http hooks, in any order.", reference("request")),
	}, "decision")}}
}

func hookWantSchema() schema {
	words := append([]string{}, hookOutcomes...)
	return schema{"anyOf": []schema{oneOf("Its outcome.", words...), strictly("What it came to.", schema{
		"outcome": oneOf("", words...), "reason": reference("text"), "context": reference("text"),
		"notes": notesSchema(), "error": oneOf("", gate.FailureCodes...),
	}, "outcome")}}
}

func requestSchema() schema {
	return strictly("A request.", schema{
		"url": textAbout("The whole URL."), "headers": mapOf("", schema{"type": "string"}),
		"body": schema{"type": "object", "description": "Members that it must have."},
	})
}
