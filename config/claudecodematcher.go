package config

import (
	"fmt"
	"slices"
	"strings"

	"stopgate/gate"
)

// claudeCodeTools are tools of Claude Code, to say what a matcher is about.
var claudeCodeTools = []string{"Agent", "AskUserQuestion", "Bash", "BashOutput", "Edit", "ExitPlanMode", "Glob", "Grep", "KillShell", "LS", "MultiEdit",
	"NotebookEdit", "NotebookRead", "Read", "Skill", "Task", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Write"}

// matcher: spec/claude-code.md 2. On a tool event it is about the tool's name, on
// SessionStart about how the session starts, on SubagentStop about the
// sub-agent's type; elsewhere it counts for nothing.
func (r *claudeCodeReader) matcher(o *object, event gate.EventName) gate.Matcher {
	all, _ := gate.CompileClaudeCodeMatcher("")
	n, path := o.node.find("matcher"), o.child("matcher")
	o.value("matcher")
	if n == nil {
		return all
	}
	pattern := n.text
	switch {
	case n.kind != textKind: // null too
		r.errorf(path, n.pos, "matcher is %s, want text", n.describe())
		return all
	case !event.ForTool() && event != gate.Start && event != gate.SubagentStop && event.Known():
		if pattern != "" && pattern != "*" {
			r.warnf(path, n.pos, "matcher has no effect on %s: the hooks run on every %[1]s", event)
		}
		return all
	case len(pattern) > maxMatcherBytes:
		r.widen(path, n.pos, "every tool", fmt.Errorf("matcher is %d bytes long, want at most %d", len(pattern), maxMatcherBytes))
		return all
	}
	m, err := gate.CompileClaudeCodeMatcher(pattern)
	if err != nil {
		r.widen(path, n.pos, "everything on the event", fmt.Errorf("%w; Claude Code may run it, the gate cannot%s", err, ruleHint(pattern)))
		return all
	}
	if event.ForTool() {
		r.reach(m, path, n.pos)
	}
	return m
}

// reach warns where a matcher is about other tools than it seems.
func (r *claudeCodeReader) reach(m gate.Matcher, path string, at pos) {
	pattern := m.String()
	if pattern == "" || pattern == "*" || r.full() {
		return
	}
	names := m.Names()
	if names == nil {
		if hint := ruleHint(pattern); hint != "" && !slices.ContainsFunc(claudeCodeTools, m.Match) {
			r.warnf(path, at, "matcher %q matches nothing%s", cut(pattern), hint)
			return
		}
		r.anywhere(m, path, at)
		return
	}
	if len(names) == 0 {
		r.warnf(path, at, "matcher %q names nothing: its hooks are never asked", cut(pattern))
	}
	for _, name := range names {
		server, ofServer := strings.CutPrefix(name, "mcp__")
		if ofServer && server != "" && !strings.Contains(server, "__") {
			r.warnf(path, at, "matcher %q matches nothing, since a server's tools have longer names: write %q for all of them", cut(name), cut(name)+"__.*")
			continue
		}
		for _, tool := range claudeCodeTools {
			if tool != name && strings.EqualFold(tool, name) {
				r.warnf(path, at, "matcher %q matches nothing, since case counts: did you mean %q?", cut(name), tool)
			}
		}
	}
}

// ruleHint says what a matcher is to be that is written as a rule on a tool's
// arguments; empty: it is none.
func ruleHint(pattern string) string {
	tool, _, open := strings.Cut(pattern, "(")
	if !open || !strings.HasSuffix(pattern, ")") || !slices.Contains(claudeCodeTools, tool) {
		return ""
	}
	return fmt.Sprintf(", since matchers are names of tools, and rules stand in the hook: write the matcher %q, and %q: %q beside the command", tool, "if", cut(pattern))
}

// contradicts reports whether a rule is about a tool of Claude Code that the
// matcher is not about, while it is about others. Names of other hosts' tools,
// which stand for Claude Code's behind these, contradict nothing.
func contradicts(rule string, m gate.Matcher) (tool string, ok bool) {
	tool, _, _ = strings.Cut(strings.TrimSpace(rule), "(")
	tool = strings.TrimSpace(tool)
	return tool, slices.Contains(claudeCodeTools, tool) && !m.Match(tool) && slices.ContainsFunc(claudeCodeTools, m.Match)
}

// anywhere warns of tools in whose name a regular expression matches only a
// part.
func (r *claudeCodeReader) anywhere(m gate.Matcher, path string, at pos) {
	whole, err := gate.CompileMatcher(m.String())
	if err != nil {
		return // it is as long as may be, and was compiled before
	}
	var part []string
	for _, tool := range claudeCodeTools {
		if m.Match(tool) && !whole.Match(tool) {
			part = append(part, tool)
		}
	}
	if len(part) > 0 && !strings.HasPrefix(m.String(), "^") {
		r.warnf(path, at, "matcher %q is a regular expression, which may match anywhere in a name: it is about %s too; write ^(?:…)$ for whole names",
			cut(m.String()), strings.Join(part, ", "))
	}
}
