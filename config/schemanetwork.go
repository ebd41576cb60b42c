package config

// networkSchema is that of what an agent's http hooks may reach, as [ReadNetwork]
// takes it.
func networkSchema() schema {
	headers := mapOf("", schema{"type": "string"})
	list := listOf("The only hosts that may be reached; empty: none; left out: every external one.", strictly("", schema{
		"domain": with(textAbout("A host, *.example.com for every host below it, or *."), schema{"minLength": 1}),
		"transform": schema{"description": "Headers that are put on requests to it, replacing those of the same name.",
			"anyOf": []schema{headers, listOf("", headers)}},
	}, "domain"))
	disabled, editor := schema{"const": "disabled"}, textAbout("By which schema an editor completes this.")
	return schema{
		"title":       "What the http hooks of an agent may reach, for stopgate",
		"description": "docs/http-hooks.md tells more.",
		"anyOf": []schema{disabled, strictly("", schema{schemaMember: editor, "allowlist": list}),
			strictly("As in the environment that it is copied from.", schema{schemaMember: editor,
				"network": schema{"anyOf": []schema{disabled, strictly("", schema{"allowlist": list})}}}, "network")},
	}
}
