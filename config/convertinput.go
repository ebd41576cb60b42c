package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
)

// inputs are what hooks are told, each by the names that the systems have for it
// (spec/azure.md 25, antigravity.md 10, ax-code.md 7 and 8, claude-code.md 10). A
// name that several systems have for the same is no difference.
var inputs = []map[gate.Dialect]string{
	{gate.Azure: "tool_name", gate.ClaudeCode: "tool_name", gate.Antigravity: "tool_call", gate.AXCode: "HOOK_TOOL"},
	{gate.Azure: "tool_input", gate.ClaudeCode: "tool_input", gate.Antigravity: "tool_call", gate.AXCode: "the arguments, of which standard input has nothing round them"},
	{gate.Azure: "tool_result", gate.ClaudeCode: "tool_response"},
	{gate.Azure: "tool_succeeded"},
	{gate.Azure: "final_output", gate.ClaudeCode: "last_assistant_message"},
	{gate.Azure: "stop_hook_active", gate.ClaudeCode: "stop_hook_active"},
	{gate.Azure: "stop_rejection_count"},
	{gate.Azure: "execution_summary", gate.ClaudeCode: "transcript_path"},
	{gate.Azure: "session_id", gate.ClaudeCode: "session_id", gate.Antigravity: "environment_id", gate.AXCode: "HOOK_SESSION_ID"},
	{gate.Azure: "hook_event_name", gate.ClaudeCode: "hook_event_name", gate.AXCode: "HOOK_EVENT"},
	{gate.Azure: "hook_name"}, {gate.Azure: "agent_name"}, {gate.Azure: "current_turn"}, {gate.Azure: "max_turns"},
	{gate.ClaudeCode: "cwd"}, {gate.ClaudeCode: "permission_mode"}, {gate.ClaudeCode: "agent_type"}, {gate.ClaudeCode: "tool_use_id"},
	{gate.AXCode: "HOOK_PACK"},
}

// arguments are names by which hooks of AX Code find a tool's arguments, which
// stand alone there.
var arguments = []string{"HOOK_ARGS_JSON", "HOOK_ARGS_STDIN", "command", "file_path", "filePath"}

// inputsOf are inputs, with those that one dialect alone reads so.
func inputsOf(d gate.Dialect) []map[gate.Dialect]string {
	all := slices.Clone(inputs)
	if d == gate.AXCode {
		for _, name := range arguments {
			all = append(all, map[gate.Dialect]string{gate.AXCode: name, gate.Azure: "tool_input", gate.ClaudeCode: "tool_input", gate.Antigravity: "tool_call"})
		}
	}
	return all
}

// unheardOf are what a text reads of its input that the target does not give, with
// what it has instead. A text that reads that too knows of both.
func (c *converter) unheardOf(text string) (lost []string) {
	all := inputsOf(c.From)
	given := func(d gate.Dialect, name string) bool {
		return slices.ContainsFunc(all, func(in map[gate.Dialect]string) bool { return in[d] == name })
	}
	var looked []string
	for _, in := range all {
		name := in[c.From]
		if name == "" || slices.Contains(looked, name) || given(c.To, name) || !readsKey(text, name) {
			continue
		}
		looked = append(looked, name)
		var there []string
		for _, in := range all {
			if to := in[c.To]; in[c.From] == name && to != "" && !slices.Contains(there, to) {
				there = append(there, to)
			}
		}
		if slices.ContainsFunc(there, func(to string) bool { return !given(c.From, to) && readsKey(text, to) }) {
			continue
		}
		if len(there) > 0 {
			name = fmt.Sprintf("%s (there: %s)", name, strings.Join(there, ", "))
		}
		lost = append(lost, name)
	}
	return lost
}

// readsKey reports whether a text has a name of the input in it. One that is a word
// of everyday too stands in quotes there, or behind a dot.
func readsKey(text, name string) bool {
	if strings.Contains(name, "_") {
		return uses(text, name)
	}
	word := regexp.QuoteMeta(name)
	return strings.Contains(text, name) && regexp.MustCompile(`["'`+"`"+`]`+word+`["'`+"`"+`]|\.`+word+`\b`).MatchString(text)
}

// told reports whether a hook finds what it reads of its input. One that does not
// could refuse nothing, or would refuse everything.
func (c *converter) told(d *declared) bool {
	if d.Type == gate.PromptHook {
		if lost := c.unheardOf(d.Prompt); len(lost) > 0 {
			c.differ(d, "prompt", "input: the prompt speaks of %s, which %s does not give", strings.Join(lost, ", "), systemNames[c.To])
		}
		return true
	}
	lost := c.unheardOf(c.textOf(d).all)
	if len(lost) > 0 {
		c.lose(d, "", "input: the hook reads %s, which %s does not give: it could not judge there; let it read what is there", strings.Join(lost, ", "), systemNames[c.To])
	}
	return len(lost) == 0
}
