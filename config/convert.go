package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stopgate/gate"
)

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

// declared is a hook with the place where it stands.
type declared struct {
	gate.Hook
	node *node
	env  []string // the variables that its settings give to all hooks
	text *hookText
}

// maxVariables is how many variables of the settings are looked for in hooks.
const maxVariables = 256

// read reads the hooks in firing order. What their own system would run and the
// gate leaves out is an error of the report.
func (c Conversion) read(name string, data []byte, f *findings) (hooks []declared, readable bool) {
	if c.From == gate.Azure {
		return c.readAgent(name, data, f)
	}
	docs, err := readDocuments([]byte(strings.TrimPrefix(string(data), "\ufeff")), true, f)
	if err != nil {
		f.list = append(f.list, detailsOf(err)...)
		return nil, false
	}
	var read []gate.Hook
	if c.From == gate.ClaudeCode {
		read = readClaudeCodeEvents(docs[0], f, claudeCodeMoments())
	} else {
		read = readAttached(c.From, docs[0], f)
	}
	if f.errors > 0 {
		return nil, false
	}
	switch c.From {
	case gate.ClaudeCode:
		c.leftBehind("", docs[0], f, "hooks", "disableAllHooks", "$schema")
	case gate.Antigravity:
		for _, g := range docs[0].fields {
			if on := g.value.find("enabled"); on != nil && on.text == "false" {
				f.warnf(g.name, g.pos, "group %q is switched off, and is not written", cut(g.name))
			}
		}
	}
	var env []string
	if set := docs[0].find("env"); c.From == gate.ClaudeCode && set != nil {
		for _, variable := range set.fields[:min(len(set.fields), maxVariables)] {
			env = append(env, variable.name)
		}
	}
	for _, h := range read {
		hooks = append(hooks, declared{Hook: h, node: f.sources[h.Name].node, env: env})
	}
	c.unread(f)
	return hooks, true
}

// unread makes errors of the warnings about hooks that are left out.
func (c Conversion) unread(f *findings) {
	for _, lost := range f.unread {
		for i, w := range f.list {
			if w.Line == lost.Line && w.Column == lost.Column && w.Path == lost.Path && w.Severity == gate.SeverityWarning {
				f.list = slices.Delete(f.list, i, i+1)
				break
			}
		}
		f.add(gate.SeverityError, lost.Path, pos{lost.Line, lost.Column}, lost.Message)
	}
}

// claudeCodeMoments are the events of Claude Code that another system has too,
// also those that the gate is never asked about.
func claudeCodeMoments() map[string]gate.EventName {
	events := maps.Clone(claudeCodeEvents)
	for _, event := range []gate.EventName{gate.SessionEnd, gate.PreCompact, gate.PostCompact} {
		events[string(event)] = event
	}
	return events
}

// readAgent reads one agent of a file of azure: its agent-level hooks, then the
// agent's own, as they fire.
func (c Conversion) readAgent(name string, data []byte, f *findings) (hooks []declared, readable bool) {
	docs, err := readDocuments(data, strings.HasSuffix(strings.ToLower(name), ".json"), f)
	if err != nil {
		f.list = append(f.list, detailsOf(err)...)
		return nil, false
	}
	var globals, own []declared
	agents := 0
	for _, doc := range docs {
		f.sources = nil
		r := resource{findings: f}
		spec := r.read(doc)
		if spec == nil || f.errors > 0 {
			continue
		}
		if spec.Kind == gate.HookSpec {
			for _, h := range spec.Hooks {
				globals = append(globals, declared{Hook: h, node: f.sources[h.Name].node})
			}
			f.warnf("", doc.pos, "agent-level hook %q is asked for every agent, and then for the one that these hooks are given to; its name and description are not kept", spec.Name)
			continue
		}
		if c.Agent != "" && spec.Name != c.Agent {
			f.warnf("", doc.pos, "agent %q is not the one that is converted", spec.Name)
			continue
		}
		if agents++; agents > 1 {
			f.errorf("", doc.pos, "file has several agents: say which is to be converted (--agent NAME)")
		}
		for _, h := range spec.Hooks {
			own = append(own, declared{Hook: h, node: f.sources[h.Name].node})
		}
		if p := r.properties; p != nil {
			if later := p.node.find("deferStopForBackgroundTasks"); later != nil && later.text == "true" {
				f.unreadf(p.child("deferStopForBackgroundTasks"), later.pos, "deferStopForBackgroundTasks has no equal: hooks of %s are asked while tasks still run", systemNames[c.To])
			}
			c.leftBehind(p.path, p.node, f, "hooks", "handoffs", "deferStopForBackgroundTasks")
		}
	}
	if c.Agent != "" && agents == 0 && len(globals) == 0 && f.errors == 0 {
		f.errorf("", pos{1, 1}, "file has no agent %q", cut(c.Agent))
	}
	if f.errors > 0 {
		return nil, false
	}
	c.unread(f)
	return append(globals, own...), true
}

