package gate

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// claudeCodeStops is how many Stops in a row hooks of Claude Code reject; then
// the loop ends (spec/claude-code.md 7).
const claudeCodeStops = 8

// claudeCodeConcerns: by event; by what the matcher is about there, a tool's
// name, how a session starts or a sub-agent's type; and by the hook's rule
// (spec/claude-code.md 1, 2).
func claudeCodeConcerns(h *Hook, ev *Event) bool {
	if h.Event != ev.moment() {
		return false
	}
	switch {
	case h.Event.ForTool():
		tools := claudeCodeTools(ev)
		return slices.ContainsFunc(tools, h.Matcher.Match) && (h.If == nil || slices.ContainsFunc(claudeCodeInputs(ev),
			func(input json.RawMessage) bool { return claudeCodeAbout(h.If, tools, input, ev) }))
	case h.Event == Start:
		return h.Matcher.Match(claudeCodeSource(ev))
	case h.Event == SubagentStop:
		return h.Matcher.Match(ev.AgentType)
	}
	return true
}

// claudeCodeAbout reports whether a call is one that a rule is about, whose paths are
// those of the project, or of where its agent works: an agent that goes elsewhere
// takes no file out of a rule's sight.
func claudeCodeAbout(r *Rule, tools []string, input json.RawMessage, ev *Event) bool {
	return r.holds(tools, input, ev.Cwd) || slices.ContainsFunc([]string{ev.Project, ev.Projects[ClaudeCode]}, func(dir string) bool {
		return dir != "" && dir != ev.Cwd && r.holds(tools, input, dir)
	})
}

// repeats reports whether the hook does what another does: of such Claude Code
// runs one, also where they stand under several matchers (seen with 2.1.332).
func (h *Hook) repeats(other *Hook) bool {
	return h.Dialect == ClaudeCode && other.Dialect == ClaudeCode && h.Type == other.Type && h.Command+h.URL+h.Prompt != "" &&
		h.Command == other.Command && slices.Equal(h.Args, other.Args) && (h.Args == nil) == (other.Args == nil) &&
		h.URL == other.URL && h.Prompt == other.Prompt
}

// claudeCodeEvent is what Claude Code calls an event.
func claudeCodeEvent(n EventName) string {
	if n == Start {
		return "SessionStart"
	}
	return string(n)
}

// claudeCodeTools are the names by which a tool is known to the hooks, the ones
// that Claude Code itself uses first.
func claudeCodeTools(ev *Event) []string {
	switch {
	case ev.Protocol != string(ClaudeCode):
		return append(slices.Clone(ev.ToolAliases), ev.ToolName)
	case ev.ToolName == "Agent": // its older name is still understood
		return []string{"Agent", "Task"}
	case ev.ToolName == "Task":
		return []string{"Task", "Agent"}
	}
	return []string{ev.ToolName}
}

// claudeCodeSource is how a session starts: startup, resume, clear or compact.
func claudeCodeSource(ev *Event) string {
	var source string
	if json.Unmarshal(payloadOf(ev)["source"], &source) != nil {
		return "startup" // hosts that do not say
	}
	return source
}

// payloadOf is the members that the host itself sent.
func payloadOf(ev *Event) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(ev.Payload, &members) != nil || members == nil {
		members = map[string]json.RawMessage{}
	}
	return members
}

// claudeCodeInput is a tool's arguments with those that scripts look at under
// the names that Claude Code has for them: other hosts call a command or a path
// otherwise, and a hook that finds none would let everything pass.
func claudeCodeInput(ev *Event) json.RawMessage { return claudeCodeInputs(ev)[0] }

// claudeCodeInputs are what [claudeCodeInput] may be, the likeliest first. The
// model may write arguments that the host's tool does not know, which is then
// as if they were not there: of several that may be the command, each counts.
func claudeCodeInputs(ev *Event) []json.RawMessage {
	input := inputObject(ev.ToolInput)
	names := claudeCodeArgument(ev)
	var members map[string]json.RawMessage
	if names == nil || json.Unmarshal(input, &members) != nil {
		return []json.RawMessage{input}
	}
	own := "file_path"
	if ev.ToolAliases[0] == "Bash" {
		own = "command"
	}
	var inputs []json.RawMessage
	for _, name := range names {
		switch value, ok := members[name]; {
		case !ok:
		case name == own:
			inputs = append(inputs, input)
		default:
			renamed := maps.Clone(members)
			renamed[own] = value
			inputs = append(inputs, mustJSON(renamed))
		}
	}
	if inputs == nil {
		return []json.RawMessage{input}
	}
	return inputs
}

// claudeCodeArgument is what the command or the path may be called among the
// arguments of another host's tool, the name that this tool is known to use
// first; nil: it has neither, or Claude Code's own names.
func claudeCodeArgument(ev *Event) []string {
	if ev.Protocol == string(ClaudeCode) || len(ev.ToolAliases) == 0 {
		return nil
	}
	switch ev.ToolAliases[0] {
	case "Bash":
		switch ev.ToolName {
		case "exec_command", "unified_exec": // codex
			return []string{"cmd", "command", "code"}
		case "code_execution": // the Gemini API's sandbox
			return []string{"code", "command", "cmd"}
		}
		return []string{"command", "cmd", "code"}
	case "Read", "Write", "Edit":
		if ev.Protocol == "copilot" || ev.Protocol == string(Antigravity) {
			return []string{"path", "file_path", "absolute_path", "filePath"}
		}
		return []string{"file_path", "absolute_path", "filePath", "path"}
	}
	return nil
}

