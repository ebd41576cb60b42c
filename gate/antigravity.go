package gate

import "encoding/json"

// antigravityConcerns: hooks are about one of the five tools of the sandbox,
// before and after it, failed calls included (spec/antigravity.md 5, 10, 14).
func antigravityConcerns(h *Hook, ev *Event) bool {
	if !ev.Name.ForTool() || h.Event != ev.Name.hookEvent() {
		return false
	}
	return h.Matcher.Match(inDialect(ev, antigravityTool))
}

// antigravityTool is the sandbox's name of a tool.
func antigravityTool(canonical string) string {
	switch canonical {
	case "Bash":
		return "code_execution"
	case "Read":
		return "read_file"
	case "Write", "Edit":
		return "write_file"
	case "Glob":
		return "list_files"
	}
	return ""
}

// antigravityPayload is what a handler gets (spec/antigravity.md 10).
func antigravityPayload(ev *Event) []byte {
	type call struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	p := struct {
		ToolCall      call   `json:"tool_call"`
		EnvironmentID string `json:"environment_id"`
		Error         string `json:"error,omitempty"`
	}{call{inDialect(ev, antigravityTool), inputObject(ev.ToolInput)}, ev.Session, ""}
	if ev.Name != PreToolUse && !ev.ToolSucceeded {
		p.Error = ev.ToolResult
	}
	return mustJSON(p)
}

// antigravityRuling: the first deny's reason is the answer (spec/antigravity.md
// 9); there is no context.
func antigravityRuling(verdicts []Verdict) ruling {
	for i := range verdicts {
		if verdicts[i].Outcome == Block {
			return ruling{outcome: Block, reasons: []string{verdicts[i].Reason}}
		}
	}
	return ruling{outcome: Allow}
}
