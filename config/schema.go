package config

import (
	"encoding/json"
	"fmt"
	"maps"

	"stopgate/gate"
	"stopgate/rulehooks/expressions"
)

// schema is one JSON Schema, or a part of one.
type schema = map[string]any

// Schemas are the JSON Schemas (2020-12) of the files that people write, by name:
// "spec" (ExtendedAgent and GlobalHook), "server", "test" and "network". Editors complete and
// check by them; what decides is the reader, which knows more.
func Schemas() map[string][]byte {
	all := map[string][]byte{}
	for name, s := range map[string]schema{"spec": specSchema(), "server": serverSchema(), "test": testSchema(), "network": networkSchema()} {
		s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil { // maps, lists and texts have a JSON form
			panic(err)
		}
		all[name] = append(text, '\n')
	}
	return all
}

// strictly is an object that has no other members.
func strictly(about string, properties schema, required ...string) schema {
	s := leniently(about, properties, required...)
	s["additionalProperties"] = false
	return s
}

// leniently is an object that may have other members too.
func leniently(about string, properties schema, required ...string) schema {
	s := explained(about, schema{"type": "object", "properties": properties})
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// explained says what a value is for; empty: its name says it.
func explained(about string, s schema) schema {
	if about != "" {
		s["description"] = about
	}
	return s
}

// mapOf is an object whose names are free.
func mapOf(about string, value schema) schema {
	return explained(about, schema{"type": "object", "additionalProperties": value})
}

func textAbout(about string) schema { return explained(about, schema{"type": "string"}) }

func listOf(about string, items schema) schema {
	return explained(about, schema{"type": "array", "items": items})
}

func flagOf(about string) schema { return explained(about, schema{"type": "boolean"}) }

func wholeFrom(about string, least int) schema {
	return wholeBetween(about, least, maxWhole)
}

func wholeBetween(about string, least, most int) schema {
	return explained(about, schema{"type": "integer", "minimum": least, "maximum": most})
}

func oneOf[T ~string](about string, words ...T) schema {
	return explained(about, schema{"enum": words})
}

func reference(to string) schema { return schema{"$ref": "#/$defs/" + to} }

// with is a schema with more in it.
func with(s schema, more schema) schema {
	s = maps.Clone(s)
	maps.Copy(s, more)
	return s
}

func specSchema() schema {
	manifest := func(kind, to string, required ...string) schema {
		return leniently("", schema{
			"api_version": with(textAbout("The format's version."), schema{"const": apiVersion}),
			"kind":        schema{"const": kind},
			"metadata":    leniently("", with(labels(), schema{"name": reference("name")}), "name"),
			"spec":        reference(to),
		}, append(required, "metadata", "spec")...)
	}
	resource := func(kind, to string, required ...string) schema {
		return leniently("", with(labels(), schema{
			"name": reference("name"), "type": schema{"const": kind}, "properties": reference(to),
		}), append(required, "name", "properties")...)
	}
	return schema{
		"title":       "An agent with its hooks, or an agent-level hook, of stopgate",
		"description": "docs/writing-hooks.md has every field.",
		"anyOf": []schema{manifest(extendedAgent, "agent"), manifest(globalHook, "globalHook", "kind"),
			resource(extendedAgent, "agent"), resource(globalHook, "globalHook", "type")},
		"$defs": schema{
			"name":  schema{"type": "string", "pattern": "^[a-zA-Z0-9_-]+$", "not": schema{"pattern": "^system__"}, "maxLength": maxNameBytes},
			"agent": agentSchema(), "globalHook": globalHookSchema(), "hook": hookSchema(false), "toolHook": hookSchema(true),
		},
	}
}

func labels() schema {
	return schema{"tags": listOf("Words to find it by.", schema{"type": "string"}), "owner": textAbout("Who looks after it.")}
}

func agentSchema() schema {
	hooks := schema{}
	for _, event := range hookEvents {
		item := reference("hook")
		if gate.EventName(event).ForTool() {
			item = reference("toolHook")
		}
		hooks[event] = with(listOf("Hooks that are asked on "+event+".", item), schema{"maxItems": maxHooks})
	}
	properties := schema{
		"hooks":                       strictly("The agent's own hooks, by event.", hooks),
		"mode":                        modeSchema("of every hook of its own"),
		"deferStopForBackgroundTasks": flagOf("Put a Stop off while background tasks of the agent still run."),
		"temperature":                 schema{"type": "number"}, "maxReflectionCount": schema{"type": "number"},
	}
	for _, name := range []string{"instructions", "handoffDescription", "customReflectionNote", "agentType", "model"} {
		properties[name] = schema{"type": "string"}
	}
	for _, name := range []string{"tools", "mcpTools", "allowedSkills", "commonPrompts", "handoffs"} {
		properties[name] = schema{"type": "array"}
	}
	for _, name := range []string{"allowParallelToolCalls", "enableSkills", "enableVanillaMode"} {
		properties[name] = schema{"type": "boolean"}
	}
	return leniently("A custom agent.", properties)
}

func modeSchema(of string) schema {
	return oneOf("shadow: the verdict "+of+" is recorded, and nothing comes of it; enforce if not set.", "enforce", "shadow")
}

func globalHookSchema() schema {
	s := leniently("A hook for every agent.", schema{
		"eventType":      oneOf("When it is asked.", hookEvents...),
		"activationMode": oneOf("Whether it is active in a new thread.", string(gate.Always), string(gate.OnDemand), "on-demand"),
		"description":    textAbout("What it is for."),
		"hook":           reference("hook"),
	}, "eventType", "hook")
	s["if"] = schema{"properties": schema{"eventType": schema{"enum": []gate.EventName{gate.PreToolUse, gate.PostToolUse}}}, "required": []string{"eventType"}}
	s["then"] = schema{"properties": schema{"hook": schema{"required": []string{"matcher"}}}}
	return s
}

func hookSchema(tool bool) schema {
	properties := schema{
		"name":          reference("name"),
		"type":          oneOf("How it is asked; prompt if not set.", gate.PromptHook, gate.CommandHook, gate.RuleHook),
		"timeout":       wholeFrom(fmt.Sprintf("Seconds; %d if not set.", int(gate.DefaultTimeout.Seconds())), 1),
		"failMode":      oneOf("What it means when the hook cannot be asked; allow if not set.", gate.FailAllow, gate.FailBlock),
		"mode":          modeSchema("of it"),
		"when":          with(textAbout("A CEL expression over the event; where it is false the hook is not asked."), schema{"maxLength": expressions.MaxBytes}),
		"prompt":        textAbout("What a model is asked. $ARGUMENTS stands for the event."),
		"model":         textAbout("A tier or a deployment; " + gate.DefaultModel + " if not set."),
		"maxRejections": wholeBetween(fmt.Sprintf("Of prompt hooks on Stop; %d if none sets it.", gate.DefaultMaxRejections), gate.MinMaxRejections, gate.MaxMaxRejections),
		"threshold":     schema{"type": "number", "description": "Probability from which on a check is passed.", "exclusiveMinimum": 0, "maximum": 1},
		"evidence":      oneOf("Whether a verdict must quote.", "optional", "required"),
		"votes":         schema{"enum": []int{1, 3, 5, 7, maxVotes}, "description": "How many judges decide."},
		"models":        with(listOf("Whom the judges ask, in turn.", schema{"type": "string"}), schema{"maxItems": maxModels}),
		"cache":         flagOf("Give the verdict on the same question again unasked."),
		"command":       with(textAbout("A shell line."), schema{"maxLength": gate.MaxScriptBytes}),
		"script":        with(textAbout("A whole script with its shebang."), schema{"maxLength": gate.MaxScriptBytes}),
		"rules":         with(listOf("Of rule hooks: the first whose condition holds decides; none: allow.", ruleSchema()), schema{"minItems": 1, "maxItems": maxRules}),
		"matcher":       with(textAbout(`Which tools it is about: RE2 over the whole name, or "*".`), schema{"maxLength": maxMatcherBytes}),
	}
	s := leniently("A hook.", properties)
	if !tool {
		s["description"] = "A hook. A matcher has effect on tool events only."
	}
	s["if"] = schema{"properties": schema{"type": schema{"const": gate.CommandHook}}, "required": []string{"type"}}
	s["then"] = schema{"oneOf": []schema{{"required": []string{"command"}}, {"required": []string{"script"}}}}
	s["else"] = schema{
		"if":   schema{"properties": schema{"type": schema{"const": gate.RuleHook}}, "required": []string{"type"}},
		"then": schema{"required": []string{"rules"}},
		"else": schema{"required": []string{"prompt"}},
	}
	return s
}

func ruleSchema() schema {
	template := func(about string) schema {
		return with(textAbout(about+" {{ … }} stands for what a CEL expression comes to."), schema{"maxLength": expressions.MaxTemplateBytes})
	}
	return strictly("", schema{
		"if":                with(textAbout("A CEL expression over the event."), schema{"maxLength": expressions.MaxBytes}),
		"then":              oneOf("What the hook says where it holds; ask on PreToolUse only.", gate.Block, gate.Ask, gate.Allow),
		"reason":            template("Why; the agent is told."),
		"additionalContext": template("What the agent is told beside."),
	}, "if", "then")
}
