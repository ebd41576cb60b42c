package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"stopgate/gate"
)

// claudeCodeEvents are the events of Claude Code that the gate is asked about,
// by Claude Code's names.
var claudeCodeEvents = map[string]gate.EventName{
	"SessionStart": gate.Start, "UserPromptSubmit": gate.UserPromptSubmit, "PreToolUse": gate.PreToolUse, "PostToolUse": gate.PostToolUse,
	"PostToolUseFailure": gate.PostToolUseFailure, "Stop": gate.Stop, "SubagentStop": gate.SubagentStop,
}

// claudeCodeUnseen are events that Claude Code has and no gate is asked about.
var claudeCodeUnseen = []string{"ConfigChange", "CwdChanged", "Elicitation", "ElicitationResult", "FileChanged", "InstructionsLoaded", "MessageDisplay",
	"Notification", "PermissionDenied", "PermissionRequest", "PostCompact", "PostToolBatch", "PreCompact", "SessionEnd", "Setup", "StopFailure",
	"SubagentStart", "TaskCompleted", "TaskCreated", "TeammateIdle", "UserPromptExpansion", "WorktreeCreate", "WorktreeRemove"}

// claudeCodeReader reads the hooks of a settings.json.
type claudeCodeReader struct {
	*findings
	hooks  []gate.Hook
	events map[string]gate.EventName // that hooks are read of
	ours   int                       // errors of which Claude Code knows nothing
	// played: what the gate cannot take costs no more than the hook that has it;
	// left: that was so of the hook that is being read.
	played, left bool
}

// readClaudeCode reads the hooks of a settings.json, or of a file that holds
// nothing else; its other members are not the gate's (spec/claude-code.md 1, 2).
func readClaudeCode(n *node, f *findings) []gate.Hook {
	return readClaudeCodeEvents(n, f, claudeCodeEvents)
}

func readClaudeCodeEvents(n *node, f *findings, known map[string]gate.EventName) []gate.Hook {
	r := &claudeCodeReader{findings: f, events: known}
	r.read(n)
	return r.hooks
}

func (r *claudeCodeReader) read(n *node) {
	before := r.errors
	if n.kind != objectKind {
		r.errorf("", n.pos, "settings are %s, want an object", n.describe())
	} else {
		r.settings(&object{findings: r.findings, node: n})
	}
	if r.errors-before > r.ours {
		r.errorf("", n.pos, "Claude Code skips this file whole: none of its hooks is asked")
	}
}

// refuse is an error in what Claude Code itself takes.
func (r *claudeCodeReader) refuse(path string, at pos, format string, args ...any) {
	r.errorf(path, at, format, args...)
	r.ours++
}

// refuseHook refuses what one hook has. Where hooks are played that one alone is
// left out.
func (r *claudeCodeReader) refuseHook(path string, at pos, format string, args ...any) {
	if !r.played {
		r.refuse(path, at, format, args...)
		return
	}
	r.warnf(path, at, "%s: this hook is left out here, and Claude Code may run it", fmt.Sprintf(format, args...))
	r.left = true
}

// widen says that a hook is asked more often than Claude Code would, where hooks
// are played; else what it cannot be told from is an error.
func (r *claudeCodeReader) widen(path string, at pos, asked string, err error) {
	if !r.played {
		r.refuse(path, at, "%s", err)
		return
	}
	r.warnf(path, at, "%s: the hook is asked about %s", err, asked)
}

func (r *claudeCodeReader) settings(o *object) {
	events := o.object("hooks")
	if events == nil && !o.node.has("hooks") {
		r.missing(o.node)
	}
	if events != nil && len(events.node.fields) == 0 {
		r.warnf("hooks", events.node.pos, "settings have no hooks: nothing is asked")
	}
	if events != nil {
		for _, e := range events.node.fields {
			r.event(events.child(e.name), e)
		}
	}
	if len(r.hooks) > maxAttached {
		r.refuse("hooks", o.place("hooks"), "settings have %d hooks, want at most %d", len(r.hooks), maxAttached)
	}
	if o.flag("disableAllHooks") {
		r.warnf("disableAllHooks", o.place("disableAllHooks"), "disableAllHooks is set: no hook is asked")
		r.hooks = nil
	}
}

