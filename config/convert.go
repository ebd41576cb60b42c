package config

import (
	"slices"

	"stopgate/gate"
)

// A conversion reads a file (convertread.go), looks hook by hook at what it becomes, and
// writes that (convertwrite.go) with a report (convertreport.go). Of a hook there is
// its event (convertevents.go), its matcher (convertmatcher.go), what it is told
// (convertinput.go, converttold.go), its command with what is put round it
// (convertcommand.go, convertwrapping.go), the other kinds (convertkinds.go), and its
// answers: by their words (convertanswers.go), by what both systems read in them
// (convertmeaning.go), and as far as scripts show what they print (printed*.go).
// What else differs is said by convertdifferences.go.

// Tool is one tool by the names that each system has for it; none: it has no
// such tool.
type Tool map[gate.Dialect][]string

// Conversion makes of hooks of one dialect a file of another's.
type Conversion struct {
	From, To gate.Dialect
	// Agent names the one agent of a file of azure that is converted, and the one
	// that is written, there or as a group of antigravity; empty: the file's only
	// one, and "converted".
	Agent string
	// Tools are the tools that are known, to translate matchers by.
	Tools []Tool
	// Partial: what can be expressed is written though something cannot.
	Partial bool
	// Script is the text of a file that hooks run, by its path from the project's
	// directory or from the root; ok: it is there, and is text of a size that can
	// be read. nil: no file can be seen.
	Script func(path string) (text string, ok bool)
	// Names are those of what lies in a directory, by its path as a script's; ok:
	// they are all there. nil: no directory can be seen.
	Names func(dir string) (names []string, ok bool)
}

// Convert reads a file and writes its hooks in the form of the other dialect:
// YAML for azure, else JSON.
//
// The report has its errors first, then the warnings about single hooks, then
// what holds for all, each in the order of the text. Its errors are what that
// has wrong, or what the other system has no equal for; its warnings what is
// expressed, and how it behaves otherwise there. document is nil where nothing
// can be written: the file has an error, or, unless Partial, something cannot be
// expressed, or no hook is left.
func (c Conversion) Convert(name string, data []byte) (document []byte, report []gate.Finding) {
	f := &findings{}
	hooks, readable := c.read(name, data, f)
	if !readable {
		return nil, f.sorted()
	}
	written, general := c.convert(hooks, f)
	if len(written) == 0 && f.errors == 0 {
		f.errorf("", pos{1, 1}, "file has no hook that is asked: there is nothing to convert")
	}
	if len(written) > 0 && (c.Partial || f.errors == 0) {
		document = c.write(written)
	}
	errs, warnings := split(f.sorted())
	return document, slices.Concat(errs, warnings, general.sorted())
}

// converter converts hook by hook. What it has to say of one is put off until it
// is known whether the hook is written, and goes into the findings then.
type converter struct {
	Conversion
	*findings
	general *findings // what holds for every hook of a kind
	hooks   []declared
	pending []saying
	// said are the findings by what they say: each is there once, with the names of
	// all the hooks that it is about.
	said map[string]*sentence
	lost int // how often something could not be expressed
}

// convert is what the hooks become, in their order, and what is to be said of all
// of them.
func (c Conversion) convert(hooks []declared, f *findings) (written []gate.Hook, general *findings) {
	v := &converter{Conversion: c, findings: f, general: &findings{}, hooks: hooks, said: map[string]*sentence{}}
	var first *declared                                                                  // of those that are written
	most := map[gate.Dialect]int{gate.Azure: maxHooks, gate.AXCode: axCodeEntries}[c.To] // azure's per event
	counts := map[gate.EventName]int{}
	for i := range hooks {
		d := &hooks[i]
		become := v.hook(d)
		v.settle(len(become) > 0)
		if first == nil && len(become) > 0 {
			first = d
		}
		for _, h := range become {
			of := h.Event
			if c.To == gate.AXCode {
				of = ""
			}
			if counts[of]++; most > 0 && counts[of] > most {
				v.lose(d, "", "%s takes %d hooks at most, and this is one more", systemNames[c.To], most)
				v.settle(false)
				break
			}
			written = append(written, h)
		}
	}
	if len(written) > 1 {
		v.sayOrder(first)
	}
	v.settle(true)
	v.nameAll()
	return written, v.general
}

