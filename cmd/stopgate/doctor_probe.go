package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stopgate/cmd/internal/hookclient"
	"stopgate/gate"
	"stopgate/wire"
	"stopgate/wire/contracts"
	"stopgate/wire/install"
)

// probeWait is the longest that the doctor waits for an answer. A gate asks no
// hook for a probe, so that it answers at once.
const probeWait = 30 * time.Second

// probe sends a probe through every entry of a host, and looks for hooks that
// no entry leads to (fault agents-01).
func (d *doctor) probe(pt patient) {
	for _, e := range pt.entries {
		event, ok := pt.host.Contract.Find(e.Event)
		if !ok || e.HTTP() && !event.HTTP {
			continue // said already: the host does not run it
		}
		if event.Name != gate.Stop && !e.Local && !d.serverAt(orServer(e.Server, serverURL(d.getenv))).reachable {
			continue // said already, and one frozen server is waited for once
		}
		d.probeEntry(pt.host, e, event)
	}
	d.unasked(pt)
}

// probed is what a probe is about.
type probed struct {
	host  install.Host
	event contracts.Event
	agent string // that the entry asks
	tool  string // of a tool's event
	// blocks: the agent has a hook on it, so the answer must be a block. Else
	// it is no objection; where the doctor knows no hooks, it may be either.
	blocks bool
}

// aim chooses what an entry is probed with: of the agent's hooks one that the
// host can get to by it.
func (d *doctor) aim(host install.Host, e install.Entry, event contracts.Event) probed {
	p := probed{host: host, event: event, agent: e.Agent}
	agent := d.agent(e)
	switch {
	case event.Name == gate.Stop:
		p.blocks = !agent.known || len(agent.hooks) == 0 || agent.asked(host, e, gate.Stop)
	case event.Name == gate.SubagentStop, event.Name == gate.UserPromptSubmit:
		p.blocks = agent.asked(host, e, event.Name)
	case event.Name.ForTool():
		for _, h := range agent.hooks {
			if tool := passing(host, e, about(host, h, event.Name)); tool != "" {
				p.tool, p.blocks = tool, true
				return p
			}
		}
		own := wire.OwnTools(host.Name)
		p.tool = cmp.Or(passing(host, e, own), own[0])
	}
	return p
}

// asked reports whether the agent has a hook that is about an event without a
// tool. A sub-agent's stop is judged by the spec named like it, as a Stop
// (spec/claude-code.md 12); the probe's has the agent's own name.
func (a *gatedAgent) asked(host install.Host, e install.Entry, event gate.EventName) bool {
	ev := gate.Event{Name: event, Protocol: host.Name, Agent: e.Agent}
	if event == gate.SubagentStop {
		ev.AgentType = e.Agent
	}
	return slices.ContainsFunc(a.hooks, func(h gate.Hook) bool {
		return h.Concerns(&ev) && (a.own || event != gate.SubagentStop || h.Dialect != gate.Azure)
	})
}

// about are the host's tools that a hook is about on an event. Where stopgate
// knows none, as MCP servers bring their own, the names are those in the matcher
// itself.
func about(host install.Host, h gate.Hook, event gate.EventName) []string {
	concerned := func(tool string) bool { return h.Concerns(toolCall(host, event, tool)) }
	tools := slices.DeleteFunc(wire.OwnTools(host.Name), func(tool string) bool { return !concerned(tool) })
	if len(tools) > 0 {
		return tools
	}
	return slices.DeleteFunc(strings.Split(h.Matcher.String(), "|"), func(name string) bool { return !concerned(name) })
}

// passing is the first of the tools for which the host runs an entry.
func passing(host install.Host, e install.Entry, tools []string) string {
	if i := slices.IndexFunc(tools, func(tool string) bool { return host.Runs(e, tool) }); i >= 0 {
		return tools[i]
	}
	return ""
}

// unasked reports the hooks of each agent, but those on Stop, that no entry
// leads to: there is none on their event, or its matcher keeps their tools out.
func (d *doctor) unasked(pt patient) {
	var seen []*gatedAgent
	for _, e := range pt.entries {
		agent := d.agent(e)
		if !agent.known || slices.Contains(seen, agent) {
			continue
		}
		seen = append(seen, agent)
		without := map[gate.EventName]bool{}
		for _, h := range agent.hooks {
			if h.Event == gate.Stop {
				if agent.own {
					d.needEntry(pt, e.Agent, agent, gate.SubagentStop, without)
				}
				continue
			}
			if entries := d.needEntry(pt, e.Agent, agent, h.Event, without); h.Event.ForTool() && len(entries) > 0 {
				d.needMatcher(pt.host, e.Agent, h, entries)
			}
		}
	}
}

// needEntry gives the entries by which a host asks an agent on an event. Where
// the host has the event and there is none, it says so, once.
func (d *doctor) needEntry(pt patient, name string, agent *gatedAgent, on gate.EventName, said map[gate.EventName]bool) []install.Entry {
	entries := slices.DeleteFunc(slices.Clone(pt.entries), func(e install.Entry) bool {
		event, ok := pt.host.Contract.Find(e.Event)
		return !ok || event.Name != on || d.agent(e) != agent
	})
	if event, ok := pt.host.Event(on); ok && len(entries) == 0 && !said[on] {
		said[on] = true
		d.say(pt.host.Name, gate.SeverityError, pt.host.File(d.places, install.Project), fmt.Sprintf("no entry on %s: agent %q has hooks for it, and nothing asks them", event.Host, name),
			"run stopgate init "+pt.host.Name+" --agent "+name)
	}
	return entries
}

