package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stopgate/config"
	"stopgate/gate"
)

// maxMissed is how many of a file's events and matchers are named.
const maxMissed = 20

// sayMissed says that no hook of the files that were loaded is about an event,
// and what they are about: silence looks like a hook that had no objection.
func (r *hookRuntime) sayMissed(ev gate.Event, hooks []gate.Hook) {
	if len(r.loaded) == 0 {
		return // which was said
	}
	what := r.Event
	if ev.ToolName != "" {
		what += fmt.Sprintf(" of the tool %.60q", ev.ToolName)
	}
	if ev.Name.ForTool() && ev.ToolName == "" {
		what += fmt.Sprintf(" without a tool (add --tool NAME, as --tool %s)", r.system.tool)
	}
	has := listed(hooks, func(h *gate.Hook) string { return config.EventName(r.system.dialect, h.Event) })
	fmt.Fprintf(r.stderr, "no hook is about %s: there is %s in %s\n", what, has, strings.Join(r.loaded, ", "))
}

// listed names hooks, each once, with what narrows what they are about.
func listed(hooks []gate.Hook, name func(*gate.Hook) string) string {
	var about []string
	for i := range hooks {
		if text := name(&hooks[i]) + narrowing(&hooks[i]); !slices.Contains(about, text) {
			about = append(about, text)
		}
	}
	if len(about) == 0 {
		return "no hook at all"
	}
	more := ""
	if left := len(about) - maxMissed; left > 0 {
		about, more = about[:maxMissed], fmt.Sprintf(" and %d more", left)
	}
	return strings.Join(about, ", ") + more
}

// narrowing is what a hook's matcher and rule say; "" if it has none.
func narrowing(h *gate.Hook) string {
	var narrowed []string
	if m := h.Matcher.String(); m != "" {
		narrowed = append(narrowed, fmt.Sprintf("%.60q", m))
	} else if h.Event.ForTool() && !h.Matcher.Match("AnyTool") {
		narrowed = append(narrowed, "without a matcher, so about no tool")
	}
	if h.If != nil {
		narrowed = append(narrowed, fmt.Sprintf("if %.60q", h.If.String()))
	}
	if len(narrowed) == 0 {
		return ""
	}
	return " (" + strings.Join(narrowed, " ") + ")"
}

// sayFindings says what is wrong with a file: errors, and what this run makes of it,
// in full, but of the warnings that stopgate validate has too only how many there are.
func (r *hookRuntime) sayFindings(path string, data []byte, found []gate.Finding) {
	_, known := config.ReadHooks(r.system.dialect, path, data)
	warned := 0
	told := slices.DeleteFunc(slices.Clone(found), func(f gate.Finding) bool {
		told := f.Severity == gate.SeverityWarning && slices.Contains(known, f)
		if told {
			warned++
		}
		return told
	})
	printFindings(r.stderr, []specFile{{path: path, findings: told}})
	if warned > 0 {
		fmt.Fprintf(r.stderr, "%s: warnings: %d (stopgate validate says them)\n", path, warned)
	}
}

// sayUnshownProject warns where a server with the server file would show hooks
// nothing of the project, which they see here.
func (r *hookRuntime) sayUnshownProject(s config.Sandbox) {
	shown := slices.ContainsFunc(s.WorkspaceRoots, func(dir string) bool {
		real, err := filepath.EvalSymlinks(dir)
		return err == nil && inside(real, r.root)
	})
	switch {
	case r.Config == "":
	case s.Workspace == config.WorkspaceNone:
		fmt.Fprintf(r.stderr, "warning: hooks see --root here, and on a server with %s they do not: its sandbox.workspace is none\n", r.Config)
	case !shown:
		fmt.Fprintf(r.stderr, "warning: hooks see --root here, and on a server with %s they do not: none of its sandbox.workspace_roots is above %s\n", r.Config, r.root)
	}
}
