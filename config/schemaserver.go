package config

import (
	"slices"
	"strings"

	"stopgate/gate"
)

// orVariable: where a number or a flag stands, ${VAR} may stand too.
func orVariable(s schema) schema {
	about, _ := s["description"].(string)
	delete(s, "description")
	return explained(about, schema{"anyOf": []schema{s, {"type": "string", "pattern": `\$\{`}}})
}

func sizeSchema(about string) schema {
	units := strings.Join(slices.DeleteFunc(sizeUnitNames(), func(u string) bool { return u == "" }), "|")
	return orVariable(schema{"description": about, "anyOf": []schema{{"type": "integer", "minimum": 0},
		{"type": "string", "pattern": `^[0-9]+ ?(` + units + `)?$`}}})
}

func sizeUnitNames() (names []string) {
	for u := range sizeUnits {
		names = append(names, u)
	}
	slices.Sort(names)
	return names
}

func durationSchema(about string) schema {
	return schema{"description": about + " As 90s, 12h or 30d, or a number of seconds.", "anyOf": []schema{{"type": "number", "minimum": 0}, {"type": "string", "minLength": 1}}}
}

// serverSchema is that of stopgate.yaml.
func serverSchema() schema {
	texts := func(about string) schema { return listOf(about, schema{"type": "string"}) }
	s := strictly("docs/server-file.md has every key.", schema{
		"listen":        textAbout("Address and port; 127.0.0.1:8790 if not set."),
		"data":          textAbout("The data directory."),
		"database":      textAbout("postgres://…, shared by several replicas; empty: SQLite in data."),
		"agents":        textAbout("A directory of specs, loaded and watched."),
		"on_gate_error": orVariable(oneOf("What an allow becomes when the gate itself failed.", "allow", "block")),
		"durability":    orVariable(oneOf("What a decision survives.", DurablePower, DurableProcess)),
		"http": strictly("The service.", schema{
			"hosts": texts("Names by which it is reached."), "origins": texts("Web pages that may call."),
			"shutdown_grace": durationSchema("How long running evaluations may go on at the end."),
		}),
		"http_hooks": strictly("What http hooks may reach.", schema{
			"allow": texts("Hosts for hooks of claude-code."), "proxy": textAbout("A proxy's URL."), "ca_file": textAbout("More certificates, in PEM."),
			"connections": orVariable(wholeFrom("Requests at once.", 1)),
		}),
		"auth":      authSchema(),
		"telemetry": telemetrySchema(),
		"redaction": redactionSchema(),
		"models":    modelsSchema(),
		"sandbox": strictly("What command hooks run in.", schema{
			"mode":            orVariable(oneOf("", SandboxAuto, SandboxBubblewrap, SandboxProcess, SandboxContainer, SandboxOff)),
			"network":         orVariable(flagOf("Leave the host's network to hooks.")),
			"workspace":       orVariable(oneOf("How the event's cwd is mounted.", WorkspaceNone, WorkspaceReadOnly, WorkspaceReadWrite)),
			"workspace_roots": texts("Directories under which a cwd is mounted."),
			"pool":            sizeSchema("What may be held by sandboxes that are started ahead; 0: none is."),
			"python":          orVariable(oneOf("Where a Python script finds its interpreter.", PythonFresh, PythonForked)),
			"limits": strictly("Of one hook.", schema{
				"memory": sizeSchema("All of it."), "processes": orVariable(wholeFrom("And threads.", 4)), "file_size": sizeSchema("Of any file."),
				"open_files": orVariable(wholeFrom("Of each process.", 16)), "cpu": durationSchema("Of each process."),
			}),
		}),
		"transcripts": strictly("Conversations.", schema{
			"roots": texts("Directories in which a named transcript may lie."), "max_size": sizeSchema("Of one."), "max_line": sizeSchema("Of one message."),
		}),
		"limits": strictly("Bounds of requests and judges.", schema{
			"evaluate_body": sizeSchema("Of an evaluation's body."), "spec_body": sizeSchema("Of a spec's."),
			"parallel_hooks": orVariable(wholeFrom("Of one event.", 1)), "evaluations": orVariable(wholeFrom("At once.", 1)),
			"command_hooks": orVariable(wholeFrom("At once, over all events.", 1)), "judge_rounds": orVariable(wholeFrom("Answers with tool calls.", 1)),
			"judge_tokens": orVariable(wholeFrom("Of one verdict.", 1000)), "agent_daily_tokens": orVariable(wholeFrom("Of one agent in a day; 0: no limit.", 0)),
		}),
		"retention": strictly("What is kept how long, and how much of it.", schema{"records": durationSchema("Evaluations; 0: for ever."),
			"records_max_size": sizeSchema("All evaluations; 0: no bound."), "transcripts_max_size": sizeSchema("All transcripts; 0: no bound.")}),
		"export": exportSchema(),
	})
	s["title"] = "The server file stopgate.yaml"
	return s
}

