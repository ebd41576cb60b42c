package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"stopgate/gate"
	"stopgate/wire"
)

// explanation is what a hook does, in the words of the hosts it may gate.
type explanation struct {
	Agent    string         `json:"agent,omitempty"` // empty: an agent-level hook, which is asked for every agent, or one of a hooks file
	Dialect  gate.Dialect   `json:"dialect"`
	Hook     string         `json:"hook"`
	Type     gate.HookType  `json:"type"`
	Event    gate.EventName `json:"event"`
	Matcher  string         `json:"matcher,omitempty"`
	Timeout  float64        `json:"timeout_s"`
	FailMode gate.FailMode  `json:"fail_mode"`
	Shadow   bool           `json:"shadow,omitempty"`
	// MaxRejections is the cap that is in force for a hook on Stop, with the other hooks
	// of the files that take part in its loop; 0: it has none.
	MaxRejections int `json:"max_rejections,omitempty"`
	ownCap        int // that its spec sets; 0: none
	// If is claude-code's rule on the arguments, which narrows it further.
	If string `json:"if,omitempty"`
	// Tools are the known tools of each host that the hook is about by its
	// dialect's rules, the host's own names or their aliases (DESIGN §7).
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
			for i := range s.Hooks {
				x := explainHook(s, &s.Hooks[i])
				x.MaxRejections = s.Hooks[i].RejectionCap(loopOf(files, s, &s.Hooks[i]))
				all = append(all, x)
			}
		}
	}
	return all
}

// loopOf are the hooks that take part in the loop of one: those of its spec, and the
// agent-level ones that need not be switched on first.
func loopOf(files []specFile, of *gate.Spec, h *gate.Hook) (all []*gate.Hook) {
	for _, f := range files {
		for _, s := range f.usable() {
			for i := range s.Hooks {
				o := &s.Hooks[i]
				if o == h || s == of || s.Kind == gate.HookSpec && o.Activation != gate.OnDemand {
					all = append(all, o)
				}
			}
		}
	}
	return all
}

func explainHook(s *gate.Spec, h *gate.Hook) explanation {
	x := explanation{Dialect: h.Dialect, Hook: h.Name, Type: h.Type, Event: h.Event, Timeout: h.Timeout.Seconds(), FailMode: h.FailMode, Shadow: h.Shadow, ownCap: h.MaxRejections}
	if s.Kind == gate.AgentSpec {
		x.Agent = s.Name
	}
	if h.Event.ForTool() {
		x.Matcher, x.Tools = cmp.Or(h.Matcher.String(), everything(h)), matchedTools(h)
	}
	if h.If != nil {
		x.If = h.If.String()
	}
	return x
}

// everything is "*" for a matcher that is empty and matches every tool, as
// those of azure do not.
func everything(h *gate.Hook) string {
	if h.Dialect != gate.Azure && h.Matcher.Match("") {
		return "*"
	}
	return ""
}

// matchedTools are the known tools of each host that a hook is about.
func matchedTools(h *gate.Hook) []hostTools {
	var all []hostTools
	for _, host := range wire.Names() {
		var names []string
		for _, name := range explainedTools(host) {
			call := gate.Event{Name: h.Event, Protocol: host, ToolName: name, ToolAliases: wire.Aliases(host, name), ToolSucceeded: h.Event != gate.PostToolUseFailure}
			if h.Concerns(&call) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			all = append(all, hostTools{host, names})
		}
	}
	return all
}

// explainedTools are a host's own names of the tools that hosts share, and of
// those that it alone has.
func explainedTools(host string) []string {
	var names, shared []string
	for _, t := range wire.Tools() {
		if host == "claude-code" {
			names = append(names, t.Name)
		}
		names = append(names, t.Hosts[host]...)
		shared = append(shared, t.Name)
	}
	for _, name := range wire.KnownTools(host) {
		if !slices.Contains(names, name) && !slices.Contains(shared, name) {
			names = append(names, name)
		}
	}
	return names
}

// printExplanations writes them for a person.
func printExplanations(w io.Writer, all []explanation) {
	for _, x := range all {
		whose := "every agent"
		switch {
		case x.Agent != "":
			whose = "agent " + x.Agent
		case x.Dialect != gate.Azure:
			whose = string(x.Dialect)
		}
		fmt.Fprintf(w, "%s: %s asks %s hook %s", whose, x.Event, x.Type, x.Hook)
		if x.Matcher != "" {
			fmt.Fprintf(w, " about tools %q", x.Matcher)
		}
		if x.If != "" {
			fmt.Fprintf(w, " if %q", x.If)
		}
		fmt.Fprintf(w, "; without a verdict within %g s: %s", x.Timeout, x.FailMode)
		switch {
		case x.MaxRejections == 1:
			fmt.Fprint(w, "; at most 1 rejection")
		case x.MaxRejections > 1:
			fmt.Fprintf(w, "; at most %d rejections", x.MaxRejections)
		}
		if x.MaxRejections > 0 && x.ownCap > 0 && x.ownCap != x.MaxRejections {
			fmt.Fprintf(w, ", though it says %d: the largest of a loop counts", x.ownCap)
		}
		if x.Shadow {
			fmt.Fprint(w, "; in shadow: recorded, never heeded")
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