// missing tells settings without hooks from hooks that stand in the wrong place.
func (r *claudeCodeReader) missing(n *node) {
	for _, f := range n.fields {
		if _, event := claudeCodeEvents[f.name]; event || slices.Contains(claudeCodeUnseen, f.name) {
			r.refuse(f.name, f.pos, `%s stands by itself, and Claude Code reads hooks only from the member "hooks": {"hooks":{%[1]q:[…]}}`, f.name)
			return
		}
	}
	r.warnf("", n.pos, `settings have no member "hooks": nothing is asked`)
}

// event reads the groups of one event.
func (r *claudeCodeReader) event(path string, f field) {
	event, seen := r.events[f.name]
	switch {
	case !seen && slices.Contains(claudeCodeUnseen, f.name):
		r.unreadf(path, f.pos, "the gate is never asked about %s: Claude Code runs these hooks, the gate does not", f.name)
		return
	case !seen && r.full(): // looking for what was meant costs more than reading it
		return
	case !seen:
		r.unreadf(path, f.pos, "%q is no event of Claude Code that is known here: its hooks are never asked%s", cut(f.name), DidYouMean(f.name, ClaudeCodeEvents()))
		return
	case f.value.kind != listKind:
		r.warnf(path, f.value.pos, "%s is %s, want a list of groups, each with its hooks: Claude Code leaves it out", f.name, f.value.describe())
		return
	}
	for i, n := range f.value.items {
		r.group(fmt.Sprintf("%s[%d]", path, i), n, event)
	}
}

