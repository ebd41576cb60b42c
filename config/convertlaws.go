package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
)

// sayFailure says how what goes wrong, or what a wrapping stands for, differs.
func (c *converter) sayFailure(d *declared, l law, w wrapping) {
	line, _ := unwrapped(d)
	if c.From == gate.AXCode && d.Event == gate.PostToolUse && !d.ReadsAnswer && line == d.Command {
		c.once(d, "feedback", "feedback: AX Code gives the agent what this hook prints; %s does not, and only runs it", systemNames[c.To])
	}
	refusing := l == refuses || l == failsClosed || l == exitCloses
	switch {
	case !refusing:
	case c.To == gate.Antigravity && w != bare:
		c.once(d, "failure "+w.tail, "reason: no exit code refuses in the Gemini API's sandbox, so the command is put into shell that does, with a fixed text as the reason, not what standard error says")
		if l != refuses {
			c.once(d, "failure", "failure: a time-out, or a hook that cannot be started, lets the call go on there")
		}
	case (c.To == gate.ClaudeCode || c.To == gate.AXCode) && l == failsClosed:
		c.once(d, "failure", "failure: failMode block becomes an exit with 2; a time-out, a hook that cannot be started and output that is no answer let the agent go on in %s", systemNames[c.To])
	case c.To == gate.ClaudeCode && l == exitCloses:
		c.once(d, "failure", "failure: blockOnFailure becomes an exit with 2; a time-out and a hook that cannot be started let the agent go on in Claude Code")
	case c.From == gate.ClaudeCode && l == exitCloses:
		c.once(d, "failure", "failure: a time-out and a hook that cannot be started block in %s", systemNames[c.To])
	}
}

// sayDifferences says once for an event what its hooks are told, what of their
// answers is read, and what they have round them.
func (c *converter) sayDifferences(d *declared, event gate.EventName) {
	from, to := systemNames[c.From], systemNames[c.To]
	if a, b := toldOf(c.From, d.Event), toldOf(c.To, event); a != b {
		c.once(d, "input", "input of %s: %s gives %s; %s gives %s", eventName(c.To, event), from, a, to, b)
	}
	if d.Type == gate.HTTPHook || d.Type == gate.CommandHook && reads(lawOf(d)) {
		c.once(d, "answer", "answer on %s: %s reads %s; %s reads %s", eventName(c.To, event), from, readOf(c.From, d.Event), to, readOf(c.To, event))
	}
	c.loseAnswers(d, event)
	if d.Event.ForTool() && !(calledAlike(c.From) && calledAlike(c.To)) {
		c.once(d, "names", "tools: in a hook's input they have the names, and the arguments, that %s gives them", to)
	}
	if d.Type == gate.CommandHook && (c.From == gate.AXCode) != (c.To == gate.AXCode) {
		c.once(d, "environment", "environment: hooks of AX Code have the host's variables, without secrets, and HOOK_…; those of %s do not", systemNames[c.notAXCode()])
	}
	if c.To == gate.AXCode {
		c.once(d, "trust", "trust: AX Code reads a project's hooks only with AX_CODE_TRUST_PROJECT_CONFIG=1 in its environment")
	}
	if limit := limitOf(c.To); limit != "" && limit != limitOf(c.From) {
		c.once(d, "limits", "limits: %s", limit)
	}
	if event == gate.Stop && d.Type == gate.CommandHook && c.To == gate.ClaudeCode && c.From == gate.Azure {
		c.once(d, "cap of commands", "cap: Claude Code ends the loop after 8 blocks in a row; a command of Azure SRE Agent may reject for ever")
	}
}

// loseAnswers is an error where a refusal in the own system's words refuses
// nothing in the other: shell round a command reads no JSON, and round a server
// there is none. The hook itself can be written, since its exit code keeps its
// meaning. A script that stands in the hook, and has a word nowhere, is taken not
// to say it.
func (c *converter) loseAnswers(d *declared, event gate.EventName) {
	asked := d.Type == gate.HTTPHook && !watchedOnly(d.Dialect, d.Event) || d.Type == gate.CommandHook && reads(lawOf(d))
	if !asked || watchedOnly(c.To, event) {
		return
	}
	script := d.Script
	if line, _ := unwrapped(d); script == "" && d.Args == nil {
		script, _ = scriptOf(line)
	}
	known := refusals(c.To, event)
	lost := slices.DeleteFunc(refusals(c.From, d.Event), func(r wording) bool {
		return slices.Contains(known, r) || script != "" && !r.in(script)
	})
	text := fmt.Sprintf("answer on %s: %s refuses in %s and nothing in %s, which reads %s: let the hook say that", eventName(c.To, event),
		either(lost), systemNames[c.From], systemNames[c.To], either(known))
	if len(lost) > 0 && !c.said[text] { // the first one's place stands for all
		c.said[text] = true
		c.lose(d, "", "%s", text)
	}
}

// wording is an answer that refuses.
type wording string

const (
	saysDeny   wording = `{"decision":"deny"}`
	saysBlock  wording = `{"decision":"block"}`
	saysNotOK  wording = `{"ok":false}`
	saysFlat   wording = `{"permissionDecision":"deny"}`
	saysNested wording = `{"hookSpecificOutput":{"permissionDecision":"deny"}}`
)

