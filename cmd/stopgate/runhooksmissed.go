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
	var about []string
	for i := range hooks {
		if text := r.about(&hooks[i]); !slices.Contains(about, text) {
			about = append(about, text)
		}
	}
	more := ""
	if left := len(about) - maxMissed; left > 0 {
		about, more = about[:maxMissed], fmt.Sprintf(" and %d more", left)
	}
	what := r.Event
	if ev.ToolName != "" {
		what += fmt.Sprintf(" of the tool %.60q", ev.ToolName)
	}
	if ev.Name.ForTool() && ev.ToolName == "" {
		what += fmt.Sprintf(" without a tool (add --tool NAME, as --tool %s)", r.system.tool)
	}
	has := "no hook at all"
	if len(about) > 0 {
		has = strings.Join(about, ", ") + more
	}
	fmt.Fprintf(r.stderr, "no hook is about %s: there is %s in %s\n", what, has, strings.Join(r.loaded, ", "))
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

// about is the event of a hook with what narrows it.
func (r *hookRuntime) about(h *gate.Hook) string {
	text := config.EventName(r.system.dialect, h.Event)
	var narrowed []string
	if m := h.Matcher.String(); m != "" {
		narrowed = append(narrowed, fmt.Sprintf("%.60q", m))
	}
	if h.If != nil {
		narrowed = append(narrowed, fmt.Sprintf("if %.60q", h.If.String()))
	}
	if len(narrowed) > 0 {
		text += " (" + strings.Join(narrowed, " ") + ")"
	}
	return text
}