func authSchema() schema {
	granted := func(more schema) schema {
		more["scopes"] = listOf("What may be done.", schema{"enum": gate.Scopes})
		more["agents"] = listOf("Of which agents: names, * any text, ? any character; all, if left out.", schema{"type": "string"})
		return more
	}
	return strictly("Who may do what; left out: everybody everything, on a loopback address.", schema{
		"keys": orVariable(flagOf("API keys, as stopgate key create makes them.")),
		"oidc": strictly("Tokens of an identity provider.", schema{
			"issuer": textAbout("Its URL."), "audience": textAbout("One of a token's aud."), "name": textAbout("The claim that names the caller."),
			"rules": listOf("The first that fits counts.", strictly("", granted(schema{
				"claim": textAbout("A claim, with a dot for one inside another."), "value": textAbout("What it is, or has in its list."),
				"agents_claim": textAbout("A claim with further agents."),
			}))),
		}),
		"tls": strictly("The service speaks TLS.", schema{
			"cert": textAbout("PEM file."), "key": textAbout("PEM file."), "client_ca": textAbout("PEM file of authorities of client certificates."),
			"clients": listOf("Who comes with one.", strictly("", granted(schema{"name": textAbout("One of the certificate's names.")}))),
		}),
	})
}

func exportSchema() schema {
	return strictly("Where records are sent.", schema{"sinks": mapOf("By a name of yours.", strictly("", schema{
		"kind": orVariable(oneOf("What it is.", SinkKinds...)), "path": textAbout("The file."), "max_size": sizeSchema("At which it is put aside; 0: never."),
		"keep": orVariable(wholeFrom("Files put aside that are kept; 0: all.", 0)), "url": textAbout("What is posted to; https, or on this machine."),
		"headers": mapOf("Headers for it.", schema{"type": "string"}), "header_files": mapOf("Headers whose value is a file's text.", schema{"type": "string"}),
		"ca_file": textAbout("More certificates, in PEM."),
	}))})
}

func telemetrySchema() schema {
	return strictly("Traces and profiles.", schema{
		"endpoint":     textAbout("Collector of OTLP over HTTP; empty: there are no traces."),
		"headers":      mapOf("Headers for it.", schema{"type": "string"}),
		"header_files": mapOf("Headers whose value is a file's text.", schema{"type": "string"}),
		"ca_file":      textAbout("More certificates, in PEM."),
		"sample":       orVariable(schema{"description": "Share of the traces that is kept.", "type": "number", "exclusiveMinimum": 0, "maximum": 1}),
		"queue":        orVariable(wholeFrom("Spans that may wait.", 1)),
		"pprof":        textAbout("Loopback address for profiles."),
	})
}

func redactionSchema() schema {
	expression := schema{"type": "string", "minLength": 1}
	return strictly("What is taken out of what is stored and shown.", schema{
		"built_in":           listOf("Built-in patterns that are used.", orVariable(oneOf("", BuiltInRedactions...))),
		"patterns":           with(mapOf("Own ones, in RE2's syntax, by name.", expression), schema{"maxProperties": maxRedactionPatterns, "propertyNames": schema{"pattern": redactionNames}}),
		"redact_model_input": orVariable(flagOf("Judges do not see it either.")),
		"conversations":      orVariable(oneOf("What is kept of conversations; redacted, where judges do not see it.", keptOriginal, keptRedacted)),
	})
}

func modelsSchema() schema {
	target := with(textAbout("provider/deployment"), schema{"pattern": `/|\$\{`})
	price := orVariable(schema{"type": "number", "minimum": 0})
	provider := schema{
		"kind": orVariable(oneOf("What it speaks; its name, if that is one of them.", serviceNames()...)), "base_url": textAbout(""), "model": textAbout("The deployment for every tier."),
		"tools": orVariable(flagOf("false: it has no function calls.")), "schema": orVariable(flagOf("false: it has no JSON Schemas.")),
	}
	for _, s := range services {
		for _, key := range s.keys {
			provider[key] = textAbout("")
		}
	}
	return strictly("Who judges.", schema{
		"providers": mapOf("By a name of yours.", strictly("", provider)), "default": textAbout("The provider of hooks that name a tier."),
		"tiers": mapOf("What tiers stand for.", target), "models": mapOf("What names of yours stand for.", target),
		"fallback": mapOf("Who is asked instead.", listOf("", target)),
		"prices":   mapOf("Per million tokens, by provider/deployment.", strictly("", schema{"input": price, "cached": price, "output": price})),
	})
}
