package config

import (
	"net/url"
	"strings"
	"time"

	"stopgate/gate"
)

// http converts a hook that is asked over HTTP, which two dialects have.
func (c *converter) http(d *declared, h *gate.Hook) bool {
	if c.To != gate.Antigravity && c.To != gate.ClaudeCode {
		c.lose(d, "type", "%s has no hooks that are asked over HTTP", systemNames[c.To])
		return false
	}
	before := c.lost
	u, err := url.Parse(d.URL)
	switch {
	case c.To == gate.ClaudeCode && strings.Contains(d.URL, "$"):
		c.lose(d, "url", "Claude Code takes no url that holds a dollar sign: write %%24")
	case c.To == gate.Antigravity && (err != nil || u.Scheme != "https" || thisMachine(u.Hostname())):
		c.lose(d, "url", "the Gemini API's sandbox reaches https:// alone, and never its own machine")
	}
	for _, header := range d.Headers {
		if headerVariable.MatchString(header.Value) {
			c.lose(d, "headers", "header %q: a dollar sign stands for a variable in Claude Code, and for itself in the Gemini API's sandbox", header.Name)
		}
	}
	h.URL, h.Headers = d.URL, d.Headers
	where := "the environment's network object"
	if c.To == gate.ClaudeCode {
		where = "the server file's http_hooks, and for Claude Code its own settings"
	}
	c.once(d, "reach: which hosts hooks may ask is said in %s", where)
	return c.lost == before
}

// prompt converts a hook that a model judges, which two dialects have.
func (c *converter) prompt(d *declared, h *gate.Hook) bool {
	switch {
	case c.To != gate.Azure && c.To != gate.ClaudeCode:
		c.lose(d, "type", "%s has no hooks that a model judges", systemNames[c.To])
		return false
	case c.To == gate.ClaudeCode && d.Event == gate.Start:
		c.lose(d, "type", "Claude Code asks only commands on SessionStart")
		return false
	}
	h.Prompt, h.Model = d.Prompt, gate.DefaultModel
	if d.Model != gate.DefaultModel {
		h.Model = c.model(d)
	}
	if d.node != nil && d.node.has("type") && d.node.find("type").text == "agent" {
		c.differ(d, "type", "type: an agent hook has Claude Code's tools; a prompt hook reads the conversation by ReadFile and GrepSearch")
	}
	if d.FailMode == gate.FailBlock {
		c.differ(d, "failMode", "failure: Claude Code goes on where no verdict is given, as failMode block does not")
	}
	if d.Event == gate.Stop {
		c.cap(d)
	}
	if d.EndsTurn {
		c.differ(d, "", "effect: a refusal after a tool ends the turn in Claude Code; there it withholds the tool's result")
	}
	return true
}

// cap says how rejections of a Stop are limited.
func (c *converter) cap(d *declared) {
	if c.To == gate.Azure {
		c.once(d, "cap: Claude Code ends the loop after 8 blocks in a row; maxRejections is 3 where it is not set, and is about prompt hooks alone")
		return
	}
	most := d.MaxRejections
	if most == 0 {
		most = gate.DefaultMaxRejections
	}
	c.differ(d, "maxRejections", "cap: this hook may reject %d times; Claude Code ends the loop after 8 blocks in a row, whoever blocked", most)
}

// model is the target's name of a judge. Claude Code has families for three of
// the tiers.
func (c *converter) model(d *declared) string {
	for family, tier := range familyTiers {
		switch {
		case c.To == gate.Azure && d.Model == family:
			return tier
		case c.To == gate.ClaudeCode && d.Model == tier:
			return family
		}
	}
	c.differ(d, "model", "model: %q is kept, and is to be a name that %s knows", cut(d.Model), systemNames[c.To])
	return d.Model
}

// timeout writes the hook's time out, since the usual ones differ. AX Code has
// one for all; azure and antigravity count whole seconds, and azure warns of long
// ones (spec/azure.md 15).
func (c *converter) timeout(d *declared, h *gate.Hook) {
	switch h.Timeout = d.Timeout; {
	case c.To == gate.AXCode && d.Timeout != gate.DefaultTimeout:
		c.differ(d, "timeout", "timeout: AX Code gives every hook %g s, and this one has %g s", gate.DefaultTimeout.Seconds(), d.Timeout.Seconds())
		h.Timeout = gate.DefaultTimeout
	case c.To == gate.Azure && d.Timeout > gate.LongTimeout:
		c.differ(d, "timeout", "timeout: %g s become %g s, the longest that Azure SRE Agent is meant to wait", d.Timeout.Seconds(), gate.LongTimeout.Seconds())
		h.Timeout = gate.LongTimeout
	case c.To != gate.ClaudeCode && d.Timeout%time.Second != 0:
		h.Timeout = d.Timeout.Truncate(time.Second) + time.Second
		c.differ(d, "timeout", "timeout: %g s become %g s, as %s counts whole seconds", d.Timeout.Seconds(), h.Timeout.Seconds(), systemNames[c.To])
	}
}