// leftBehind says which members of an object are no hooks; known are those that
// others look at.
func (c Conversion) leftBehind(path string, n *node, f *findings, known ...string) {
	var names []string
	for _, m := range n.fields {
		if !slices.Contains(known, m.name) {
			names = append(names, m.name)
		}
	}
	if len(names) > 0 {
		f.warnf(path, n.pos, "only hooks are converted: %s stay behind", cut(strings.Join(names, ", ")))
	}
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

// saying is what is to be said of a hook.
type saying struct {
	severity gate.Severity
	general  bool
	path     string
	pos      pos
	text     string
}

// sentence is a finding that may hold for several hooks.
type sentence struct {
	at   int // in the findings; -1: they were full
	also []string
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
				v.settle(true)
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

// at is the place of a hook's field, or of the hook where it has none.
func (d *declared) at(field string) (string, pos) {
	if d.node == nil {
		return d.Name, pos{1, 1}
	}
	if v := d.node.find(field); v != nil {
		return d.Name + "." + field, v.pos
	}
	return d.Name, d.node.pos
}

// has reports whether a field was written.
func (d *declared) has(field string) bool { return d.node != nil && d.node.has(field) }

// lose says what cannot be expressed.
func (c *converter) lose(d *declared, field, format string, args ...any) {
	c.lost++
	c.say(gate.SeverityError, d, field, fmt.Sprintf(format, args...))
}

// differ says how the hook behaves otherwise.
func (c *converter) differ(d *declared, field, format string, args ...any) {
	c.say(gate.SeverityWarning, d, field, fmt.Sprintf(format, args...))
}

// once is differ for what holds for every hook of a kind: the first one's place
// stands for all, and the others are not named.
func (c *converter) once(d *declared, format string, args ...any) {
	path, at := d.at("")
	c.pending = append(c.pending, saying{gate.SeverityWarning, true, path, at, fmt.Sprintf(format, args...)})
}

func (c *converter) say(severity gate.Severity, d *declared, field, text string) {
	path, at := d.at(field)
	c.pending = append(c.pending, saying{severity, false, path, at, text})
}

// settle says what was put off. How a hook would behave that is not written is of
// no use beside the reason for that.
func (c *converter) settle(written bool) {
	lost := slices.ContainsFunc(c.pending, func(s saying) bool { return s.severity == gate.SeverityError })
	for _, s := range c.pending {
		if s.severity == gate.SeverityWarning && lost && !written {
			continue
		}
		key := string(s.severity) + s.text
		if before := c.said[key]; before != nil {
			if !s.general {
				before.also = append(before.also, s.path)
			}
			continue
		}
		into := c.findings
		if s.general {
			into = c.general
		}
		at := len(into.list)
		if into.add(s.severity, s.path, s.pos, s.text); len(into.list) == at {
			at = -1
		}
		if s.general {
			at = -1 // nobody is named behind it
		}
		c.said[key] = &sentence{at: at}
	}
	c.pending = c.pending[:0]
}

// maxNamed is how many more hooks a finding names.
const maxNamed = 5

// nameAll puts the other hooks that a finding is about behind it.
func (c *converter) nameAll() {
	for _, s := range c.said {
		if s.at < 0 || len(s.also) == 0 {
			continue
		}
		names := s.also[:min(len(s.also), maxNamed)]
		for i := range names {
			names[i] = cut(names[i])
		}
		more := ""
		if left := len(s.also) - len(names); left > 0 {
			more = fmt.Sprintf(" and %d more", left)
		}
		c.list[s.at].Message += fmt.Sprintf(" (also %s%s)", strings.Join(names, ", "), more)
	}
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
	if !c.matcher(d, &h) || !c.own(d) {
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