// in reports whether a script has the word of it.
func (r wording) in(script string) bool {
	word := map[wording]string{saysDeny: "deny", saysBlock: "block", saysNotOK: "ok"}[r]
	return regexp.MustCompile(`\b` + cmp.Or(word, "permissionDecision") + `\b`).MatchString(script)
}

// either names several.
func either(list []wording) string {
	var texts []string
	for _, r := range list {
		texts = append(texts, string(r))
	}
	return strings.Join(texts, " or ")
}

// refusals are the answers by which a hook on an event refuses.
func refusals(d gate.Dialect, event gate.EventName) []wording {
	before := event == gate.PreToolUse
	switch {
	case d == gate.Antigravity:
		return []wording{saysDeny}
	case d == gate.AXCode && gate.AXCodeBlocks(event):
		return []wording{saysFlat, saysNested}
	case d == gate.Azure && before:
		return []wording{saysDeny, saysBlock, saysNotOK, saysNested}
	case d == gate.Azure:
		return []wording{saysBlock, saysNotOK}
	case d == gate.ClaudeCode && before:
		return []wording{saysBlock, saysNested}
	}
	return []wording{saysBlock}
}

func reads(l law) bool { return l == speaks || l == refuses || l == failsClosed }

func (c *converter) notAXCode() gate.Dialect {
	if c.From == gate.AXCode {
		return c.To
	}
	return c.From
}

// sayOrder says how the hooks of one event come after each other.
func (c *converter) sayOrder(d *declared) {
	if a, b := orderOf(c.From), orderOf(c.To); a != b {
		c.once(d, "order", "order: hooks of one event run %s in %s, and %s in %s", a, systemNames[c.From], b, systemNames[c.To])
	}
}

func orderOf(d gate.Dialect) string {
	switch d {
	case gate.Antigravity:
		return "one after another"
	case gate.AXCode:
		return "one after another until one blocks"
	}
	return "at once"
}

func limitOf(d gate.Dialect) string {
	switch d {
	case gate.AXCode:
		return "AX Code keeps 1 MiB of each stream, and gives the agent 4,000 characters of a hook's feedback, 8,000 of a call's"
	case gate.ClaudeCode:
		return "Claude Code cuts each text of an answer at 10,000 characters"
	}
	return ""
}

// toldOf is what a dialect's hooks are told of an event.
func toldOf(d gate.Dialect, event gate.EventName) string {
	members := ""
	switch d {
	case gate.AXCode:
		if event == gate.UserPromptSubmit {
			return "prompt, and HOOK_… variables"
		}
		if !event.ForTool() {
			return "{}, and HOOK_… variables"
		}
		return "the tool's arguments alone, and HOOK_… variables"
	case gate.Antigravity:
		members = "tool_call.name, tool_call.args and environment_id"
		if event == gate.PostToolUse {
			members += ", and error of a failed call"
		}
		return members
	case gate.Azure:
		switch event {
		case gate.PreToolUse:
			members = "tool_name, tool_input"
		case gate.PostToolUse:
			members = "tool_name, tool_input, tool_result, tool_succeeded"
		case gate.Stop:
			members = "final_output, stop_hook_active, stop_rejection_count"
		}
		return joined(members, "agent_name, current_turn, max_turns and execution_summary")
	}
	switch event {
	case gate.PreToolUse:
		members = "tool_name, tool_input"
	case gate.PostToolUse:
		members = "tool_name, tool_input, tool_response"
	case gate.PostToolUseFailure:
		members = "tool_name, tool_input, error"
	case gate.Stop:
		members = "last_assistant_message, stop_hook_active"
	case gate.SubagentStop:
		members = "last_assistant_message, stop_hook_active, agent_type"
	case gate.UserPromptSubmit:
		members = "prompt"
	case gate.Start:
		members = "source"
	}
	return joined(members, "session_id, cwd and transcript_path")
}

func joined(own, common string) string {
	if own == "" {
		return common
	}
	return own + ", " + common
}

// readOf is what a dialect reads of a hook's output, or of an HTTP body.
func readOf(d gate.Dialect, event gate.EventName) string {
	before := event == gate.PreToolUse
	switch {
	case d == gate.Antigravity && before:
		return `{"decision":"deny","reason":…} at exit 0, and no other refusal`
	case d == gate.Antigravity:
		return "nothing"
	case d == gate.AXCode && event == gate.PostToolUse:
		return `decision "block" with reason, and additionalContext, as feedback that withholds nothing`
	case d == gate.AXCode && gate.AXCodeBlocks(event):
		return `permissionDecision at exit 0, flat or in hookSpecificOutput, and neither decision nor ok`
	case d == gate.AXCode:
		return "nothing"
	case d == gate.Azure && before:
		return `decision allow, deny, block or ask, or ok, or hookSpecificOutput.permissionDecision, at exit 0`
	case d == gate.Azure && event == gate.PostToolUse:
		return `decision allow or block, or ok, at exit 0; a block withholds the tool's result`
	case d == gate.Azure:
		return `decision allow or block, or ok, at exit 0`
	case before:
		return `hookSpecificOutput.permissionDecision with its hookEventName, or decision approve or block, on every exit code; deny in decision, and ok, refuse nothing`
	}
	if event == gate.PostToolUse {
		return `decision "block" with reason, on every exit code; ok refuses nothing; a block leaves the tool's result`
	}
	return `decision "block" with reason, on every exit code; ok refuses nothing`
}