// hook is what a hook becomes: one, two where an event there is two here, or
// none, for a reason that was said.
func (c *converter) hook(d *declared) []gate.Hook {
	if !c.asked(d) {
		return nil
	}
	events := c.events(d)
	if len(events) == 0 {
		return nil
	}
	h := gate.Hook{Level: gate.CustomLevel, Dialect: c.To, Type: d.Type, FailMode: gate.FailAllow}
	if !c.matcher(d, &h) || !c.own(d) || !c.told(d) {
		return nil
	}
	ok := false
	switch d.Type {
	case gate.CommandHook:
		ok = c.command(d, events[0], &h)
	case gate.HTTPHook:
		ok = c.http(d, &h)
	case gate.PromptHook:
		ok = c.prompt(d, &h)
	default:
		if d.Dialect == gate.Azure {
			c.lose(d, "type", "%s has no rules like these", systemNames[c.To])
			return nil
		}
		c.lose(d, "", "the pack %s is a part of AX Code: %s has nothing like it", d.Pack, systemNames[c.To])
	}
	if !ok {
		return nil
	}
	c.timeout(d, &h)
	c.sayDifferences(d, events[0])
	var all []gate.Hook
	for _, event := range events {
		h.Event = event
		if !event.ForTool() {
			h.Matcher = matchesAll(c.To, event)
		}
		all = append(all, h)
	}
	return all
}

// asked reports whether the hook is ever asked. One that is not would be asked
// about everything elsewhere, where its matcher means that.
func (c *converter) asked(d *declared) bool {
	nothing := d.Matcher.String() == "" && !d.Matcher.Match("")
	specific := d.Matcher.String() != "" && !d.Matcher.Match("")
	switch {
	case d.Event.ForTool() && (nothing || d.Matcher.Names() != nil && len(d.Matcher.Names()) == 0):
		c.differ(d, "matcher", "hook is never asked, as its matcher matches no tool: it is not written")
		return false
	case c.From == gate.AXCode && !d.Event.ForTool() && specific:
		c.differ(d, "matcher", "hook is never asked, as %s has no tool: it is not written", d.Event)
		return false
	}
	return true
}

// own reports whether what only the hook's own system has can be left out of it.
func (c *converter) own(d *declared) bool {
	before := c.lost
	if d.If != nil {
		c.lose(d, "if", "%s has no rules on a tool's arguments: without if this hook would be asked about every call", systemNames[c.To])
	}
	if d.When != nil {
		c.lose(d, "when", "%s has no conditions: without when this hook would be asked about every event", systemNames[c.To])
	}
	if d.Shadow {
		c.lose(d, "", "%s has no hooks in shadow: this one, which is only watched, would decide there", systemNames[c.To])
	}
	if d.Activation == gate.OnDemand {
		c.lose(d, "", "%s has no hooks that are switched on by demand", systemNames[c.To])
	}
	for _, name := range []string{"votes", "models", "cache", "threshold", "evidence"} {
		if c.From == gate.Azure && d.Type == gate.PromptHook && d.has(name) {
			c.lose(d, name, "%s judges once, by one model: %s has no equal", systemNames[c.To], name)
		}
	}
	for _, label := range []string{"name", "statusMessage", "pack"} {
		if d.has(label) && d.Type != gate.RuleHook {
			c.differ(d, label, "%s is not kept: hooks of %s have none", label, systemNames[c.To])
		}
	}
	if c.From == gate.Antigravity {
		c.once(d, "names of groups are not kept")
	}
	return c.lost == before
}
