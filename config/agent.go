package config

import (
	"fmt"
	"strings"

	"stopgate/gate"
)

// hookEvents are the events that a hook can be bound to (spec/azure.md 8).
var hookEvents = []string{string(gate.Start), string(gate.Stop), string(gate.PreToolUse), string(gate.PostToolUse)}

// maxHooks is how many hooks one event of an agent may have. Each is asked at
// every such event; nobody is known to have ten.
const maxHooks = 100

// agent reads the properties of an ExtendedAgent (spec/azure.md 5). Only hooks
// mean something here; the other fields are checked for their type and kept.
func (r *resource) agent(spec *gate.Spec) {
	p := r.properties
	for _, name := range []string{"instructions", "handoffDescription", "customReflectionNote", "agentType", "model"} {
		p.text(name)
	}
	for _, name := range []string{"tools", "mcpTools", "allowedSkills", "commonPrompts"} {
		p.list(name)
	}
	for _, name := range []string{"allowParallelToolCalls", "enableSkills", "enableVanillaMode"} {
		p.flag(name)
	}
	p.ours("deferStopForBackgroundTasks", "mode")
	spec.DeferForBackground = p.flag("deferStopForBackgroundTasks") // ours (spec/claude-code.md 11)
	spec.Shadow = readShadow(p)
	p.typed("temperature", numberKind, "a number")
	p.typed("maxReflectionCount", numberKind, "a number")
	r.handoffs()
	if hooks := p.object("hooks"); hooks != nil {
		r.inlineHooks(hooks, spec)
	}
}

// handoffs may be absent, which is stored as [], but not null (spec/azure.md
// 6).
func (r *resource) handoffs() {
	p := r.properties
	switch n := p.node.find("handoffs"); {
	case n == nil:
		p.node.fields = append(p.node.fields, field{name: "handoffs", value: &node{kind: listKind}})
	case n.kind == nullKind:
		r.errorf(p.child("handoffs"), n.pos, "Handoffs cannot be null")
	}
	p.list("handoffs")
}

// inlineHooks reads the agent's own hooks, per event in declared order. One
// without a name is called after its place, as "Stop[0]".
func (r *resource) inlineHooks(hooks *object, spec *gate.Spec) {
	names := map[string]bool{}
	for _, event := range hookEvents {
		list := hooks.list(event)
		if len(list) > maxHooks {
			r.errorf(hooks.child(event), hooks.value(event).pos, "%s has %d hooks, want at most %d", event, len(list), maxHooks)
			continue
		}
		for i, n := range list {
			place := fmt.Sprintf("%s[%d]", event, i)
			if n.kind != objectKind {
				r.errorf(hooks.child(place), n.pos, "hook %s is %s, want an object", place, n.describe())
				continue
			}
			o := &object{findings: r.findings, path: hooks.child(place), node: n}
			h := readHook(o, gate.EventName(event), gate.CustomLevel)
			h.Name = place
			if o.value("name") != nil {
				h.Name = readName(o, "hook")
				if names[h.Name] {
					r.errorf(o.child("name"), o.value("name").pos, "hook name %q is used twice in this agent", cut(h.Name))
				}
				names[h.Name] = true
			}
			if n := o.value("mode"); n != nil && spec.Shadow && !h.Shadow {
				r.warnf(o.child("mode"), n.pos, "mode enforce has no effect here: the agent is in mode shadow, and so are all its own hooks")
			}
			h.Shadow = h.Shadow || spec.Shadow
			o.unknown(false)
			r.source(h.Name, o.path, n)
			spec.Hooks = append(spec.Hooks, h)
		}
	}
	for _, f := range hooks.rest() {
		hint := DidYouMean(f.name, hookEvents)
		if f.name == EventName(gate.ClaudeCode, gate.Start) { // as every other system calls it
			hint = DidYouMean(string(gate.Start), hookEvents)
		}
		r.errorf(hooks.child(f.name), f.pos, "hooks has no event %q, want one of %s%s", cut(f.name), strings.Join(hookEvents, ", "), hint)
	}
}

// globalHook reads the properties of a GlobalHook (spec/azure.md 8).
func (r *resource) globalHook(spec *gate.Spec) {
	p := r.properties
	event := p.oneOf("eventType", hookEvents...)
	if p.value("eventType") == nil {
		r.errorf(p.child("eventType"), p.node.pos, "eventType is missing, want one of %s", strings.Join(hookEvents, ", "))
	}
	activation := r.activation()
	spec.Description = p.text("description")
	o := p.object("hook")
	if o == nil {
		if p.value("hook") == nil {
			r.errorf(p.child("hook"), p.node.pos, "hook is missing, want an object")
		}
		return
	}
	h := readHook(o, gate.EventName(event), gate.AgentLevel)
	h.Name, h.Activation = spec.Name, activation
	r.source(h.Name, o.path, o.node)
	o.unknown(false)
	spec.Hooks = []gate.Hook{h}
}

// activation is always unless said otherwise; the alias on-demand is stored as
// onDemand (spec/azure.md 8).
func (r *resource) activation() gate.Activation {
	if n := r.properties.value("activationMode"); n != nil && n.kind == textKind && n.text == "on-demand" {
		n.text = string(gate.OnDemand)
	}
	if r.properties.oneOf("activationMode", string(gate.Always), string(gate.OnDemand)) == string(gate.OnDemand) {
		return gate.OnDemand
	}
	return gate.Always
}