// needMatcher reports a hook whose tools the matchers of all the entries keep
// out. Of a pattern that names no tool nobody can say it.
func (d *doctor) needMatcher(host install.Host, agent string, h gate.Hook, entries []install.Entry) {
	tools := about(host, h, h.Event)
	if len(tools) == 0 || slices.ContainsFunc(entries, func(e install.Entry) bool { return passing(host, e, tools) != "" }) {
		return
	}
	e := entries[0]
	d.say(host.Name, gate.SeverityError, fmt.Sprintf("%s:%d", e.File, e.Line),
		fmt.Sprintf("matcher %q beside the entry on %s keeps out every tool that %s of agent %q is about", e.Matcher, e.Event, h.Name, agent),
		"take the matcher out: the agent's own hooks have theirs")
}

// agent is what is known of the agent that an entry asks.
func (d *doctor) agent(e install.Entry) *gatedAgent {
	if e.Local {
		return &gatedAgent{}
	}
	return d.agentOf(orServer(e.Server, serverURL(d.getenv)), e.Agent)
}

// runnable reports whether an entry's command may be run: of a project, whose
// files anybody may have written, only one call of a stopgate of the user's.
func (d *doctor) runnable(e install.Entry) bool {
	if e.Scope != install.Project || d.trusting {
		return true
	}
	if e.Local || e.Own { // a project's server file says where data lies and what is deleted
		return false
	}
	program, err := exec.LookPath(e.Program)
	if errors.Is(err, exec.ErrDot) { // the project's own, by a relative directory on PATH
		return false
	}
	if err != nil {
		return e.Plain && ourName(e.Program) // it runs nothing, and the host's shell says so too
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return false
	}
	self, err := os.Executable()
	known := ourName(e.Program) || err == nil && sameFile(program, self)
	return e.Plain && known && filepath.IsAbs(program) && !inside(repository(d.places.Project), program)
}

// ourName reports whether a program has the name of one of ours.
func ourName(program string) bool {
	name := filepath.Base(program)
	return name == "stopgate" || name == hookclient.Name
}

// repository is the directory that holds the project's history, whose authors
// wrote all of it; else the project itself.
func repository(project string) string {
	for dir := project; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return project
		}
	}
}

// probeEntry plays the host for one entry.
func (d *doctor) probeEntry(host install.Host, e install.Entry, event contracts.Event) {
	place := fmt.Sprintf("%s:%d", e.File, e.Line)
	if !e.HTTP() && !d.runnable(e) {
		d.say(host.Name, gate.SeverityError, place, "not probed: the project's command does more than call a stopgate outside the project: "+shortened([]byte(e.Command)),
			"read it; if you trust it: stopgate doctor "+host.Name+" --trust-project")
		return
	}
	p := d.aim(host, e, event)
	p.blocks = p.blocks && event.Answers.Block != "" // what a host only watches it cannot block
	mark := "probe-" + strings.ToLower(rand.Text())
	payload := p.payload(d.places.Project, mark)
	wait := probeWait
	if e.Timeout > 0 {
		wait = min(wait, e.Timeout)
	}
	ctx, cancel := context.WithTimeout(d.ctx, wait)
	defer cancel()
	var answer []byte
	var err error
	if e.HTTP() {
		answer, err = d.call(ctx, host, e, payload)
	} else {
		answer, err = d.runEntry(p, e, payload, mark, wait)
	}
	if err == nil {
		err = d.judgeAnswer(p, e, answer, mark)
	}
	must, was := "not answered", "answered without an objection"
	if p.blocks {
		must, was = "not blocked", "blocked, as the host would take it"
	}
	if err != nil {
		d.say(host.Name, gate.SeverityError, place, fmt.Sprintf("a probe on %s is %s: %v", e.Event, must, err),
			"mend what the other findings name, or run stopgate init "+host.Name+" again")
		return
	}
	d.say(host.Name, severityOK, place, fmt.Sprintf("a probe on %s is %s", e.Event, was), "")
}

// judgeAnswer says why an answer is not the one that it must be.
func (d *doctor) judgeAnswer(p probed, e install.Entry, answer []byte, mark string) error {
	err := install.Blocks(p.event, answer, mark)
	if err == nil {
		return nil
	}
	if base := d.unreached(e); base != "" {
		return fmt.Errorf("the hook could not reach the server at %s, and nobody was asked", base)
	}
	if !p.blocks {
		err = install.Unobjected(p.event, answer)
	}
	if err != nil && len(answer) > 0 {
		return fmt.Errorf("%w: %s", err, shortened(answer))
	}
	return err
}

// unreached is the server that a command's entry asks, where the doctor could
// not reach it either: the command then answers by --on-unreachable.
func (d *doctor) unreached(e install.Entry) string {
	if e.HTTP() || e.Local {
		return ""
	}
	if s := d.serverAt(orServer(e.Server, serverURL(d.getenv))); !s.reachable {
		return s.client.Base
	}
	return ""
}
