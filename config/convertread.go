package config

import (
	"maps"
	"slices"
	"strings"

	"stopgate/gate"
)

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