// claudeCodePayload is a hook's input as Claude Code itself gives it: what it
// sent, where the event is its own, else made of the event. The conversation is
// named where the hook can read it.
func claudeCodePayload(h *Hook, ev *Event, loop loopState, transcript Transcript) []byte {
	p := map[string]any{}
	if ev.Protocol == string(ClaudeCode) {
		for name, value := range payloadOf(ev) {
			p[name] = value
		}
		if p["hook_event_name"] = claudeCodeEvent(h.Event); h.Event.ForTool() {
			p["tool_name"] = ev.ToolName
		}
		if ev.Cwd != "" {
			p["cwd"] = ev.Cwd // which a caller may know where the payload does not say
		}
		// The host knows of blocks that were not ours, and we of those that it has
		// forgotten (spec/claude-code.md 11).
		loop.StopHookActive = loop.StopHookActive || ev.ClaimedActive
	} else {
		p = claudeCodeMembers(h, ev)
	}
	if h.Event.hookEvent() == Stop {
		p["stop_hook_active"] = loop.StopHookActive
	}
	if transcript != nil {
		name := "transcript_path"
		if h.Event == SubagentStop {
			name = "agent_transcript_path"
		}
		p[name] = cmp.Or(transcript.RawPath(), transcript.Path())
	}
	return mustJSON(p)
}

// claudeCodeMembers are the members of a payload that another host did not send
// in this form.
func claudeCodeMembers(h *Hook, ev *Event) map[string]any {
	p := map[string]any{"session_id": ev.Session, "transcript_path": "", "cwd": ev.Cwd, "permission_mode": "default",
		"hook_event_name": claudeCodeEvent(h.Event)}
	add := func(name, text string) {
		if text != "" {
			p[name] = text
		}
	}
	add("prompt_id", ev.PromptID)
	add("agent_id", ev.SubAgent)
	add("agent_type", ev.AgentType)
	switch h.Event {
	case Start:
		p["source"] = claudeCodeSource(ev)
	case UserPromptSubmit:
		p["prompt"] = ev.Prompt
	case PreToolUse, PostToolUse, PostToolUseFailure:
		p["tool_name"] = claudeCodeToolName(h, ev)
		p["tool_input"] = claudeCodeInput(ev)
		p["tool_use_id"] = ""
		if id, ok := payloadOf(ev)["tool_use_id"]; ok {
			p["tool_use_id"] = id
		}
		switch h.Event {
		case PostToolUse:
			p["tool_response"] = claudeCodeResponse(ev)
		case PostToolUseFailure:
			p["error"], p["is_interrupt"] = ev.ToolResult, false
		}
	case Stop, SubagentStop:
		p["last_assistant_message"] = ev.FinalOutput
		p["background_tasks"] = append([]json.RawMessage{}, ev.Background...)
		p["session_crons"] = []json.RawMessage{}
	}
	return p
}

// claudeCodeToolName is the one of a tool's names that the hook is about.
func claudeCodeToolName(h *Hook, ev *Event) string {
	tools := claudeCodeTools(ev)
	if i := slices.IndexFunc(tools, h.Matcher.Match); i >= 0 {
		return tools[i]
	}
	return tools[0]
}

// claudeCodeResponse is a tool's result: of Bash the object that Claude Code
// has for it, of others what the host sent.
func claudeCodeResponse(ev *Event) any {
	if len(ev.ToolAliases) > 0 && ev.ToolAliases[0] == "Bash" {
		return map[string]any{"stdout": ev.ToolResult, "stderr": "", "interrupted": false, "isImage": false}
	}
	if response, ok := payloadOf(ev)["tool_response"]; ok {
		return response
	}
	return ev.ToolResult
}

// claudeCodeRuling: continue:false wins, and lets a Stop go (DESIGN §9); then
// deny beats defer beats ask beats allow; every context is kept
// (spec/claude-code.md 5).
func claudeCodeRuling(ev *Event, verdicts []Verdict) ruling {
	r := strictest(ev, verdicts)
	if r.outcome == Ask {
		if deferred := reasonsOf(verdicts, Deferred); deferred != nil {
			r.reasons = deferred
		}
	}
	if halted := reasonsOf(verdicts, HaltRequested); halted != nil {
		if r.reasons = halted; ev.Name.hookEvent() == Stop {
			r = ruling{outcome: Allow}
		}
	}
	for i := range verdicts {
		if v := &verdicts[i]; strings.TrimSpace(v.AdditionalContext) != "" {
			v.Injected = true
			r.contexts = append(r.contexts, v.AdditionalContext)
		}
	}
	return r
}

// reasonsOf are the reasons of the verdicts with a note; nil: there are none.
func reasonsOf(verdicts []Verdict, n Note) []string {
	var reasons []string
	for i := range verdicts {
		if v := &verdicts[i]; v.Has(n) && v.Outcome != Skipped {
			reasons = append(reasons, v.Reason)
		}
	}
	return reasons
}
