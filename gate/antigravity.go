package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// AntigravityTools are the tools of the Gemini API's sandbox: hooks there are
// about these, and never about function tools or MCP servers
// (spec/antigravity.md 5, 14).
var AntigravityTools = []string{"code_execution", "read_file", "write_file", "list_files", "delete_file"}

// antigravityConcerns: hooks are about one of the five tools, before and after
// it, failed calls included (spec/antigravity.md 5, 10, 14).
func antigravityConcerns(h *Hook, ev *Event) bool {
	if !ev.Name.ForTool() || h.Event != ev.Name.hookEvent() {
		return false
	}
	tool := inDialect(ev, AntigravityTool)
	return slices.Contains(AntigravityTools, tool) && h.Matcher.Match(tool)
}

// AntigravityTool is the sandbox's name of a canonical tool; empty: it has none.
func AntigravityTool(canonical string) string {
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
	}{call{inDialect(ev, AntigravityTool), inputObject(ev.ToolInput)}, ev.Session, ""}
	if ev.Name != PreToolUse && !ev.ToolSucceeded {
		// The key is what tells a failed call: it is there whatever a host says
		// of the failure.
		p.Error = FirstText(ev.ToolResult, "The tool call failed.")
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

// ReadAntigravityAnswer reads what a hook of the antigravity dialect said: the
// standard output of a command that exited with 0, or the body of a 2xx.
// `{"decision":"deny","reason":…}` before a tool blocks it; everything else lets
// the call go on, and after a tool everything does (spec/antigravity.md 11, 12).
//
// Nothing at all, plain text, and JSON that states no decision are what hooks
// say that have no objection. An error is of what looks like an answer and is
// none, so that a deny may have been lost in it: broken JSON, or a decision that
// is neither allow nor deny. It lets the call go on too, as a failure.
//
// The verdict has Outcome and Reason. A block without a reason is returned as
// such.
func ReadAntigravityAnswer(event EventName, text []byte) (Verdict, error) {
	v := Verdict{Outcome: Allow}
	if event != PreToolUse {
		return v, nil
	}
	text = bytes.TrimSpace(bytes.ToValidUTF8(text, []byte("\uFFFD")))
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		if bytes.HasPrefix(text, []byte("{")) || bytes.Contains(text, []byte(`"decision"`)) {
			return Verdict{}, errors.New("not one JSON object")
		}
		return v, nil
	}
	raw, stated := fields["decision"]
	if !stated {
		return v, nil
	}
	var decision string
	_ = json.Unmarshal(raw, &decision) // what is no string is no decision
	switch decision {
	case "allow":
	case "deny":
		v.Outcome = Block
	default:
		return Verdict{}, fmt.Errorf("decision is %s, want allow or deny", Cut(string(raw), 40))
	}
	if json.Unmarshal(fields["reason"], &v.Reason) != nil {
		v.Reason = "" // a deny stands without one
	}
	return v, nil
}
