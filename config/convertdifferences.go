package config

import "stopgate/gate"

// sayFailure says how what goes wrong, or what a wrapping stands for, differs.
func (c *converter) sayFailure(d *declared, l law, w wrapping) {
	switch {
	case l == feeds && c.To == gate.Azure:
		c.once(d, "context: of several hooks the last one's context counts in Azure SRE Agent, and AX Code gives the agent what each prints")
	case d.Event == gate.Stop && c.To == gate.Azure && (w == reasoned || w == reasonedBy):
		c.once(d, "reason: Azure SRE Agent lets a Stop go that is refused without a reason, so the command is put into shell that gives a fixed one for an exit with 2 of which standard error says nothing")
	case d.Event == gate.Stop && c.From == gate.Azure && l != watches && ownWrapping(d) != reasoned && ownWrapping(d) != reasonedBy:
		c.once(d, "reason: a refusal without one, as an exit with 2 of which standard error says nothing, lets the agent stop in Azure SRE Agent, and blocks in %s", systemNames[c.To])
	}
	refusing := l == refuses || l == failsClosed || l == exitCloses
	switch {
	case !refusing:
	case c.To == gate.Antigravity && w != bare:
		c.once(d, "reason: no exit code refuses in the Gemini API's sandbox, so the command is put into shell that does, with a fixed text as the reason, not what standard error says")
		if l != refuses {
			c.once(d, "failure: a time-out, a hook that cannot be started, or output that is no answer lets the call go on there")
		}
	case (c.To == gate.ClaudeCode || c.To == gate.AXCode) && l == failsClosed:
		c.once(d, "failure: failMode block becomes an exit with 2; a time-out, a hook that cannot be started and output that is no answer let the agent go on in %s", systemNames[c.To])
	case c.To == gate.ClaudeCode && l == exitCloses:
		c.once(d, "failure: blockOnFailure becomes an exit with 2; a time-out and a hook that cannot be started let the agent go on in Claude Code")
	case c.From == gate.ClaudeCode && l == exitCloses:
		c.once(d, "failure: a time-out and a hook that cannot be started block in %s", systemNames[c.To])
	}
}

// sayDifferences says once for an event what its hooks are told, what of their
// answers is read, and what they have round them.
func (c *converter) sayDifferences(d *declared, event gate.EventName) {
	from, to := systemNames[c.From], systemNames[c.To]
	c.sayPrinted(d, event)
	if a, b := toldOf(c.From, d.Event), toldOf(c.To, event); a != b {
		c.once(d, "input of %s: %s gives %s; %s gives %s", EventName(c.To, event), from, a, to, b)
	}
	c.sayAnswers(d, event)
	if event == gate.PostToolUse && (c.From == gate.AXCode) != (c.To == gate.AXCode) && (d.Type != gate.CommandHook || reads(lawOf(d))) && !watchedOnly(c.To, event) {
		c.once(d, "feedback: AX Code tells the agent why a hook refuses after a tool, and withholds nothing; in %s that is a refusal", systemNames[c.notAXCode()])
	}
	if d.Event.ForTool() && !(calledAlike(c.From) && calledAlike(c.To)) {
		c.once(d, "tools: in a hook's input they have the names, and the arguments, that %s gives them", to)
	}
	if d.Type == gate.CommandHook && (c.From == gate.AXCode) != (c.To == gate.AXCode) {
		c.once(d, "environment: hooks of AX Code have the host's variables, without secrets, and HOOK_…; those of %s do not", systemNames[c.notAXCode()])
	}
	if c.To == gate.AXCode {
		c.once(d, "trust: AX Code reads a project's hooks only with AX_CODE_TRUST_PROJECT_CONFIG=1 in its environment")
	}
	if limit := limitOf(c.To); limit != "" && limit != limitOf(c.From) {
		c.once(d, "limits: %s", limit)
	}
	if event == gate.Stop && d.Type == gate.CommandHook && lawOf(d) != watches {
		c.commandCap(d)
	}
}

// sayPrinted says that plain text is context in Claude Code alone. What is only
// watched is put where nobody reads it.
func (c *converter) sayPrinted(d *declared, event gate.EventName) {
	said := d.Type == gate.CommandHook && (event == gate.Start || event == gate.UserPromptSubmit)
	other := c.To
	switch {
	case said && c.From == gate.ClaudeCode && !watchedOnly(c.To, event):
	case said && c.To == gate.ClaudeCode && lawOf(d) != watches:
		other = c.From
	default:
		return
	}
	c.once(d, "context: Claude Code gives the agent the plain text that a hook on %s prints; %s does not", EventName(gate.ClaudeCode, event), systemNames[other])
}

// commandCap says how long a command may keep an agent from stopping. Of the
// systems with a Stop that can be refused azure counts no commands (spec/azure.md
// 36), and Claude Code counts whoever blocks (spec/claude-code.md 7).
func (c *converter) commandCap(d *declared) {
	advice := ""
	if c.To == gate.Azure {
		advice = ", as maxRejections is about prompt hooks alone: let it end the loop itself, by the stop_rejection_count that it is told"
	}
	c.differ(d, "", "cap: Claude Code ends the loop after 8 blocks in a row; a command of Azure SRE Agent may reject for ever%s", advice)
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
		c.once(d, "order: hooks of one event run %s in %s, and %s in %s", a, systemNames[c.From], b, systemNames[c.To])
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