// ClaudeCodeEvents are the names of Claude Code's events that are known here, also
// of those that no gate is asked about.
func ClaudeCodeEvents() []string {
	names := slices.Clone(claudeCodeUnseen)
	for name := range claudeCodeEvents {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// group reads a matcher and the hooks that it is for.
func (r *claudeCodeReader) group(path string, n *node, event gate.EventName) {
	if n.kind != objectKind {
		r.warnf(path, n.pos, "%s is %s, want an object with matcher and hooks: Claude Code leaves it out", strings.TrimPrefix(path, "hooks."), n.describe())
		return
	}
	o := &object{findings: r.findings, path: path, node: n}
	matcher := r.matcher(o, event)
	list := o.value("hooks")
	if list == nil || list.kind != listKind {
		hint := ""
		if o.node.has("type") {
			hint = "; a hook stands in a group: {\"hooks\":[{\"type\":…}]}"
		}
		r.warnf(o.child("hooks"), o.place("hooks"), "%s has no list of hooks: Claude Code leaves it out%s", strings.TrimPrefix(path, "hooks."), hint)
		return
	}
	for i, item := range list.items {
		if len(r.hooks) > maxAttached {
			return // which is one too many, and said at the end
		}
		at := fmt.Sprintf("%s[%d]", o.child("hooks"), i)
		if item.kind != objectKind {
			r.warnf(at, item.pos, "%s is %s, want an object: Claude Code leaves it out", strings.TrimPrefix(at, "hooks."), item.describe())
			continue
		}
		var found findings
		r.left = false
		h, asked := r.handler(&object{findings: &found, path: at, node: item}, event, matcher)
		if r.adopt(&found) && asked && !r.left {
			r.source(h.Name, at, item)
			r.hooks = append(r.hooks, h)
		}
	}
	o.unknown(false)
}

// adopt takes over what was found in one hook. An error there is one for this
// hook alone, which Claude Code leaves out and runs the others (seen with
// 2.1.332); what the gate alone cannot take has been refused already.
func (r *claudeCodeReader) adopt(found *findings) (whole bool) {
	whole = true
	r.unread = append(r.unread, found.unread...)
	for _, f := range found.list {
		if f.Severity == gate.SeverityError {
			f.Message += ": Claude Code leaves this hook out"
			whole = false
		}
		r.add(gate.SeverityWarning, f.Path, pos{f.Line, f.Column}, f.Message)
	}
	return whole
}

// The time that a handler has where it says nothing (spec/claude-code.md 1).
var claudeCodeTimeouts = map[string]time.Duration{"command": 600 * time.Second, "http": 600 * time.Second, "prompt": 30 * time.Second, "agent": 60 * time.Second}

// handler reads one hook. One that Claude Code would not wait for, or never run,
// is not asked.
func (r *claudeCodeReader) handler(o *object, event gate.EventName, matcher gate.Matcher) (h gate.Hook, asked bool) {
	h = gate.Hook{Name: strings.TrimPrefix(o.path, "hooks."), Level: gate.CustomLevel, Dialect: gate.ClaudeCode, Event: event,
		Matcher: matcher, FailMode: gate.FailAllow}
	kind := r.kind(o)
	if kind == "" {
		return h, false
	}
	h.Type, h.Timeout = gate.HookType(kind), r.timeout(o, claudeCodeTimeouts[kind])
	asked = r.condition(o, &h)
	o.text("statusMessage")
	if o.flag("once") {
		o.warnf(o.child("once"), o.place("once"), "once has no effect in settings: the hook is asked every time")
	}
	switch kind {
	case "command":
		asked = r.command(o, &h) && asked
	case "http":
		r.http(o, &h)
	default:
		r.prompt(o, &h)
	}
	if event == gate.Start && kind != "command" {
		o.warnf(o.path, o.node.pos, "Claude Code never asks a hook of type %s on SessionStart: it is left out", kind)
		asked = false
	}
	if !r.full() {
		o.unknown(false)
	}
	return h, asked
}

// kind is the handler's type; empty: it has none that is run here.
func (r *claudeCodeReader) kind(o *object) string {
	kinds := []string{"command", "http", "prompt", "agent"}
	n := o.value("type")
	switch {
	case n == nil:
		o.errorf(o.child("type"), o.node.pos, "type is missing, want one of %s", strings.Join(kinds, ", "))
		return ""
	case n.kind == textKind && n.text == "mcp_tool":
		o.unreadf(o.child("type"), n.pos, "a hook of type mcp_tool calls a server that Claude Code has and the gate has not: it is left out")
		return ""
	}
	return o.oneOf("type", kinds...)
}

// timeout is in seconds, and may be a fraction of one.
func (r *claudeCodeReader) timeout(o *object, usual time.Duration) time.Duration {
	n := o.typed("timeout", numberKind, "seconds")
	if n == nil {
		return usual
	}
	seconds, err := strconv.ParseFloat(n.text, 64)
	if err != nil || seconds <= 0 {
		o.errorf(o.child("timeout"), n.pos, "timeout is %s, want more than 0 (seconds)", cut(n.text))
		return usual
	}
	if whole, ok := n.whole(); ok && whole%1000 == 0 {
		o.warnf(o.child("timeout"), n.pos, "timeout of %d s: the unit is seconds, not milliseconds", whole)
	}
	return max(time.Duration(min(seconds, maxTimeout.Seconds())*float64(time.Second)), time.Millisecond)
}

// condition reads the hook's rule. Where it can never hold the hook is not asked.
func (r *claudeCodeReader) condition(o *object, h *gate.Hook) bool {
	n := o.value("if")
	if n == nil {
		return true
	}
	text := n.text
	switch {
	case n.kind != textKind:
		r.errorf(o.child("if"), n.pos, "if is %s, want text", n.describe())
		return false
	case text == "":
		return true
	case !h.Event.ForTool():
		o.warnf(o.child("if"), n.pos, "if is only evaluated on tool events: on others Claude Code never asks such a hook, and it is left out")
		return false
	}
	rule, err := gate.CompileRule(text)
	if err != nil {
		r.widen(o.child("if"), n.pos, "every call of the tool", err)
		h.If = gate.WidestRule(text)
		return r.played
	}
	if tool, never := contradicts(text, h.Matcher); never {
		o.warnf(o.child("if"), n.pos, "if is about %s alone, and matcher %q is not: the hook is never asked", tool, cut(h.Matcher.String()))
	}
	h.If = rule
	return true
}

func (r *claudeCodeReader) command(o *object, h *gate.Hook) bool {
	h.Command = o.text("command")
	if args := o.typed("args", listKind, "a list of texts"); args != nil {
		h.Args = append([]string{}, o.texts("args")...)
	}
	at, path := o.place("command"), o.child("command")
	switch {
	case strings.TrimSpace(h.Command) == "":
		if wellTyped(o, "command") {
			o.errorf(path, at, "command is missing: a hook of type command needs one")
		}
	case len(h.Command) > gate.MaxScriptBytes:
		r.refuseHook(path, at, "command is %d bytes long, want at most %d", len(h.Command), gate.MaxScriptBytes)
	case h.Args == nil:
		checkBash(o, "command", h.Command)
		if exitOne.MatchString(h.Command) && !strings.Contains(h.Command, "ecision") { // JSON is read on any exit
			o.warnf(path, at, "command can exit with 1, which is a failure and blocks nothing; exit 2 blocks") // fault exit-05
		}
	}
	if h.Args != nil && commandLine.MatchString(h.Command) {
		o.warnf(path, at, "command %q is the name of one program beside args, as no shell reads it, and there is none of that name: put what follows the first word into args", cut(h.Command))
	}
	if void := voidAnswer(h); void != "" {
		o.warnf(path, at, "command answers %s, which Claude Code reads as no answer: without an exit with 2 the agent goes on; say %s", void, claudeCodeRefusal(h.Event))
	}
	if what := changesCall(h); what != "" {
		o.warnf(path, at, "command answers with %s, and a gate cannot change what a tool gets or gives: such an answer is void unless it refuses, and the agent goes on with the call as it was", what)
	}
	if runsAtHome(h) {
		o.warnf(path, at, "command lies in a home directory or a plugin, which hooks do not see here: give an absolute path, or one in ${CLAUDE_PROJECT_DIR}")
	}
	if o.oneOf("shell", "bash", "powershell") == "powershell" {
		r.refuseHook(o.child("shell"), o.place("shell"), "shell is powershell, which is not run here")
	}
	for _, name := range []string{"async", "asyncRewake"} {
		if o.flag(name) {
			o.unreadf(o.child(name), o.place(name), "an %s hook cannot decide anything, since Claude Code does not wait for it: it is left out", name)
			return false
		}
	}
	return true
}

// commandLine is a program with arguments, and no path that holds spaces.
var commandLine = regexp.MustCompile(`\A[^\s/]+\s|\A(?:/usr)?/bin/\w+\s`)

// prompt reads hooks that a model judges. An agent's judge reads the
// conversation by tools; those of the gate all do.
func (r *claudeCodeReader) prompt(o *object, h *gate.Hook) {
	h.Type = gate.PromptHook
	h.Prompt, h.Model = o.text("prompt"), o.text("model")
	if strings.TrimSpace(h.Prompt) == "" && wellTyped(o, "prompt") {
		o.errorf(o.child("prompt"), o.place("prompt"), "prompt is missing: a hook of type %s needs one", o.text("type"))
	}
	if word := foreignAnswer(h.Prompt); word != "" {
		o.warnf(o.child("prompt"), o.place("prompt"), `prompt asks for the answer %q, which is no verdict: ask for {"ok": true} or {"ok": false, "reason": "…"}, or leave the form out`, word)
	}
	if strings.TrimSpace(h.Model) == "" {
		h.Model = gate.DefaultModel
	} else if strings.HasPrefix(h.Model, "claude-") {
		o.warnf(o.child("model"), o.place("model"), "the gate asks its own models: %q is a name of the server file's, or else one of its default provider's", cut(h.Model))
	}
	goesOn := o.flag("continueOnBlock")
	h.EndsTurn = !goesOn && (h.Event == gate.PostToolUse || h.Event == gate.PostToolUseFailure)
}
