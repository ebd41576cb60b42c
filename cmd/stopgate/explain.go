package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"stopgate/gate"
	"stopgate/wire"
)

// explanation is what a hook does, in the words of the hosts it may gate.
type explanation struct {
	Agent    string         `json:"agent,omitempty"` // empty: an agent-level hook, which is asked for every agent
	Hook     string         `json:"hook"`
	Type     gate.HookType  `json:"type"`
	Event    gate.EventName `json:"event"`
	Matcher  string         `json:"matcher,omitempty"`
	Timeout  float64        `json:"timeout_s"`
	FailMode gate.FailMode  `json:"fail_mode"`
	// MaxRejections is the cap of prompt hooks on Stop; 0: it has none.
	MaxRejections int `json:"max_rejections,omitempty"`
	// Tools are the known tools of each host that the matcher matches, by the
	// host's own name or by its alias (DESIGN §7).
	Tools []hostTools `json:"tools,omitempty"`
}

type hostTools struct {
	Host  string   `json:"host"`
	Tools []string `json:"tools"`
}

func explain(files []specFile) []explanation {
	all := []explanation{}
	for _, f := range files {
		for _, s := range f.usable() {
			if s.Kind != gate.AgentSpec && s.Kind != gate.HookSpec {
				continue // by their own system's names of tools, which are in the file
			}
			for i := range s.Hooks {
				all = append(all, explainHook(s, &s.Hooks[i]))
			}
		}
	}
	return all
}

func explainHook(s *gate.Spec, h *gate.Hook) explanation {
	x := explanation{Hook: h.Name, Type: h.Type, Event: h.Event, Timeout: h.Timeout.Seconds(), FailMode: h.FailMode}
	if s.Kind == gate.AgentSpec {
		x.Agent = s.Name
	}
	if h.Type == gate.PromptHook && h.Event == gate.Stop {
		if x.MaxRejections = h.MaxRejections; x.MaxRejections == 0 {
			x.MaxRejections = gate.DefaultMaxRejections
		}
	}
	if h.Event.ForTool() {
		x.Matcher, x.Tools = h.Matcher.String(), matchedTools(h.Matcher)
	}
	return x
}

// matchedTools are the known tools of each host that a matcher is about.
func matchedTools(m gate.Matcher) []hostTools {
	var all []hostTools
	for _, host := range wire.Names() {
		var names []string
		for _, t := range wire.Tools() {
			own := t.Hosts[host]
			if host == "claude-code" {
				own = append([]string{t.Name}, own...)
			}
			for _, name := range own {
				if (m.Match(name) || slices.ContainsFunc(wire.Aliases(host, name), m.Match)) && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		if len(names) > 0 {
			all = append(all, hostTools{host, names})
		}
	}
	return all
}

// printExplanations writes them for a person.
func printExplanations(w io.Writer, all []explanation) {
	for _, x := range all {
		whose := "every agent"
		if x.Agent != "" {
			whose = "agent " + x.Agent
		}
		fmt.Fprintf(w, "%s: %s asks %s hook %s", whose, x.Event, x.Type, x.Hook)
		if x.Matcher != "" {
			fmt.Fprintf(w, " about tools %q", x.Matcher)
		}
		fmt.Fprintf(w, "; without a verdict within %g s: %s", x.Timeout, x.FailMode)
		switch {
		case x.MaxRejections == 1:
			fmt.Fprint(w, "; at most 1 rejection")
		case x.MaxRejections > 1:
			fmt.Fprintf(w, "; at most %d rejections", x.MaxRejections)
		}
		fmt.Fprintln(w)
		for _, t := range x.Tools {
			fmt.Fprintf(w, "    %-12s %s\n", t.Host, strings.Join(t.Tools, ", "))
		}
		if x.Matcher != "" && len(x.Tools) == 0 {
			fmt.Fprintln(w, "    no tool of a known host by that name: an MCP tool or one of your own, or a slip")
		}
	}
}
